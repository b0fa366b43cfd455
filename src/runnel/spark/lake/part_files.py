"""Rows to Parquet files, as one task writes them: in bounded memory, a file per partition value.

Rows are gathered until a row group is worth writing, a file is closed when it has its size, and
the widest of the gathered partitions is written first when memory is short. A path is noted in the
ledger before the file is made.
"""

import errno
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from runnel.spark import steps
from runnel.spark.lake import table_schema
from runnel.spark.lake.attempts import Attempt, Ledger
from runnel.spark.lake.file_stats import delta_stats
from runnel.spark.lake.lake_options import TableError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROW_GROUP_BYTES: Final = 64 << 20
GATHERED_BYTES: Final = 256 << 20  # over all partition values of a task
MAX_OPEN_FILES: Final = 64
REWRITTEN: Final = "compaction"
NO_BATCHES: Final = "none"
NO_STREAM: Final = "batch"
"""The query of files that hold rows of others; the checkpoint of writes that are done once, and of
those that have a number without a stream."""
_SAMPLE_ROWS: Final = 4_096
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FULL_OR_FORBIDDEN: Final = (*_FULL, errno.EROFS, errno.EACCES, errno.EPERM)

Values = tuple[str | None, ...]


class WrittenFile(NamedTuple):
    """A file that waits for its commit; what any of the three formats needs to know of it."""

    path: str  # below `Destination.folder`
    size_bytes: int
    rows: int
    values: Values  # of the partition columns, as text
    stats: str  # as Delta has them; empty for others


@dataclass(frozen=True)
class Destination:
    """Where and how tasks write; made on the driver, pickled."""

    folder: str
    ledgers: str
    schema: bytes  # Arrow, serialized: of whole rows, as the table has them
    partition_by: tuple[str, ...] = ()
    keeps_partition_columns: bool = False  # in the files; only Iceberg wants that
    has_stats: bool = False  # of each file, in the commit; only Delta wants that
    hive_folders: bool = False  # `name=value`, which readers of plain Parquet parse
    compression: str = "snappy"
    target_file_bytes: int = 128 << 20

    def whole(self) -> "Destination":
        """The same, but that a file is closed only when it is told to."""
        return replace(self, target_file_bytes=sys.maxsize)


class PartFiles:
    """The files of one attempt; `write` for each batch, then `finish` or `discard`."""

    def __init__(self, to: Destination, attempt: Attempt, checkpoint: str, task: int) -> None:
        self.folder = to.folder
        self._to = to
        self._schema = table_schema.read(to.schema)
        self._ledger = Ledger(Path(to.ledgers), attempt)
        who = f"{mark(attempt.query)}-{mark(checkpoint)}-{attempt.batch:010d}"
        self._stem = f"part-{who}-{task:05d}-{attempt.id[:12]}"
        self._open: dict[Values, _OpenFile] = {}
        self._done: list[WrittenFile] = []
        self._count = 0

    def write(self, batch: "pa.RecordBatch") -> None:
        if batch.num_rows == 0:
            return
        if batch.schema != self._schema:
            batch = batch.select(self._schema.names).cast(self._schema)
        for values, part in _by_partition(batch, self._to):
            self.write_part(values, part)
        while sum(file.gathered_bytes for file in self._open.values()) > GATHERED_BYTES:
            self._flush(max(self._open.values(), key=lambda file: file.gathered_bytes))

    def write_part(self, values: Values, part: "pa.RecordBatch") -> None:
        """Rows of one partition, with the columns that files have."""
        file = self._open.get(values) or self._begin(values)
        file.gather(part)
        if file.gathered_bytes >= ROW_GROUP_BYTES:
            self._flush(file)

    def end_part(self, values: Values) -> None:
        """What comes next of this partition goes to another file."""
        if values in self._open:
            self._end(values)

    def finish(self) -> list[WrittenFile]:
        for values in list(self._open):
            self._end(values)
        return self._done

    def discard(self) -> None:
        """The attempt failed: take away what it wrote, as far as that is possible."""
        for file in self._open.values():
            file.abandon()
        paths = [file.path for file in self._open.values()] + [file.path for file in self._done]
        for path in paths:
            with suppress(OSError):
                (Path(self._to.folder) / path).unlink(missing_ok=True)
        with suppress(OSError):
            self._ledger.close()

    def _begin(self, values: Values) -> "_OpenFile":
        if len(self._open) >= MAX_OPEN_FILES:
            self._end(min(self._open, key=lambda open_: self._open[open_].gathered_bytes))
        folder = "/".join(
            f"{_shown(name, self._to.hive_folders)}={_shown(value, self._to.hive_folders)}"
            for name, value in zip(self._to.partition_by, values, strict=True)
        )
        name = f"{self._stem}-{self._count:04d}.{self._to.compression}.parquet"
        self._count += 1
        path = f"{folder}/{name}" if folder else name
        self._ledger.note(path)
        self._open[values] = _OpenFile(self._to, path, values)
        steps.reached("writing")
        return self._open[values]

    def _flush(self, file: "_OpenFile") -> None:
        if file.flush() >= self._to.target_file_bytes:
            self._end(file.values)

    def _end(self, values: Values) -> None:
        file = self._open[values]
        file.flush()
        self._done.append(file.close())
        del self._open[values]


