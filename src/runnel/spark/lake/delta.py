"""Delta tables: files are added by one commit that carries the query's name and the batch's number.

Delta has a place for that pair, the `txn` action, which outlives checkpoints and log clean-up, and
two commits with the same name at the same time exclude each other. So neither a repeated batch nor
a driver that was believed dead can add rows twice.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from runnel.spark.lake import attempts, delta_upkeep, table_schema
from runnel.spark.lake.kept_files import Kept, KeptFile, named
from runnel.spark.lake.lake_options import LakeOptions, TableError
from runnel.spark.lake.lake_table import NONE_YET, Query, check_folder, local_folder
from runnel.spark.lake.part_files import Destination, WrittenFile

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

_PREFIX: Final = "runnel:"


class DeltaLakeTable:
    """See `LakeTable`."""

    listed = False

    def __init__(self, options: LakeOptions) -> None:
        self._options = options
        self.data = local_folder(options.table)
        delta_upkeep.check_path(self.data)
        self.ledgers = self.data / attempts.FOLDER
        self.where = f"Delta table {self.data}"
        self._table = self._open()

    def _open(self) -> "DeltaTable | None":
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        if not (self.data / "_delta_log").is_dir():
            check_folder(self.data, "Delta")
            return None
        try:
            return DeltaTable(str(self.data))
        except TableNotFoundError:
            return None

    def destination(self, rows: "pa.Schema") -> Destination:
        written, _ = self._fit(rows)
        partition_by = self._partition_by(written)
        return Destination(
            folder=str(self.data),
            ledgers=str(self.ledgers),
            schema=written.serialize().to_pybytes(),
            partition_by=partition_by,
            has_stats=True,
            compression=self._options.compression,
            target_file_bytes=self._options.target_file_bytes,
        )

    def _fit(self, rows: "pa.Schema") -> "tuple[pa.Schema, list[pa.Field]]":
        import pyarrow as pa

        if self._table is None:
            return rows, []
        there = table_schema.plain_schema(pa.schema(self._table.schema()))
        return table_schema.fit(rows, there, merge=self._options.merge_schema, where=self.where)

    def _partition_by(self, written: "pa.Schema") -> tuple[str, ...]:
        asked = self._options.partition_by
        if self._table is not None:
            there = tuple(self._table.metadata().partition_columns)
            if asked and asked != there:
                raise TableError(
                    f"partitionBy={','.join(asked)}: {self.where} is partitioned by"
                    f" {','.join(there) or 'nothing'}; leave the option out, or write another table"
                )
            asked = there
        table_schema.check_partitions(asked, written)
        return asked

    def last_batch(self, query: Query) -> int:
        if self._table is None:
            return NONE_YET
        name, with_checkpoint = transaction_names(query)
        last = self._table.transaction_version(name)
        if last is None:
            return NONE_YET
        if self._table.transaction_version(with_checkpoint) is None:
            former = transaction_names(Query(query.name, query.formerly))[1]
            if not query.formerly or self._table.transaction_version(former) != last:
                raise query.other_checkpoint(last, self.where)
        return last

    def publish(
        self,
        rows: "pa.Schema",
        files: Sequence[WrittenFile],
        query: Query | None,
        batch: int,
        *,
        overwrite: bool,
    ) -> None:
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import AddAction, RemoveAction

        table = self._ready(rows)
        partition_by = table.metadata().partition_columns
        now_ms = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(
                path=file.path,
                size=file.size_bytes,
                partition_values=dict(zip(partition_by, file.values, strict=True)),
                modification_time=now_ms,
                data_change=True,
                stats=file.stats,
            )
            for file in files
        ]
        named = (
            [Transaction(name, batch, now_ms) for name in transaction_names(query)] if query else []
        )
        told = {"runnel.queryId": query.name, "runnel.batchId": str(batch)} if query else {}
        table.create_write_transaction(
            actions,
            "overwrite" if overwrite else "append",
            table.schema(),
            partition_by,
            commit_properties=CommitProperties(app_transactions=named, custom_metadata=told),
        )

    def _ready(self, rows: "pa.Schema") -> "DeltaTable":
        """The table, made or given new columns first: commits of their own that change no row."""
        import pyarrow as pa
        from deltalake import DeltaTable
        from deltalake import Schema as DeltaSchema

        if self._table is None:
            self._table = DeltaTable.create(
                str(self.data),
                rows,
                mode="ignore",
                partition_by=list(self._options.partition_by),
            )
        _, added = self._fit(rows)
        if added:
            self._table.alter.add_columns(list(DeltaSchema.from_arrow(pa.schema(added)).fields))
        return self._table

    def referenced(self, paths: set[str]) -> set[str]:
        if self._table is None:
            return set()
        return named(paths, delta_upkeep.paths(self._table))

    def remove(self, path: str) -> None:
        (self.data / path).unlink(missing_ok=True)

    def kept(self) -> Kept | None:
        return (
            None if self._table is None else delta_upkeep.kept(self._table, self.data, self.where)
        )

    def replace(self, old: Sequence[KeptFile], new: Sequence[WrittenFile]) -> None:
        assert self._table is not None, "there is nothing to replace"
        delta_upkeep.check_plain(self._table, self.where)
        delta_upkeep.replace(self._table, self.data, old, new)

    def expire(self, older_than_ms: int) -> int:
        return 0 if self._table is None else delta_upkeep.expire(self._table, older_than_ms)


def transaction_names(query: Query) -> tuple[str, str]:
    """Of the query, and of it with its checkpoint: the names in `txn` actions."""
    return _PREFIX + query.name, f"{_PREFIX}{query.name}@{query.checkpoint}"
