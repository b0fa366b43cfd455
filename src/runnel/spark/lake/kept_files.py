"""What a table has at one moment: its files, and their rows as the table shows them.

For whoever reads a table without Spark: compaction, replay to a topic, dead letters. A list of
files is a snapshot, since files are never changed; it holds until they are expired.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from runnel.spark.lake.lake_options import TableError

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS: Final = 32_768


class KeptFile(NamedTuple):
    path: str  # absolute
    size_bytes: int
    values: tuple[str | None, ...]  # of the partition columns, as text


@dataclass(frozen=True)
class Kept:
    """A table's rows; `files` in the order in which they were written, as far as that is known."""

    where: str
    schema: "pa.Schema"
    partition_by: tuple[str, ...]
    in_files: bool  # whether files have the partition columns too
    files: tuple[KeptFile, ...]
    pinned: frozenset[str] = frozenset()  # paths of files that must stay as they are

    @property
    def file_schema(self) -> "pa.Schema":
        import pyarrow as pa

        if self.in_files:
            return self.schema
        return pa.schema([f for f in self.schema if f.name not in self.partition_by])


def file_batches(kept: Kept, file: KeptFile) -> "Iterator[pa.RecordBatch]":
    """The rows of a file with the columns that a new file would have: missing ones are null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = kept.file_schema
    try:
        with pq.ParquetFile(file.path) as source:
            known = set(source.schema_arrow.names)
            names = [name for name in schema.names if name in known]
            for batch in source.iter_batches(BATCH_ROWS, columns=names):
                columns = {
                    f.name: _as(batch.column(f.name), f.type)
                    if f.name in known
                    else pa.nulls(batch.num_rows, f.type)
                    for f in schema
                }
                yield pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)
    except FileNotFoundError as error:
        raise TableError(
            f"{file.path} of {kept.where} is gone: it was expired while it was being read. Start"
            f" again, with a longer expire_after if that is no help"
        ) from error


def row_batches(
    kept: Kept, file: KeptFile, columns: Sequence[str] | None = None
) -> "Iterator[pa.RecordBatch]":
    """The rows of a file as the table shows them, partition columns and all."""
    import pyarrow as pa

    schema = kept.schema if columns is None else pa.schema([kept.schema.field(c) for c in columns])
    texts = dict(zip(kept.partition_by, file.values, strict=True))
    for batch in file_batches(kept, file):
        arrays = [
            batch.column(f.name)
            if f.name in batch.schema.names
            else pa.repeat(value_of(texts[f.name], f.type), batch.num_rows)
            for f in schema
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def read_all(kept: Kept, columns: Sequence[str] | None = None) -> "pa.Table":
    """All rows in memory: for tables that are known to be small, such as dead letters."""
    import pyarrow as pa

    schema = kept.schema if columns is None else pa.schema([kept.schema.field(c) for c in columns])
    batches = [batch for file in kept.files for batch in row_batches(kept, file, columns)]
    return pa.Table.from_batches(batches, schema)


def value_of(text: str | None, type_: "pa.DataType") -> "pa.Scalar":
    """A partition's value out of its text."""
    import pyarrow as pa

    if text is None:
        return pa.scalar(None, type_)
    if pa.types.is_boolean(type_):
        return pa.scalar(text == "true", type_)
    return pa.scalar(text).cast(type_)


def local_path(uri: str) -> str:
    """Without `file:`, which Hadoop writes with one slash and others with three."""
    return re.sub(r"^file:(//)?(?=/)", "", uri)


def relative(path: str, folder: Path) -> str:
    """Below a folder that is resolved, as logs of earlier versions need not have it."""
    found = Path(path)
    return str((found if found.is_relative_to(folder) else found.resolve()).relative_to(folder))


def named(paths: set[str], have: Iterable[str]) -> set[str]:
    """Those of `paths` that `have` has, whatever it calls the folder above them.

    Names of files are unique, while a folder has many: links, `..`, percent signs, a mount. What
    is not found here is removed, so a name too many is found rather than one too few.
    """
    names = {path.rpartition("/")[2] for path in have}
    return {path for path in paths if path.rpartition("/")[2] in names}


def _as(array: "pa.Array", type_: "pa.DataType") -> "pa.Array":
    return array if array.type == type_ else array.cast(type_)
