"""Upkeep of Delta tables: files replaced by others of the same rows, and what is old, forgotten.

A replacement says that it changes no data, so readers that follow the table do not see its rows
anew. `txn` actions, by which batches are known, are carried on by Delta's own checkpoints.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from runnel.spark.lake import table_schema
from runnel.spark.lake.kept_files import Kept, KeptFile, relative
from runnel.spark.lake.lake_options import TableError
from runnel.spark.lake.part_files import WrittenFile, value_text

if TYPE_CHECKING:
    from deltalake import DeltaTable

_LOG_RETENTION: Final = "delta.logRetentionDuration"
_HOUR_MS: Final = 3_600_000
_UNESCAPED: Final = "!$&'()+,-./:;=@_~"  # by deltalake, in the paths of its actions
_READ_AS_THEY_ARE: Final = 1  # reader version; later ones rename columns or mark rows as deleted


def check_path(folder: Path) -> None:
    """What looks like an escape is taken for one by deltalake, which then looks elsewhere."""
    escape = re.search(r"%[0-9A-Fa-f]{2}", str(folder))
    if escape:
        raise TableError(
            f"table={folder}: a Delta table cannot be below a folder with {escape[0]} in its name,"
            f" which readers take for an escaped character; name another folder"
        )


def paths(table: "DeltaTable") -> list[str]:
    """Of every file that the table has, below its folder."""
    return [unquote(action["path"]) for action in _actions(table, "path")]


def _actions(table: "DeltaTable", *columns: str) -> list[dict[str, Any]]:
    """Without statistics unless asked for: Python has no word for some of their values."""
    import pyarrow as pa

    found = pa.table(table.get_add_actions(flatten=False)).select(list(columns))
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def kept(table: "DeltaTable", folder: Path, where: str) -> Kept:
    """Files are pinned that others escape as deltalake does not: it could not take them away."""
    import pyarrow as pa

    schema = table_schema.plain_schema(pa.schema(table.schema()))
    partition_by = tuple(table.metadata().partition_columns)
    asked = ["path", "size_bytes", "modification_time"] + (["partition"] if partition_by else [])
    actions = _actions(table, *asked)
    actions.sort(key=lambda action: (action["modification_time"], action["path"]))
    files = tuple(
        KeptFile(
            str(folder / unquote(action["path"])),
            action["size_bytes"],
            tuple(value_text(action["partition"][name], False) for name in partition_by),
        )
        for action in actions
    )
    pinned = frozenset(
        file.path
        for file, action in zip(files, actions, strict=True)
        if quote(unquote(action["path"]), _UNESCAPED) != action["path"]
    )
    return Kept(where, schema, partition_by, False, files, pinned)


def check_plain(table: "DeltaTable", where: str) -> None:
    """A table of others may have features that a plain reader of its files does not see."""
    protocol = table.protocol()
    if protocol.min_reader_version > _READ_AS_THEY_ARE and set(
        protocol.reader_features or ["columnMapping"]
    ) - {"timestampNtz"}:
        raise TableError(
            f"{where} has features that runnel does not write"
            f" ({', '.join(protocol.reader_features or ['column mapping'])}); compact it with what"
            f" wrote it, such as OPTIMIZE in Spark"
        )


def replace(
    table: "DeltaTable", folder: Path, old: Sequence[KeptFile], new: Sequence[WrittenFile]
) -> None:
    from deltalake import CommitProperties
    from deltalake.transaction import AddAction, RemoveAction

    names = table.metadata().partition_columns
    now_ms = int(time.time() * 1000)
    actions: list[AddAction | RemoveAction] = [
        RemoveAction(
            relative(file.path, folder),  # deltalake escapes it as it does in the log
            False,
            now_ms,
            file.size_bytes,
            dict(zip(names, file.values, strict=True)),
        )
        for file in old
    ]
    actions += [
        AddAction(
            path=file.path,
            size=file.size_bytes,
            partition_values=dict(zip(names, file.values, strict=True)),
            modification_time=now_ms,
            data_change=False,
            stats=file.stats,
        )
        for file in new
    ]
    table.create_write_transaction(
        actions,
        "append",
        table.schema(),
        names,
        commit_properties=CommitProperties(custom_metadata={"runnel.upkeep": "compaction"}),
    )


def expire(table: "DeltaTable", older_than_ms: int) -> int:
    """Files that were removed so long ago, and the log's entries from before."""
    hours = older_than_ms // _HOUR_MS
    gone = table.vacuum(hours, dry_run=False, enforce_retention_duration=False)
    wanted = f"interval {max(1, hours)} hours"
    if table.metadata().configuration.get(_LOG_RETENTION) != wanted:
        table.alter.set_table_properties({_LOG_RETENTION: wanted})
    table.create_checkpoint()
    table.cleanup_metadata()
    return len(gone)
