"""What the three formats have in common, as the driver uses a table: look, publish, sweep.

A batch is published by one act that names it. `last_batch` is what that act left, so a batch that
Spark repeats after a crash is seen to be there already.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from runnel.spark.lake.attempts import FOLDER
from runnel.spark.lake.kept_files import Kept, KeptFile, local_path
from runnel.spark.lake.lake_options import LakeOptions, TableError
from runnel.spark.lake.part_files import Destination, WrittenFile

if TYPE_CHECKING:
    import pyarrow as pa

NONE_YET: Final = -1
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
CHECKPOINT: Final = "checkpoint"
"""Below `_runnel`, where Spark makes it before anybody has looked at the table."""


class OtherCheckpointError(TableError):
    """The table has batches of this query's name, whose numbers another checkpoint counted."""

    def __init__(self, why: str, last_batch: int) -> None:
        super().__init__(why)
        self.last_batch = last_batch


@dataclass(frozen=True)
class Query:
    """Who writes: a name, and the checkpoint that its batch numbers belong to.

    Without `queryId` the name is the checkpoint's own, so a new checkpoint is a new query. With it
    a new checkpoint is refused: its batches count from 0 again and would be taken for repeated.
    """

    name: str
    checkpoint: str
    formerly: str = ""  # what earlier versions wrote down for the checkpoint

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Those under which the last batch may stand."""
        return (self.checkpoint, self.formerly) if self.formerly else (self.checkpoint,)

    def other_checkpoint(self, last_batch: int, where: str) -> OtherCheckpointError:
        return OtherCheckpointError(
            f"{where} has the batches of queryId={self.name} up to {last_batch}, written with"
            f" another checkpoint. Start with that checkpoint to go on where it stopped, or choose"
            f" a new queryId to write this query's rows beside those that are there",
            last_batch,
        )


class LakeTable(Protocol):
    """One table, seen by one call on the driver; opened anew for each."""

    where: str  # for messages
    ledgers: Path
    data: Path  # paths of `WrittenFile` are below it
    listed: bool  # readers may list the folder, so an earlier try's files must go first

    def destination(self, rows: "pa.Schema") -> Destination:
        """Raises `TableError` unless rows of this schema can go in; changes nothing."""
        ...

    def last_batch(self, query: Query) -> int:
        """The last one published for this query, or `NONE_YET`."""
        ...

    def publish(
        self,
        rows: "pa.Schema",
        files: Sequence[WrittenFile],
        query: Query | None,
        batch: int,
        *,
        overwrite: bool,
    ) -> None:
        """All files and the batch's number, or nothing."""
        ...

    def referenced(self, paths: set[str]) -> set[str]: ...

    def remove(self, path: str) -> None: ...

    def kept(self) -> Kept | None:
        """What the table has now; None where it has not been made yet."""
        ...

    def replace(self, old: Sequence[KeptFile], new: Sequence[WrittenFile]) -> None:
        """The same rows in other files, by one commit. Batches' numbers stay."""
        ...

    def expire(self, older_than_ms: int) -> int:
        """Forget what was replaced so long ago, for good; how many files went."""
        ...


def check_there(table: LakeTable, files: Sequence[WrittenFile]) -> None:
    """A table that names a file which is not there cannot be read any more, by anybody."""
    gone = [file.path for file in files if not (table.data / file.path).is_file()]
    if gone:
        raise TableError(
            f"{table.where}: {len(gone)} of {len(files)} files are gone before they were committed,"
            f" such as {gone[0]}: the same query runs twice, or its workers do not see the driver's"
            " folder. Nothing was committed; start it again, once"
        )


def open_table(options: LakeOptions) -> LakeTable:
    """The table of these options; its folder decides the format where the option does not."""
    named = options.catalog or options.format == "iceberg"
    found = None if options.catalog else _found(options.table)
    if found and options.format and found != options.format:
        raise TableError(
            f"table={options.table} is a {found} table; set tableFormat={found}, or take another"
            f" folder"
        )
    format_ = options.format or ("iceberg" if named else found) or "delta"
    if format_ == "delta":
        from runnel.spark.lake.delta import DeltaLakeTable

        return DeltaLakeTable(options)
    if format_ == "iceberg":
        from runnel.spark.lake.iceberg import IcebergLakeTable

        return IcebergLakeTable(options)
    from runnel.spark.lake.parquet import ParquetLakeTable

    return ParquetLakeTable(options)


def _found(table: str) -> str | None:
    folder = local_folder(table)
    if (folder / "_delta_log").is_dir():
        return "delta"
    if (folder / "_spark_metadata").is_dir():
        return "parquet"
    if (folder / "metadata").is_dir():
        return "iceberg"
    return None


def local_folder(table: str) -> Path:
    """Where the table is, however it is spelled; object stores are refused here, not half way
    through a batch."""
    text = local_path(table)
    if "://" in text or _SCHEME.match(text):
        raise TableError(
            f"table={table}: only folders are written to, such as /lake/orders or a mount of the"
            f" store; with catalog.* options Iceberg tables have a name, such as raw.orders"
        )
    return Path(text).resolve()


def check_folder(folder: Path, format_: str) -> None:
    """A folder that is something else is not made a table of."""
    if folder.exists() and not folder.is_dir():
        raise TableError(f"table={folder} is a file; name a folder that is empty or new")
    ours = folder / FOLDER
    if not folder.is_dir() or (ours.is_dir() and any(e.name != CHECKPOINT for e in ours.iterdir())):
        return
    strangers = sorted(
        entry.name for entry in folder.iterdir() if entry != ours and _holds_something(entry)
    )
    if strangers:
        raise TableError(
            f"table={folder} is no {format_} table but has {', '.join(strangers[:3])} in it; name a"
            f" folder that is empty or new, or set tableFormat to what it is"
        )


def _holds_something(entry: Path) -> bool:
    """A first batch that failed leaves the folders of its partitions behind, without a file."""
    return not entry.is_dir() or any(files for _, _, files in os.walk(entry))
