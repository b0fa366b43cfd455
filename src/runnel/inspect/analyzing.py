"""What the messages of a log are like: how many, how large, how compressed, of which kinds.

Runs of batches are decoded together into columns, so that small batches cost little, and only so
much of them at once that memory stays bounded. A batch that cannot be read is counted and passed
over: `verifying` says what is wrong with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import add, sub

from runnel.errors import RunnelError
from runnel.inspect.folders import PartitionFiles, SegmentFiles
from runnel.inspect.kinds import Kinds
from runnel.inspect.sizes import Sizes
from runnel.inspect.walking import READ_BYTES, Damage, walk
from runnel.native.columns import RecordColumns
from runnel.native.compression import codec_of
from runnel.native.records import decode
from runnel.ports import Disk, File
from runnel.storage.index import NO_TIMESTAMP
from runnel.storage.segment import SNAPSHOT
from runnel.wire.batch import CONTROL, HEADER_SIZE, LOG_OVERHEAD, TRANSACTIONAL, BatchHeader

RECORDS_AT_ONCE = 200_000
BYTES_AT_ONCE = 64 << 20
DECOMPRESSED_MAX_BYTES = 1 << 30


@dataclass
class CodecUse:
    """What one codec did. `bytes` as they lie in the file, `payload_bytes` as they were sent."""

    batches: int = 0
    messages: int = 0
    bytes: int = 0
    payload_bytes: int = 0

    @property
    def ratio(self) -> float:
        return self.payload_bytes / self.bytes if self.bytes else 0.0


@dataclass
class AnalyzedSegment:
    """What a retention asks."""

    files: SegmentFiles
    size: int
    next_offset: int
    max_timestamp: int = NO_TIMESTAMP

    @property
    def is_active(self) -> bool:
        return self.files.is_last

    def saw(self, headers: Sequence[BatchHeader]) -> None:
        self.next_offset = max(self.next_offset, headers[-1].next_offset)
        latest = max([header.max_timestamp for header in headers])
        self.max_timestamp = max(self.max_timestamp, latest)


@dataclass
class Analysis:
    """Of one partition; `add_all` makes it that of a topic or a folder."""

    kinds: Kinds | None = None
    messages: int = 0
    control_records: int = 0
    batches: int = 0
    bytes: int = 0
    with_key: int = 0
    null_values: int = 0
    headers: int = 0
    transactional_batches: int = 0
    unreadable_batches: int = 0
    unreadable_bytes: int = 0
    first_timestamp: int = NO_TIMESTAMP
    last_timestamp: int = NO_TIMESTAMP
    message_sizes: Sizes = field(default_factory=Sizes)  # key, value and headers together
    key_sizes: Sizes = field(default_factory=Sizes)
    value_sizes: Sizes = field(default_factory=Sizes)
    batch_sizes: Sizes = field(default_factory=Sizes)
    codecs: dict[str, CodecUse] = field(default_factory=dict)
    files: dict[str, list[int]] = field(default_factory=dict)  # count and bytes by suffix
    segments: list[AnalyzedSegment] = field(default_factory=list)
    _uses: dict[int, CodecUse] = field(default_factory=dict)  # by the attributes of a batch

    def add_all(self, other: "Analysis") -> None:
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _SIZES:
            getattr(self, name).add_all(getattr(other, name))
        self._add_times(other.first_timestamp, other.last_timestamp)
        for codec, use in other.codecs.items():
            mine = self.codecs.setdefault(codec, CodecUse())
            mine.batches += use.batches
            mine.messages += use.messages
            mine.bytes += use.bytes
            mine.payload_bytes += use.payload_bytes
        for suffix, (count, size) in other.files.items():
            self.count_file(suffix, size, count)

    def count_file(self, suffix: str, size: int, count: int = 1) -> None:
        entry = self.files.setdefault(suffix, [0, 0])
        entry[0] += count
        entry[1] += size

    def add_columns(self, columns: RecordColumns, counted_up_to: int) -> None:
        """One run; batches that start before `counted_up_to` were counted with an earlier one."""
        sizes: list[int] = []
        for header, position, _, row_count, control, payload_bytes in columns.batches:
            attributes = header.attributes
            use = self._uses.get(attributes)
            if use is None:
                codec = codec_of(attributes).name.lower()
                use = self._uses[attributes] = self.codecs.setdefault(codec, CodecUse())
            if control is None:
                use.messages += row_count
            if position < counted_up_to:
                continue
            size = header.length + LOG_OVERHEAD
            sizes.append(size)
            use.batches += 1
            use.bytes += size - HEADER_SIZE
            use.payload_bytes += payload_bytes
            if attributes & (TRANSACTIONAL | CONTROL):
                self.transactional_batches += header.is_transactional
                self.control_records += header.record_count if control is not None else 0
        self.batches += len(sizes)
        self.bytes += sum(sizes)
        self.batch_sizes.add(sizes)
        if columns.row_count:
            self._add_messages(columns)

    def _add_messages(self, columns: RecordColumns) -> None:
        rows = columns.row_count
        self.messages += rows
        self.with_key += rows - columns.keys.null_count
        self.null_values += columns.values.null_count
        times = memoryview(columns.timestamps).cast("q")
        self._add_times(min(times), max(times))
        key_ends = memoryview(columns.keys.offsets).cast("i")
        value_ends = memoryview(columns.values.offsets).cast("i")
        key_sizes = list(map(sub, key_ends[1:], key_ends))
        value_sizes = list(map(sub, value_ends[1:], value_ends))
        sizes = list(map(add, key_sizes, value_sizes))
        headers = columns.headers
        if headers is not None and headers.keys.data:
            sizes = list(map(add, sizes, self._header_sizes(columns)))
        self.key_sizes.add(key_sizes)
        self.value_sizes.add(value_sizes)
        self.message_sizes.add(sizes)
        if self.kinds is not None:
            self.kinds.add(columns, sizes)

    def _header_sizes(self, columns: RecordColumns) -> Sequence[int]:
        headers = columns.headers
        assert headers is not None
        ends = memoryview(headers.list_offsets).cast("i")
        self.headers += ends[-1]
        key_ends = memoryview(headers.keys.offsets).cast("i")
        value_ends = memoryview(headers.values.offsets).cast("i")
        up_to = [key_ends[at] + value_ends[at] for at in ends]
        return list(map(sub, up_to[1:], up_to))

    def _add_times(self, first: int, last: int) -> None:
        if first >= 0 and (self.first_timestamp < 0 or first < self.first_timestamp):
            self.first_timestamp = first
        self.last_timestamp = max(self.last_timestamp, last)


_COUNTS = (
    "messages", "control_records", "batches", "bytes", "with_key", "null_values", "headers",
    "transactional_batches", "unreadable_batches", "unreadable_bytes",
)  # fmt: skip
_SIZES = ("message_sizes", "key_sizes", "value_sizes", "batch_sizes")


def analyze_partition(
    disk: Disk,
    files: PartitionFiles,
    kinds: Kinds | None = None,
    advance: Callable[[int], None] = lambda _bytes: None,
) -> Analysis:
    """`kinds` may be shared among partitions. `advance` is told how many bytes are done."""
    analysis = Analysis(kinds=kinds)
    for size in files.snapshots.values():
        analysis.count_file(SNAPSHOT, size)
    done = 0
    for segment in files.segments:
        try:
            file = disk.open(segment.path())
        except FileNotFoundError:
            continue
        for suffix, size in segment.sizes.items():
            analysis.count_file(suffix, size)
        size = file.size()
        analysis.segments.append(AnalyzedSegment(segment, size, segment.base_offset))
        position = 0
        while position < size and (read := _analyze_window(file, position, size, analysis)):
            position += read
            advance(done + position)
        analysis.unreadable_bytes += size - position
        done += size
    return analysis


def _analyze_window(file: File, position: int, size: int, analysis: Analysis) -> int:
    """The batches that start within the next few megabytes; how many bytes they take."""
    window = memoryview(file.read_at(position, min(READ_BYTES, size - position)))
    read, is_damaged = _analyze_run(window, analysis)
    if read and not is_damaged:
        return read
    # A batch larger than the window, or one of it is damaged: one by one.
    for item in walk(file, size, position + read):
        if isinstance(item, Damage) or read >= len(window):
            break
        if _analyze_run(item.raw, analysis)[1]:
            analysis.unreadable_batches += 1
            analysis.unreadable_bytes += item.header.size
        read += item.header.size
    return read


def _analyze_run(window: memoryview, analysis: Analysis) -> tuple[int, bool]:
    """How many bytes of it are counted, and whether it went no further because of a damage."""
    position, counted, from_offset = 0, 0, 0
    segment = analysis.segments[-1]
    while position < len(window):
        try:
            columns = decode(
                window, position=position, from_offset=from_offset,
                max_records=RECORDS_AT_ONCE, max_bytes=BYTES_AT_ONCE,
                max_decompressed_bytes=DECOMPRESSED_MAX_BYTES,
            )  # fmt: skip
        except RunnelError:
            return position, True
        if not columns.batches:
            break
        analysis.add_columns(columns, counted)
        segment.saw([batch.header for batch in columns.batches])
        position, counted = columns.position, columns.batches[-1].position + 1
        from_offset = columns.next_offset if position < counted else 0
    return position, False
