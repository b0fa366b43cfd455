"""All lines of a topic that can be searched: those in the index, and in the topic what it lacks."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final, NamedTuple, Self

from runnel.logs.filters import Filters, LogRecord
from runnel.logs.index import Index, Listed, Span
from runnel.logs.segment import Segment, SegmentInfo
from runnel.logs.topics import Source, needle_of

SCANNED_FIRST: Final = 10_000  # offsets of the topic looked at in one go, from the end backwards,
SCANNED_MAX: Final = 500_000  # and twice as many the next time, up to this
NEAR: Final = 16  # offsets that may be no lines: markers of transactions, what compaction took

Advance = Callable[[int], None]  # is told how many offsets of the topic were looked at


class Piece(NamedTuple):
    """A range that one segment covers, or none does."""

    span: Span
    segment: SegmentInfo | None


class Corpus:
    """Keeps the segments open that it has looked into. Use it as a context manager."""

    def __init__(self, index: Index | None, source: Source | None) -> None:
        """Raises LogIndexError if the index is of another topic, and what the source raises."""
        self._index, self._source = index, source
        self.listed = index.listed() if index is not None else Listed("")
        if source is not None and index is not None:
            index.ensure_same(self.listed, source.topic_id)
        self.bounds = self._bounds()
        self._open: dict[str, Segment] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def pieces(self, partition: int, span: Span) -> list[Piece]:
        """What a range consists of, in order; ranges that cannot be read are left out."""
        found = [
            Piece(Span(max(info.start, span.start), min(info.end, span.end)), info)
            for info in self.listed.of(partition)
            if info.start < span.end and span.start < info.end
        ]
        if self._source is not None:
            found += [Piece(gap, None) for gap in self.listed.missing(partition, *span)]
        return sorted(found, key=lambda piece: piece.span.start)

    def wanted(self, filters: Filters) -> dict[int, Span]:
        """By partition, where lines of the wanted time can be."""
        bounds = self.bounds
        if filters.since_ms is not None and self._source is not None:
            starts = self._source.at(filters.since_ms)
            bounds = {
                at: Span(max(span.start, starts.get(at, span.start)), span.end)
                for at, span in bounds.items()
            }
        return {at: span for at, span in bounds.items() if span.start < span.end}

    def backwards(
        self, filters: Filters, piece: Piece, partition: int, keep: int, advance: Advance
    ) -> Iterator[LogRecord]:
        """Newest first, those that may match. Of the topic itself `keep` of those that do match are
        remembered at a time.
        """
        if piece.segment is not None:
            info = piece.segment
            if filters.since_ms is not None and info.max_ms < filters.since_ms:
                return
            if filters.until_ms is not None and info.min_ms >= filters.until_ms:
                return
            yield from self._segment(info).candidates(filters, *piece.span)
            return
        assert self._source is not None, "pieces without a segment are of the topic"
        needle, end, size = needle_of(filters), piece.span.end, SCANNED_FIRST
        while end > piece.span.start:
            start = max(piece.span.start, end - size)
            last: deque[LogRecord] = deque(maxlen=keep)
            for records in self._source.records(partition, Span(start, end), needle):
                last.extend(record for record in records if filters.found(record) is not None)
            advance(end - start)
            yield from reversed(last)
            end, size = start, min(2 * size, SCANNED_MAX)

    def before(self, partition: int, offset: int, count: int) -> list[LogRecord]:
        """The last so many lines before an offset, in order."""
        found: list[LogRecord] = []
        bound = self.bounds[partition]
        for piece in reversed(self.pieces(partition, Span(bound.start, offset))):
            left = count - len(found)
            if left <= 0:
                break
            if piece.segment is not None:
                more = self._segment(piece.segment).before(piece.span.end, left)
            else:
                start = max(piece.span.start, piece.span.end - left - NEAR)
                more = self._read(partition, Span(start, piece.span.end))[-left:]
            found = more + found
        return found

    def after(self, partition: int, offset: int, count: int) -> list[LogRecord]:
        """The first so many lines from an offset on."""
        found: list[LogRecord] = []
        bound = self.bounds[partition]
        for piece in self.pieces(partition, Span(offset, bound.end)):
            left = count - len(found)
            if left <= 0:
                break
            if piece.segment is not None:
                found += self._segment(piece.segment).after(piece.span.start, left)
            else:
                end = min(piece.span.end, piece.span.start + left + NEAR)
                found += self._read(partition, Span(piece.span.start, end))[:left]
        return found

    def _read(self, partition: int, span: Span) -> list[LogRecord]:
        assert self._source is not None, "pieces without a segment are of the topic"
        return [record for page in self._source.records(partition, span) for record in page]

    def _segment(self, info: SegmentInfo) -> Segment:
        assert self._index is not None, "who lists segments has an index"
        if info.file not in self._open:
            segment = Segment(self._index.folder, info)
            self._open[info.file] = self._stack.enter_context(segment)
        return self._open[info.file]

    def _bounds(self) -> dict[int, Span]:
        """The topic's own; what it has deleted is not found any more. Else the index's."""
        if self._source is not None:
            return self._source.bounds()
        partitions = {info.partition for info in self.listed.segments}
        spans = {at: self.listed.covered(at) for at in sorted(partitions)}
        return {at: Span(found[0].start, found[-1].end) for at, found in spans.items()}
