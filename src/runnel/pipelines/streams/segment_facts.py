"""What segment files hold, as rows to be added up: in a task of Spark, or anywhere else.

Everything in the files counts, also what was aborted: it takes up room all the same. For each run
of batches there is one row of facts for each day, and one for each different key and each different
record of the day, as a hash of 64 bits, of which Spark counts how many there are in all segments.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from runnel.errors import RunnelError
from runnel.inspect.walking import READ_BYTES, Damage, walk
from runnel.native.columns import BinaryColumn, RecordColumns
from runnel.native.records import decode
from runnel.storage.files import OsDisk
from runnel.wire.batch import HEADER_SIZE, LOG_OVERHEAD

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from runnel.ports import File

DAY_MS: Final = 86_400_000
RECORDS_AT_ONCE: Final = 200_000
BYTES_AT_ONCE: Final = 64 << 20
DECOMPRESSED_MAX_BYTES: Final = 1 << 30
NO_TIME: Final = -1
FACTS, KEY, RECORD = "facts", "key", "record"  # in the column `what`
COUNTS: Final = (
    "batches",
    "disk_bytes",
    "body_bytes",  # of batches without their headers, as they are on disk,
    "payload_bytes",  # and not compressed
    "records",
    "message_bytes",  # of keys and values
    "control_records",
    "tombstones",
    "keyed",
    "unreadable_bytes",
)
SCHEMA: Final = (
    "what STRING, topic STRING, day INT, hash BIGINT, first_ms BIGINT, last_ms BIGINT, "
    + ", ".join(f"{name} BIGINT" for name in COUNTS)
)


class Segment(NamedTuple):
    """The work of one moment; `size_bytes` is how far it is read."""

    path: str
    topic: str
    size_bytes: int


def facts(segments: Iterable[Segment]) -> "Iterator[pa.RecordBatch]":
    """Rows of `SCHEMA`. A segment that is gone meanwhile has none."""
    disk = OsDisk(read_only=True)
    for segment in segments:
        try:
            file = disk.open(segment.path)
        except FileNotFoundError:
            continue
        yield from _of(file, segment)


def _of(file: "File", segment: Segment) -> "Iterator[pa.RecordBatch]":
    position, size = 0, min(segment.size_bytes, file.size())
    while position < size:
        found = _Run(segment.topic)
        read = _window(file, position, size, found)
        position += read
        if not read:  # a torn end, or what is no batch: nothing after it can be told apart
            found.days[_day(NO_TIME)]["unreadable_bytes"] += size - position
            position = size
        yield from found.batches()


def _window(file: "File", position: int, size: int, found: "_Run") -> int:
    """The batches that start within the next few megabytes; how many bytes they take."""
    window = memoryview(file.read_at(position, min(READ_BYTES, size - position)))
    read, is_damaged = _decoded(window, found)
    if read and not is_damaged:
        return read
    # A batch larger than the window, or a damaged one: one by one.
    for item in walk(file, size, position + read):
        if isinstance(item, Damage) or read >= len(window):
            break
        if _decoded(item.raw, found)[1]:
            header = item.header
            found.days[_day(header.max_timestamp)]["unreadable_bytes"] += header.size
        read += item.header.size
    return read


def _decoded(window: memoryview, found: "_Run") -> tuple[int, bool]:
    """How many bytes of it were read, and whether damage ended it."""
    position, counted, from_offset = 0, 0, 0
    while position < len(window):
        try:
            columns = decode(
                window,
                position=position,
                from_offset=from_offset,
                max_records=RECORDS_AT_ONCE,
                max_bytes=BYTES_AT_ONCE,
                headers=False,
                max_decompressed_bytes=DECOMPRESSED_MAX_BYTES,
            )
        except RunnelError:
            return position, True
        if not columns.batches:
            break
        found.add(columns, counted)
        position, counted = columns.position, columns.batches[-1].position + 1
        from_offset = columns.next_offset if position < counted else 0
    return position, False


class _Run:
    """What a few megabytes of a segment hold."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self.days: dict[int, Counter[str]] = _Days()
        self._times: dict[int, tuple[int, int]] = {}
        self._hashes: list[tuple[str, NDArray[np.int64], NDArray[np.int64]]] = []

    def add(self, columns: RecordColumns, counted_up_to: int) -> None:
        """Batches that start before `counted_up_to` were counted with what came before."""
        for header, position, _, _, control, payload_bytes in columns.batches:
            if position < counted_up_to:
                continue
            size = header.length + LOG_OVERHEAD
            day = self.days[_day(header.max_timestamp)]
            day["batches"] += 1
            day["disk_bytes"] += size
            if control is None:
                day["body_bytes"] += size - HEADER_SIZE
                day["payload_bytes"] += payload_bytes
            else:
                day["control_records"] += header.record_count
        if columns.row_count:
            self._add_records(columns)

    def _add_records(self, columns: RecordColumns) -> None:
        import numpy as np

        times = np.frombuffer(columns.timestamps, dtype=np.int64)
        days = times // DAY_MS
        has_key, has_value = (
            ~_nulls(column, columns.row_count) for column in (columns.keys, columns.values)
        )
        sizes = _sizes(columns.keys) + _sizes(columns.values)
        for day in np.unique(days).tolist():
            mine = days == day
            counts = self.days[day]
            counts["records"] += int(mine.sum())
            counts["message_bytes"] += int(sizes[mine].sum())
            counts["keyed"] += int((mine & has_key).sum())
            counts["tombstones"] += int((mine & has_key & ~has_value).sum())
            first, last = self._times.get(day, (1 << 62, NO_TIME))
            self._times[day] = (
                min(first, int(times[mine].min())),
                max(last, int(times[mine].max())),
            )
        keys, values = (
            hashes(column, columns.row_count) for column in (columns.keys, columns.values)
        )
        self._hashes.append((KEY, days[has_key], keys[has_key]))
        self._hashes.append((RECORD, days, keys * np.int64(31) + values))

    def batches(self) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        yield _batch(
            self._topic,
            FACTS,
            pa.array(list(self.days), pa.int32()),
            {
                "first_ms": [self._times.get(day, (None, None))[0] for day in self.days],
                "last_ms": [self._times.get(day, (None, None))[1] for day in self.days],
                **{name: [counts[name] for counts in self.days.values()] for name in COUNTS},
            },
        )
        for what, days, found in self._hashes:
            if len(found):
                yield _unique(self._topic, what, days, found)


