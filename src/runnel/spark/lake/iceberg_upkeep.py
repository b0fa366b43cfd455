"""Upkeep of Iceberg tables: small files overwritten by large ones, old snapshots expired.

Batches' numbers stand in the table's properties and not in snapshots, so expiry leaves them alone.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from runnel.spark.lake import table_schema
from runnel.spark.lake.file_stats import without_bounds
from runnel.spark.lake.kept_files import Kept, KeptFile, local_path
from runnel.spark.lake.lake_options import TableError
from runnel.spark.lake.part_files import value_text

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

_METRICS = "write.metadata.metrics.column."
_TOLD = {"runnel.upkeep": "compaction"}


def kept(table: "Table", where: str, partition_by: tuple[str, ...]) -> Kept:
    schema = table_schema.plain_schema(table.schema().as_arrow())
    files = tuple(
        KeptFile(
            local_path(file.file_path),
            file.file_size_in_bytes,
            tuple(value_text(file.partition[at], True) for at in range(len(partition_by))),
        )
        for _, file in sorted(_entries(table, where).items())
    )
    return Kept(where, schema, partition_by, True, files)


def leave_out_bounds(table: "Table", paths: Sequence[str]) -> bool:
    """Of columns that these files have values of which pyiceberg could not tell, in the commit
    that is about to be made; whether there are any more of them than before."""
    import pyarrow.parquet as pq

    found = {name for path in paths for name in without_bounds(pq.read_metadata(path))}
    counted = {_METRICS + name: "counts" for name in found}
    more = counted.keys() - table.metadata.properties.keys()
    table.metadata.properties.update(counted)  # here only: nobody commits these
    return bool(more)


def replace(table: "Table", where: str, old: Sequence[KeptFile], new: Sequence[str]) -> None:
    from pyiceberg.io.pyarrow import parquet_file_to_data_file

    leave_out_bounds(table, new)
    entries = {local_path(name): file for (_, name), file in _entries(table, where).items()}
    gone = [file.path for file in old if file.path not in entries]
    if gone:
        raise TableError(f"{gone[0]} of {where} was removed meanwhile; start again")
    with (
        table.transaction() as transaction,
        transaction.update_snapshot(snapshot_properties=_TOLD).overwrite() as update,
    ):
        for file in old:
            update.delete_data_file(entries[file.path])
        for path in new:
            update.append_data_file(parquet_file_to_data_file(table.io, table.metadata, path))


def expire(table: "Table", older_than_ms: int) -> int:
    """Snapshots from before, and whatever files only those had."""
    before = everything(table)
    moment = datetime.now(UTC) - timedelta(milliseconds=older_than_ms)
    table.maintenance.expire_snapshots().older_than(moment).commit()
    table.refresh()
    gone = before - everything(table)
    for path in gone:
        Path(path).unlink(missing_ok=True)
    return len(gone)


def _entries(table: "Table", where: str) -> "dict[tuple[int, str], DataFile]":
    """The data files by when they came and their name."""
    snapshot = table.current_snapshot()
    found: dict[tuple[int, str], DataFile] = {}
    for manifest in snapshot.manifests(table.io) if snapshot else ():
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            if entry.data_file.content.value != 0:
                raise TableError(
                    f"{where} has deletes that are merged when it is read, which runnel does not"
                    f" write; compact it with what wrote it, such as rewrite_data_files in Spark"
                )
            found[entry.sequence_number or 0, entry.data_file.file_path] = entry.data_file
    return found


def everything(table: "Table") -> set[str]:
    """Of all snapshots that there are: data files, manifests and lists of manifests."""
    found: set[str] = set()
    for snapshot in table.metadata.snapshots:
        found.add(local_path(snapshot.manifest_list))
        for manifest in snapshot.manifests(table.io):
            if local_path(manifest.manifest_path) in found:
                continue  # most of them are in many snapshots
            found.add(local_path(manifest.manifest_path))
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                found.add(local_path(entry.data_file.file_path))
    return found
