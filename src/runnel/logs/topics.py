"""The lines of a topic itself, from its broker or from the folder of one that is down.

Where they are many they are read through `runnel.arrow`, from segment files if these are on this
machine, and only values that hold a certain word are taken out of its columns. A few lines come
through the small client of the commands, which needs no pyarrow.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol

from runnel.arrow.errors import SourceError
from runnel.arrow.locating import Locator
from runnel.arrow.offline import Folders
from runnel.arrow.ranges import Range, Scan
from runnel.client.admin import EARLIEST, LATEST, list_offsets
from runnel.client.cluster import Cluster
from runnel.client.reading import Reader
from runnel.logs.filters import OWN_FIELDS, Filters, LogRecord
from runnel.logs.index import Span
from runnel.logs.query import tokens_of

if TYPE_CHECKING:
    import pyarrow as pa

FEW_LINES: Final = 20_000  # up to which pyarrow is not worth its import
_COLUMNS: Final = ("value", "offset", "timestamp")


class Source(Protocol):
    """Where the lines of one topic come from. Only what is committed is read."""

    @property
    def topic_id(self) -> str:
        """In hexadecimal digits; empty if it has none."""
        ...

    def bounds(self) -> dict[int, Span]:
        """By partition: the first offset, and that after the last."""
        ...

    def at(self, timestamp_ms: int) -> dict[int, int]:
        """By partition: the first offset whose record is not earlier; the end if all are."""
        ...

    def records(
        self, partition: int, span: Span, needle: bytes | None = None
    ) -> Iterator[list[LogRecord]]:
        """In order; with a needle at least those whose value has it, in whatever case."""
        ...


def needle_of(filters: Filters) -> bytes | None:
    """A word that stands in the bytes of every line that matches, in lower case.

    Only one of ASCII: others may be escaped in JSON. Names of fields that every line has do not
    count, as loggers name them each in their own way.
    """
    words = [token for term in filters.query.terms if not term.is_not for token in term.tokens]
    for name, text in filters.fields.items():
        if name not in OWN_FIELDS:
            words += tokens_of(name)
        if name != "level":
            words += tokens_of(text)
    if len(filters.services) == 1:
        words += tokens_of(filters.services[0])
    usable = [word for word in words if word.isascii()]
    return max(usable, key=_rarity).encode() if usable else None


def _rarity(word: str) -> tuple[int, int]:
    """Letters say more than digits, which are in times and numbers everywhere."""
    return sum(map(str.isalpha, word)), len(word)


class BrokerSource:
    """Through a cluster that is connected; raises its ClientError, and ReadError."""

    def __init__(self, cluster: Cluster, bootstrap: str, topic: str) -> None:
        self._cluster, self._topic = cluster, topic
        found = cluster.topic(topic)
        self.topic_id = found.topic_id.hex() if any(found.topic_id) else ""
        self._partitions = [row.partition_index for row in found.partitions]
        self._scan = Scan(
            {"bootstrap.servers": bootstrap}, _COLUMNS, read_committed=True, fail_on_data_loss=False
        )
        self._locator = Locator(self._scan)

    def bounds(self) -> dict[int, Span]:
        starts = list_offsets(self._cluster, self._topic, dict.fromkeys(self._partitions, EARLIEST))
        ends = list_offsets(
            self._cluster, self._topic, dict.fromkeys(self._partitions, LATEST), committed=True
        )
        return {at: Span(starts[at], max(starts[at], ends[at])) for at in self._partitions}

    def at(self, timestamp_ms: int) -> dict[int, int]:
        ends = list_offsets(
            self._cluster, self._topic, dict.fromkeys(self._partitions, LATEST), committed=True
        )
        wanted = dict.fromkeys(self._partitions, max(0, timestamp_ms))
        found = list_offsets(self._cluster, self._topic, wanted, committed=True)
        return {at: ends[at] if offset < 0 else offset for at, offset in found.items()}

    def records(
        self, partition: int, span: Span, needle: bytes | None = None
    ) -> Iterator[list[LogRecord]]:
        if span.end - span.start <= FEW_LINES or find_spec("pyarrow") is None:
            starts, ends = {partition: span.start}, {partition: span.end}
            reader = Reader(self._cluster, self._topic, starts, ends, committed=True)
            for page in reader.pages():
                yield [
                    LogRecord(partition, found.record.offset, found.record.timestamp, value)
                    for found in page
                    if (value := found.record.value) and (needle is None or needle in value.lower())
                ]
            return
        piece = Range(self._topic, partition, span.start, span.end)
        (placed,) = self._locator.placed([piece], self._cluster)
        yield from _scanned(self._scan, placed, needle)


class FolderSource:
    """The data folder of a broker; raises OfflineError, ReadError. Needs pyarrow."""

    def __init__(self, path: str, topic: str) -> None:
        if find_spec("pyarrow") is None:
            raise SourceError("reading a folder needs pyarrow: pip install 'runnel[sql]'")
        self._folders, self._topic = Folders(path), topic
        self._partitions = self._folders.partitions(topic)
        topic_id = self._folders.topic_id(topic)
        self.topic_id = topic_id.hex() if any(topic_id) else ""
        self._scan = Scan(
            {}, _COLUMNS, read_committed=True, read_mode="local", path=path, fail_on_data_loss=False
        )
        self._locator = Locator(self._scan)

    def bounds(self) -> dict[int, Span]:
        return {
            at: Span(*self._folders.earliest_and_latest(self._topic, at, read_committed=True))
            for at in self._partitions
        }

    def at(self, timestamp_ms: int) -> dict[int, int]:
        bounds = self.bounds()
        found = {
            at: self._folders.offset_for_timestamp(
                self._topic, at, timestamp_ms, read_committed=True
            )
            for at in self._partitions
        }
        return {at: bounds[at].end if offset is None else offset for at, offset in found.items()}

    def records(
        self, partition: int, span: Span, needle: bytes | None = None
    ) -> Iterator[list[LogRecord]]:
        piece = Range(self._topic, partition, span.start, span.end)
        (placed,) = self._locator.placed([piece], None)
        yield from _scanned(self._scan, placed, needle)


def _scanned(scan: Scan, piece: Range, needle: bytes | None) -> Iterator[list[LogRecord]]:
    from runnel.arrow.scan import read

    for batch in read(scan, piece):
        yield records_of(batch, piece.partition, needle)


def records_of(
    batch: "pa.RecordBatch", partition: int, needle: bytes | None = None
) -> list[LogRecord]:
    """Of columns value, offset and timestamp; records without a value are no lines."""
    import pyarrow as pa

    values = batch.column("value")
    if needle is not None:
        rows = pa.array(_rows_with(needle, values), pa.int64())
        batch = batch.take(rows)
        values = batch.column("value")
    offsets = batch.column("offset").to_pylist()
    stamps_us = batch.column("timestamp").view(pa.int64()).to_pylist()
    columns = zip(offsets, stamps_us, values.to_pylist(), strict=True)
    return [
        LogRecord(partition, offset, stamp_us // 1000, value)
        for offset, stamp_us, value in columns
        if value
    ]


def _rows_with(needle: bytes, values: "pa.Array") -> list[int]:
    """Looks through the bytes of all values at once."""
    _, ends_buffer, data = values.buffers()
    if data is None or not len(values):
        return []
    ends = memoryview(ends_buffer).cast("B").cast("i")
    ends = ends[values.offset : values.offset + len(values) + 1]
    return rows_with(needle, bytes(memoryview(data)[: ends[-1]]).lower(), ends)


def rows_with(needle: bytes, data: bytes, ends: Sequence[int]) -> list[int]:
    """Numbers of the rows, row r being data[ends[r] : ends[r + 1]], that hold the needle."""
    rows: list[int] = []
    at = data.find(needle, ends[0])
    while at >= 0:
        row = bisect_right(ends, at) - 1
        if row >= len(ends) - 1:
            break
        if at + len(needle) <= ends[row + 1]:
            rows.append(row)
            at = data.find(needle, ends[row + 1])
        else:
            at = data.find(needle, at + 1)
    return rows
