"""One row per key in a Delta table: a batch of changes merged into it by one commit.

Every row carries the order of the change that made it, and only a later change touches it. So
changes that come again, or late, do nothing; and a batch that is repeated is seen by its number.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from runnel.spark import steps
from runnel.spark.lake import delta_upkeep, table_schema
from runnel.spark.lake.attempts import exclusive
from runnel.spark.lake.delta import transaction_names
from runnel.spark.lake.lake_options import LakeOptions, TableError
from runnel.spark.lake.lake_table import NONE_YET, Query, check_folder, local_folder

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

OP: Final = "_op"
DELETED: Final = "_deleted"
TS_MS, POSITION, OFFSET = "_source_ts_ms", "_source_position", "_offset"
ORDER: Final = (TS_MS, POSITION, OFFSET)


class Merged(NamedTuple):
    inserted: int
    updated: int
    deleted: int
    repeated: bool = False  # the batch was there already


class UpsertTable:
    """Rows have the columns of the table, `ORDER`, and `OP`: `u`, `d`, or `t`, a delete by offset.

    With `marks_deletes` a deleted row stays, with `_deleted` set.
    """

    def __init__(self, options: LakeOptions, keys: Sequence[str], *, marks_deletes: bool) -> None:
        if options.format not in (None, "delta"):
            raise TableError(
                f"to.format={options.format}: rows are merged into Delta tables only; leave it out"
            )
        self._options = options
        self._keys = list(keys)
        self._marks = marks_deletes
        self._folder = local_folder(options.table)
        delta_upkeep.check_path(self._folder)
        self.where = f"Delta table {self._folder}"

    def schema(self) -> "pa.Schema | None":
        """The table's own columns, without those that are added here."""
        import pyarrow as pa

        table = self._open()
        if table is None:
            return None
        added = {*ORDER, DELETED}
        columns = table_schema.plain_schema(pa.schema(table.schema()))
        return pa.schema([field for field in columns if field.name not in added])

    def merge(self, changes: "pa.Table", query: Query, batch: int) -> Merged:
        """One change per key. Raises TableError."""
        with exclusive(self._folder / "_runnel"):
            table = self._open() or self._create(changes.schema)
            names = transaction_names(query)
            last = table.transaction_version(names[0])
            if last is not None and table.transaction_version(names[1]) is None:
                raise query.other_checkpoint(last, self.where)
            if batch <= (NONE_YET if last is None else last):
                return Merged(0, 0, 0, repeated=True)
            if changes.num_rows == 0:
                return Merged(0, 0, 0)
            self._grow(table, changes.schema)
            merged = self._merge(table, changes, names, batch)
            steps.reached("merged")
            return merged

    def _open(self) -> "DeltaTable | None":
        from deltalake import DeltaTable

        if not (self._folder / "_delta_log").is_dir():
            check_folder(self._folder, "Delta")
            return None
        return DeltaTable(str(self._folder))

    def _create(self, changes: "pa.Schema") -> "DeltaTable":
        import pyarrow as pa
        from deltalake import DeltaTable

        columns = [field for field in changes if field.name != OP]
        if self._marks:
            columns.append(pa.field(DELETED, pa.bool_()))
        table_schema.check_partitions(self._options.partition_by, pa.schema(columns))
        return DeltaTable.create(
            str(self._folder),
            pa.schema(columns),
            mode="ignore",
            partition_by=list(self._options.partition_by),
        )

    def _grow(self, table: "DeltaTable", changes: "pa.Schema") -> None:
        import pyarrow as pa
        from deltalake import Schema

        there = table_schema.plain_schema(pa.schema(table.schema()))
        missing = [name for name in (*self._keys, *ORDER) if name not in there.names]
        if missing:
            raise TableError(
                f"{self.where} has no column {missing[0]}: it was not made by a pipeline of kind"
                f" cdc with these keys; name another folder"
            )
        rows = pa.schema([field for field in changes if field.name != OP])
        merge = self._options.merge_schema
        _, added = table_schema.fit(rows, there, merge=merge, where=self.where)
        if added:
            table.alter.add_columns(list(Schema.from_arrow(pa.schema(added)).fields))

    def _merge(
        self, table: "DeltaTable", changes: "pa.Table", names: tuple[str, str], batch: int
    ) -> Merged:
        from deltalake import CommitProperties, Transaction

        now_ms = int(time.time() * 1000)
        told = CommitProperties(
            app_transactions=[Transaction(name, batch, now_ms) for name in names],
            custom_metadata={"runnel.batchId": str(batch)},
        )
        columns = [name for name in changes.schema.names if name != OP]
        every = {_quoted(name): f"s.{_quoted(name)}" for name in columns}
        order = {_quoted(name): f"s.{_quoted(name)}" for name in ORDER}
        gone = f"(s.{OP} = 'd' AND {_newer()}) OR (s.{OP} = 't' AND s.{OFFSET} > t.{OFFSET})"
        alive = {**every, _quoted(DELETED): "false"} if self._marks else every
        merger = table.merge(
            changes,
            " AND ".join(f"t.{_quoted(key)} = s.{_quoted(key)}" for key in self._keys),
            source_alias="s",
            target_alias="t",
            commit_properties=told,
        ).when_matched_update(alive, predicate=f"s.{OP} = 'u' AND {_newer()}")
        if self._marks:
            marked = {**order, _quoted(DELETED): "true"}
            keyed = {_quoted(key): f"s.{_quoted(key)}" for key in self._keys}
            merger = merger.when_matched_update(marked, predicate=gone)
            merger = merger.when_not_matched_insert({**keyed, **marked}, predicate=f"s.{OP} = 'd'")
        else:
            merger = merger.when_matched_delete(gone)
        done = merger.when_not_matched_insert(alive, predicate=f"s.{OP} = 'u'").execute()
        return Merged(
            int(done["num_target_rows_inserted"]),
            int(done["num_target_rows_updated"]),
            int(done["num_target_rows_deleted"]),
        )


def _newer() -> str:
    """In SQL: whether the change `s` is later than what made the row `t`."""
    return (
        f"(s.{TS_MS} > t.{TS_MS} OR (s.{TS_MS} = t.{TS_MS} AND (s.{POSITION} > t.{POSITION}"
        f" OR (s.{POSITION} = t.{POSITION} AND s.{OFFSET} > t.{OFFSET}))))"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
