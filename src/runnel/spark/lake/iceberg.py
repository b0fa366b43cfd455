"""Iceberg tables: files, the batch's number and new columns in one commit to the catalog.

The number stands in a table property, not only in the snapshot's summary, because snapshots are
expired. pyiceberg would repeat a commit that lost a race by itself and not look at that property
again, so its own retries are turned off and done here: reload, look, then try anew.

Without `catalog.*` options the catalog is a SQLite file in the table's folder, which Iceberg's JDBC
catalogs read as well; with them `table` is a name such as `raw.orders` in that catalog.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runnel.spark.lake import attempts, iceberg_upkeep, table_schema
from runnel.spark.lake.kept_files import Kept, KeptFile, local_path, named
from runnel.spark.lake.lake_options import LakeOptions, TableError
from runnel.spark.lake.lake_table import NONE_YET, Query, check_folder, local_folder
from runnel.spark.lake.part_files import Destination, WrittenFile

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

CATALOG_FILE: Final = "catalog.db"
CATALOG: Final = "runnel"
NAMESPACE: Final = "runnel"
_BATCH: Final = "runnel.batch."
_CHECKPOINT: Final = "runnel.checkpoint."
_TRIES: Final = 5
_WAIT_MS: Final = 200


class IcebergLakeTable:
    """See `LakeTable`."""

    listed = False

    def __init__(self, options: LakeOptions) -> None:
        self._options = options
        self._catalog, self._name = _catalog(options)
        self.where = f"Iceberg table {'.'.join(self._name)}"
        self._table = self._load()
        self._root = self._location()
        self.data = self._root / "data"
        self.ledgers = self._root / attempts.FOLDER

    def _load(self) -> "Table | None":
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            return self._catalog.load_table(self._name)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except Exception as error:  # each kind of catalog has its own
            raise TableError(
                f"the catalog of {self.where} does not answer: {error}. Look at the catalog.*"
                f" options: {', '.join(sorted(self._options.catalog)) or 'none is set'}"
            ) from error

    def _location(self) -> Path:
        if self._table is not None:
            return local_folder(self._table.location())
        if not self._options.catalog:
            return local_folder(self._options.table)
        warehouse = self._options.catalog.get("warehouse")
        if not warehouse:
            raise TableError(
                f"{self.where} does not exist and catalog.warehouse is not set: set it to the"
                f" folder where new tables go"
            )
        return local_folder(warehouse).joinpath(*self._name)

    def destination(self, rows: "pa.Schema") -> Destination:
        written, _ = self._fit(_kept_by_iceberg(rows))
        return Destination(
            folder=str(self.data),
            ledgers=str(self.ledgers),
            schema=written.serialize().to_pybytes(),
            partition_by=self._partition_by(written),
            keeps_partition_columns=True,
            compression=self._options.compression,
            target_file_bytes=self._options.target_file_bytes,
        )

    def _fit(self, rows: "pa.Schema") -> "tuple[pa.Schema, list[pa.Field]]":
        if self._table is None:
            return rows, []
        there = table_schema.plain_schema(self._table.schema().as_arrow())
        return table_schema.fit(rows, there, merge=self._options.merge_schema, where=self.where)

    def _partition_by(self, written: "pa.Schema") -> tuple[str, ...]:
        asked = self._options.partition_by
        if self._table is not None:
            there = self._identity_partitions(self._table)
            if asked and asked != there:
                raise TableError(
                    f"partitionBy={','.join(asked)}: {self.where} is partitioned by"
                    f" {','.join(there) or 'nothing'}; leave the option out, or write another table"
                )
            asked = there
        table_schema.check_partitions(asked, written)
        return asked

    def _identity_partitions(self, table: "Table") -> tuple[str, ...]:
        columns = []
        for field in table.spec().fields:
            if str(field.transform) != "identity":
                raise TableError(
                    f"{self.where} is partitioned by {field.transform} of a column; only plain"
                    f" columns are written to, so add one and partition by that"
                )
            columns.append(table.schema().find_column_name(field.source_id) or field.name)
        return tuple(columns)

    def last_batch(self, query: Query) -> int:
        if self._table is None:
            return NONE_YET
        properties = self._table.properties
        last = properties.get(_BATCH + query.name)
        if last is None:
            return NONE_YET
        if properties.get(_CHECKPOINT + query.name) not in query.checkpoints:
            raise query.other_checkpoint(int(last), self.where)
        return int(last)

    def publish(
        self,
        rows: "pa.Schema",
        files: Sequence[WrittenFile],
        query: Query | None,
        batch: int,
        *,
        overwrite: bool,
    ) -> None:
        from pyiceberg.exceptions import CommitFailedException

        fitting = _kept_by_iceberg(rows)
        commit = partial(self._commit, fitting, files, query, batch, overwrite=overwrite)
        for attempt in range(_TRIES):
            try:
                self._with_bounds_or_without(commit, files)
                return
            except CommitFailedException as error:
                if attempt == _TRIES - 1:
                    raise TableError(
                        f"{self.where} was changed by another writer {_TRIES} times while batch"
                        f" {batch} was to be committed; start again when that one is done"
                    ) from error
                time.sleep(_WAIT_MS * 2**attempt / 1000)
                self._table = self._load()
                if query is not None and self.last_batch(query) >= batch:
                    raise TableError(
                        f"{self.where}: batch {batch} of query {query.name} was just committed by"
                        f" somebody else; is the same query running twice?"
                    ) from error

    def _with_bounds_or_without(
        self, commit: Callable[[], None], files: Sequence[WrittenFile]
    ) -> None:
        try:
            commit()
        except (OverflowError, ValueError):  # of a bound, which pyiceberg takes from the files
            paths = [str(self.data / file.path) for file in files]
            if self._table is None or not iceberg_upkeep.leave_out_bounds(self._table, paths):
                raise
            commit()

    def _commit(
        self,
        rows: "pa.Schema",
        files: Sequence[WrittenFile],
        query: Query | None,
        batch: int,
        *,
        overwrite: bool,
    ) -> None:
        table = self._table or self._create(rows)
        table.metadata.properties["commit.retry.num-retries"] = "0"  # here only, see the module
        _, added = self._fit(rows)
        told = {"runnel.query-id": query.name, "runnel.batch-id": str(batch)} if query else {}
        with table.transaction() as transaction:
            if added:
                import pyarrow as pa

                with transaction.update_schema() as update:
                    update.union_by_name(pa.schema(added))
            if query is not None:
                transaction.set_properties(
                    {_BATCH + query.name: str(batch), _CHECKPOINT + query.name: query.checkpoint}
                )
            if overwrite and table.current_snapshot() is not None:
                from pyiceberg.expressions import AlwaysTrue

                transaction.delete(AlwaysTrue(), snapshot_properties=told)
            if files:
                transaction.add_files(
                    [str(self.data / file.path) for file in files],
                    snapshot_properties=told,
                    check_duplicate_files=False,  # names are unique; it would read every manifest
                )

    def _create(self, rows: "pa.Schema") -> "Table":
        """An empty table first: nothing that a reader or a second run could take for a batch."""
        from pyiceberg.exceptions import TableAlreadyExistsError
        from pyiceberg.transforms import IdentityTransform

        self._catalog.create_namespace_if_not_exists(self._name[:-1])
        try:
            with self._catalog.create_table_transaction(
                self._name, rows, location=str(self._root)
            ) as transaction:
                if self._options.partition_by:
                    with transaction.update_spec() as update:
                        for column in self._options.partition_by:
                            update.add_field(column, IdentityTransform(), column)
        except TableAlreadyExistsError:
            pass
        self._table = self._catalog.load_table(self._name)
        return self._table

    def referenced(self, paths: set[str]) -> set[str]:
        if self._table is None:
            return set()
        return named(paths, iceberg_upkeep.everything(self._table))

    def remove(self, path: str) -> None:
        (self.data / path).unlink(missing_ok=True)

    def kept(self) -> Kept | None:
        if self._table is None:
            return None
        partition_by = self._identity_partitions(self._table)
        return iceberg_upkeep.kept(self._table, self.where, partition_by)

    def replace(self, old: Sequence[KeptFile], new: Sequence[WrittenFile]) -> None:
        assert self._table is not None, "there is nothing to replace"
        self._table.metadata.properties["commit.retry.num-retries"] = "0"
        paths = [str(self.data / file.path) for file in new]
        iceberg_upkeep.replace(self._table, self.where, old, paths)

    def expire(self, older_than_ms: int) -> int:
        return 0 if self._table is None else iceberg_upkeep.expire(self._table, older_than_ms)


def _catalog(options: LakeOptions) -> "tuple[Catalog, tuple[str, ...]]":
    from pyiceberg.catalog import load_catalog

    if options.catalog:
        name = tuple(options.table.split("."))
        if len(name) < 2 or not all(name) or "/" in options.table:
            raise TableError(
                f"table={options.table}: with catalog.* options write namespace.table, such as"
                f" raw.orders"
            )
        settings = dict(options.catalog)
        settings.setdefault("type", "sql" if "uri" not in settings else _kind(settings["uri"]))
    else:
        folder = local_folder(options.table)
        if not (folder / CATALOG_FILE).exists():
            check_folder(folder, "Iceberg")
        folder.mkdir(parents=True, exist_ok=True)
        spelled = Path(local_path(options.table)).absolute().name
        name = (NAMESPACE, folder.name if spelled == ".." else spelled)
        settings = {"type": "sql", "uri": _sqlite(folder / CATALOG_FILE)}
        settings["warehouse"] = str(folder)
    try:
        catalog = load_catalog(settings.pop("name", CATALOG), **settings)
        return catalog, name if options.catalog else _name_there(catalog, name)
    except Exception as error:  # each kind of catalog has its own
        raise TableError(
            f"the catalog of table={options.table} cannot be opened: {error}. Look at the catalog.*"
            f" options: {', '.join(sorted(options.catalog)) or 'none is set'}"
        ) from error


def _sqlite(path: Path) -> str:
    """SQLAlchemy's own spelling: a percent sign has a meaning in some of its versions."""
    from sqlalchemy import URL

    return URL.create("sqlite", database=str(path)).render_as_string()


def _name_there(catalog: "Catalog", name: tuple[str, ...]) -> tuple[str, ...]:
    """A folder's catalog has the folder's table, under the name by which it was first called."""
    if not catalog.namespace_exists(NAMESPACE):
        return name
    names = catalog.list_tables(NAMESPACE)
    return names[0] if len(names) == 1 else name


def _kind(uri: str) -> str:
    return "rest" if uri.startswith("http") else "hive" if uri.startswith("thrift") else "sql"


def _kept_by_iceberg(rows: "pa.Schema") -> "pa.Schema":
    """Iceberg has no whole numbers under 32 bits."""
    import pyarrow as pa

    narrow = (pa.int8(), pa.int16())
    return pa.schema([pa.field(f.name, pa.int32() if f.type in narrow else f.type) for f in rows])
