"""Small files of a table into few of a good size: which, into how many, and the writing itself.

Files from half the size wanted to one and a half are good. What is outside of that is read in the
order in which it was written, and comes out as files of equal size; how large they will be is
learnt from a sample, since many tiny files hold far less than they weigh.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from runnel.spark.lake.attempts import Attempt
from runnel.spark.lake.kept_files import Kept, KeptFile, file_batches
from runnel.spark.lake.part_files import (
    NO_BATCHES,
    Destination,
    PartFiles,
    Values,
    WrittenFile,
    encoded_bytes,
)

if TYPE_CHECKING:
    import pyarrow as pa

LEAST, MOST = 0.5, 1.5
SAMPLE_BYTES: Final = 32 << 20
_SAMPLED_FILES: Final = 32

Heard = Callable[[int], None]  # is told the bytes of each file that has been read


class Group(NamedTuple):
    """Files of one partition that are to become others."""

    values: Values
    files: tuple[KeptFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


def groups(kept: Kept, target_bytes: int, *, least_files: int = 2) -> list[Group]:
    """What is worth rewriting; `least_files` fewer than that in a partition stay as they are."""
    parts: dict[Values, list[KeptFile]] = {}
    for file in (file for file in kept.files if file.path not in kept.pinned):
        parts.setdefault(file.values, []).append(file)
    found = [_group(values, files, target_bytes, least_files) for values, files in parts.items()]
    return [group for group in found if group is not None]


def _group(
    values: Values, files: Sequence[KeptFile], target_bytes: int, least_files: int
) -> Group | None:
    small = [file for file in files if file.size_bytes < LEAST * target_bytes]
    large = [file for file in files if file.size_bytes > MOST * target_bytes]
    chosen = {*(small if len(small) >= least_files else ()), *large}
    good = [file for file in files if file not in chosen and file not in small]
    total_bytes = sum(file.size_bytes for file in chosen)
    if chosen and total_bytes < LEAST * target_bytes and good:
        chosen.add(min(good, key=lambda file: file.size_bytes))  # else one is left that is small
    if len(chosen) < 2 and not large:
        return None
    return Group(values, tuple(file for file in files if file in chosen))


def rewrite(
    kept: Kept, group: Group, to: Destination, attempt: Attempt, number: int, heard: Heard
) -> list[WrittenFile]:
    """New files with the rows of a group; nobody sees them before they are committed."""
    rows = sum(_rows(file) for file in group.files)
    row_bytes = _row_bytes(kept, group, to)
    count = max(1, round(rows * row_bytes / to.target_file_bytes))
    rows_each = -(-rows // count)
    endless = to.whole()
    files = PartFiles(endless, attempt, NO_BATCHES, number)
    try:
        left = rows_each
        for batch in _batches(kept, group, heard):
            start = 0
            while start < batch.num_rows:
                part = batch.slice(start, left)
                files.write_part(group.values, part)
                start += part.num_rows
                left -= part.num_rows
                if left == 0:
                    files.end_part(group.values)
                    left = rows_each
        return files.finish()
    except BaseException:
        files.discard()
        raise


def _batches(kept: Kept, group: Group, heard: Heard) -> "Iterator[pa.RecordBatch]":
    for file in group.files:
        yield from file_batches(kept, file)
        heard(file.size_bytes)


def _rows(file: KeptFile) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(file.path).num_rows)


def _row_bytes(kept: Kept, group: Group, to: Destination) -> float:
    import pyarrow as pa

    step = max(1, len(group.files) // _SAMPLED_FILES)
    batches: list[pa.RecordBatch] = []
    taken_bytes = 0
    for file in islice(group.files, 0, None, step):
        for batch in islice(file_batches(kept, file), 4):
            batches.append(batch)
            taken_bytes += batch.nbytes
        if taken_bytes >= SAMPLE_BYTES:
            break
    table = pa.Table.from_batches(batches, kept.file_schema)
    return float(encoded_bytes(table, to) / max(1, table.num_rows))