class _Days(dict[int, Counter[str]]):
    def __missing__(self, day: int) -> Counter[str]:
        return self.setdefault(day, Counter())


def hashes(column: BinaryColumn, rows: int) -> "NDArray[np.int64]":
    """Of 64 bits, the same everywhere; nulls have one too."""
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    buffers = [pa.py_buffer(part) for part in (column.validity, column.offsets, column.data)]
    values = pa.Array.from_buffers(pa.binary(), rows, buffers).to_numpy(zero_copy_only=False)
    found: NDArray[np.int64] = pd.util.hash_array(values, categorize=False).view(np.int64)
    return found


def _unique(
    topic: str, what: str, days: "NDArray[np.int64]", found: "NDArray[np.int64]"
) -> "pa.RecordBatch":
    import pandas as pd
    import pyarrow as pa

    once = pd.DataFrame({"day": days, "hash": found}).drop_duplicates()
    return _batch(
        topic,
        what,
        pa.array(once["day"].to_numpy(), pa.int32()),
        {"hash": pa.array(once["hash"].to_numpy(), pa.int64())},
    )


def _batch(
    topic: str, what: str, days: "pa.Array", columns: "dict[str, object]"
) -> "pa.RecordBatch":
    import pyarrow as pa

    count = len(days)
    named = {
        "what": pa.repeat(pa.scalar(what, pa.string()), count),
        "topic": pa.repeat(pa.scalar(topic, pa.string()), count),
        "day": days,
    }
    for name in ("hash", "first_ms", "last_ms", *COUNTS):
        given = columns.get(name)
        named[name] = pa.nulls(count, pa.int64()) if given is None else pa.array(given, pa.int64())
    return pa.RecordBatch.from_pydict(named)


def _day(timestamp_ms: int) -> int:
    return timestamp_ms // DAY_MS


def _nulls(column: BinaryColumn, rows: int) -> "NDArray[np.bool_]":
    import numpy as np

    bits = np.unpackbits(np.frombuffer(column.validity, dtype=np.uint8), bitorder="little")
    found: NDArray[np.bool_] = bits[:rows] == 0
    return found


def _sizes(column: BinaryColumn) -> "NDArray[np.int64]":
    import numpy as np

    return np.diff(np.frombuffer(column.offsets, dtype=np.int32)).astype(np.int64)