class _OpenFile:
    def __init__(self, to: Destination, path: str, values: Values) -> None:
        self.path = path
        self.values = values
        self.gathered_bytes = 0
        self._to = to
        self._batches: list[pa.RecordBatch] = []
        self._writer: pq.ParquetWriter | None = None
        self._sink: pa.NativeFile | None = None

    def gather(self, part: "pa.RecordBatch") -> None:
        self._batches.append(part)
        self.gathered_bytes += part.nbytes

    def flush(self) -> int:
        """What was gathered becomes a row group; the size of the file so far."""
        import pyarrow as pa

        if self._batches:
            table = pa.Table.from_batches(self._batches)
            self._batches, self.gathered_bytes = [], 0
            if self._writer is None:
                self._writer = self._create(table)
            self._writer.write_table(table, row_group_size=table.num_rows)
        return self._sink.tell() if self._sink is not None else 0

    def _create(self, table: "pa.Table") -> "pq.ParquetWriter":
        import pyarrow as pa

        whole = Path(self._to.folder) / self.path
        whole.parent.mkdir(parents=True, exist_ok=True)
        self._sink = pa.OSFile(str(whole), "wb")
        return _writer(self._sink, table, self._to)

    def abandon(self) -> None:
        if self._sink is not None:
            with suppress(OSError):
                self._sink.close()

    def close(self) -> WrittenFile:
        assert self._writer is not None and self._sink is not None, self.path
        self._writer.close()
        metadata = self._writer.writer.metadata
        self._sink.close()
        return WrittenFile(
            self.path,
            (Path(self._to.folder) / self.path).stat().st_size,
            metadata.num_rows,
            self.values,
            json.dumps(delta_stats(metadata)) if self._to.has_stats else "",
        )


def _writer(sink: "pa.NativeFile", table: "pa.Table", to: Destination) -> "pq.ParquetWriter":
    import pyarrow.parquet as pq

    return pq.ParquetWriter(
        sink,
        table.schema,
        compression=to.compression,
        use_dictionary=_repetitive(table),
        store_schema=False,
    )


def encoded_bytes(table: "pa.Table", to: Destination) -> int:
    """How large a file these rows would make."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with _writer(sink, table, to) as writer:
        writer.write_table(table)
    return int(sink.getvalue().size)


def mark(name: str) -> str:
    """A query or checkpoint in a file's name, of a shape that any file system and URL takes."""
    return hashlib.sha256(name.encode()).hexdigest()[:12]


def _repetitive(table: "pa.Table") -> list[str]:
    """The columns worth a dictionary: trying one on unique values costs more than all the rest."""
    import pyarrow.compute as pc
    import pyarrow.types as types

    sample = table.slice(0, _SAMPLE_ROWS)
    return [
        field.name
        for field in sample.schema
        if not types.is_nested(field.type)
        and pc.count_distinct(sample[field.name], mode="all").as_py() * 2 <= sample.num_rows
    ]


def _by_partition(
    batch: "pa.RecordBatch", to: Destination
) -> "Iterator[tuple[Values, pa.RecordBatch]]":
    if not to.partition_by:
        yield (), batch
        return
    import pyarrow as pa

    names = list(to.partition_by)
    rows = pa.table(batch.select(names)).append_column("__row", pa.array(range(batch.num_rows)))
    groups = rows.group_by(names, use_threads=False).aggregate([("__row", "list")])
    keep = batch if to.keeps_partition_columns else batch.drop_columns(names)
    for group in groups.to_pylist():
        values = tuple(value_text(group[name], to.keeps_partition_columns) for name in names)
        yield values, keep.take(pa.array(group["__row_list"]))


def value_text(value: object, keep_empty: bool) -> str | None:
    """A partition value as Delta's protocol and Hive's folders write it, where "" is null."""
    if value is None or (value == "" and not keep_empty):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _shown(value: str | None, exact: bool) -> str:
    """In a folder's name. Exact where readers parse it; elsewhere it is only for people's eyes."""
    if value is None:
        return "__HIVE_DEFAULT_PARTITION__"
    if exact:
        return re.sub(r'[\x00-\x1f"#%\'*/:=?\\\x7f{\[\]^]', lambda m: f"%{ord(m[0]):02X}", value)
    return re.sub(r"[^A-Za-z0-9_.-]", "_", value)[:64]


def write_all(files: PartFiles, batches: "Iterable[pa.RecordBatch]") -> list[WrittenFile]:
    """Every batch to files; on an error nothing stays behind."""
    try:
        for batch in batches:
            files.write(batch)
        written = files.finish()
    except OSError as error:
        files.discard()
        if error.errno in _FULL_OR_FORBIDDEN:
            raise TableError(
                f"cannot write below {files.folder}: {os.strerror(error.errno)}. Make room or grant"
                f" the right to write, and start again: the batch is repeated, no row is lost"
            ) from error
        raise
    except BaseException:
        files.discard()
        raise
    steps.reached("written")
    return written
