"""Segments of the index from columns of Arrow: what a task of Spark does with the rows it gets.

A task has rows of one range of a partition, in order; where there are others, each gets segments of
its own. What the index has already is left out, so that a batch that is tried again, or a stream
that begins again, adds nothing twice. The driver puts the segments into the index.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from runnel.logs.filters import LogRecord
from runnel.logs.index import SEGMENT_LINES, Index, Listed, Span
from runnel.logs.segment import SegmentInfo, SegmentWriter
from runnel.logs.topics import records_of

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "value")


class Made(NamedTuple):
    """A finished segment that is in no list yet."""

    topic: str
    info: SegmentInfo


def segments_of(batches: "Iterator[pa.RecordBatch]", root: Path) -> Iterator[Made]:
    """All segments of these rows, each when it is finished."""
    growing: _Growing | None = None
    try:
        for batch in batches:
            for topic, partition, rows in _parts(batch):
                if growing is None or not growing.takes(topic, partition):
                    if growing is not None:
                        yield from growing.finished()
                    growing = _Growing(Index(root, topic), partition)
                yield from growing.grown(rows)
        if growing is not None:
            yield from growing.finished()
            growing = None
    finally:
        if growing is not None:  # the task has failed
            growing.discard()


class _Growing:
    """The segments of one partition, one after the other."""

    def __init__(self, index: Index, partition: int) -> None:
        self._index, self._partition = index, partition
        self._listed: Listed = index.listed()
        self._writer: SegmentWriter | None = None
        self._end = -1  # the offset after the last that was given
        index.folder.mkdir(parents=True, exist_ok=True)

    def takes(self, topic: str, partition: int) -> bool:
        return (topic, partition) == (self._index.topic, self._partition)

    def grown(self, rows: "pa.RecordBatch") -> Iterator[Made]:
        offsets = rows.column("offset")
        span = Span(offsets[0].as_py(), offsets[len(offsets) - 1].as_py() + 1)
        records = records_of(rows, self._partition)
        for gap in self._listed.missing(self._partition, *span):
            if self._writer is not None and not self._is_next(gap.start):
                yield from self.finished()
            if self._writer is None:
                self._writer = SegmentWriter(self._index.folder, self._partition, gap.start)
            whole = gap == span
            self._writer.add(records if whole else _within(records, gap))
            self._end = gap.end
            if self._writer.lines >= SEGMENT_LINES:
                yield from self.finished()

    def finished(self) -> Iterator[Made]:
        writer, self._writer = self._writer, None
        if writer is not None:
            with writer:
                yield Made(self._index.topic, writer.finish(self._end))

    def discard(self) -> None:
        if self._writer is not None:
            self._writer.discard()

    def _is_next(self, offset: int) -> bool:
        """Whether what lies between is nothing: no lines, and none that are indexed elsewhere."""
        if offset < self._end:
            return False
        between = self._listed.missing(self._partition, self._end, offset)
        return offset == self._end or between == [Span(self._end, offset)]


def _within(records: list[LogRecord], span: Span) -> list[LogRecord]:
    return [record for record in records if span.start <= record.offset < span.end]


def _parts(batch: "pa.RecordBatch") -> "Iterator[tuple[str, int, pa.RecordBatch]]":
    """Runs of rows of one partition; nearly always there is one."""
    topics, partitions = batch.column("topic"), batch.column("partition")
    start, count = 0, batch.num_rows
    while start < count:
        first = topics[start].as_py(), partitions[start].as_py()
        end = count if _is_one(batch, start) else start + 1
        while end < count and (topics[end].as_py(), partitions[end].as_py()) == first:
            end += 1
        yield *first, batch.slice(start, end - start)
        start = end


def _is_one(batch: "pa.RecordBatch", start: int) -> bool:
    """Whether all rows from there on are of one partition."""
    import pyarrow.compute as pc

    rest = batch.slice(start)
    return all(
        pc.all(pc.equal(column, column[0])).as_py()
        for column in (rest.column("partition"), rest.column("topic"))
    )
