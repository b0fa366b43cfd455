"""How each partition stands, and how full the data folders are, as rows for the exporter."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from runnel.broker.partition import Partition
from runnel.broker.partitions import Partitions
from runnel.broker.shared_rows import NO_ROW, SharedNames, SharedRows
from runnel.exporter.layout import DIRS, PARTITIONS, Slot
from runnel.metrics import Metrics
from runnel.ports import Space, Workers
from runnel.storage.log import Log
from runnel.storage.segment import Segment
from runnel.storage.store_state import directory_of

LOOKED_INTO_PER_TICK: Final = 200  # files, for the time of their first batch


class _Told:
    """The row of one partition, and what stands in it."""

    __slots__ = (
        "_high_watermark",
        "_is_leader",
        "_is_offline",
        "_last_stable_offset",
        "_log",
        "_log_end_offset",
        "_log_start_offset",
        "_oldest_ms",
        "_segment_count",
        "_size_bytes",
        "row",
        "topic",
    )

    def __init__(self, row: int, topic: int) -> None:
        self.row = row
        self.topic = topic  # its number
        self._log: Log | None = None

    def is_so(self, partition: Partition, log: Log, oldest_ms: int) -> bool:
        """Whether it says what is. Compiled, to compare takes a tenth of writing."""
        return (
            self._log is log
            and self._log_end_offset == log.log_end_offset
            and self._log_start_offset == log.log_start_offset
            and self._high_watermark == partition.high_watermark
            and self._last_stable_offset == partition.last_stable_offset
            and self._size_bytes == log.size_bytes
            and self._segment_count == len(log.segments)
            and self._oldest_ms == oldest_ms
            and self._is_leader == partition.is_leader
            and self._is_offline == (log.offline is not None)
        )

    def note(self, partition: Partition, log: Log, oldest_ms: int) -> None:
        self._log = log  # another one is in another folder
        self._log_end_offset = log.log_end_offset
        self._log_start_offset = log.log_start_offset
        self._high_watermark = partition.high_watermark
        self._last_stable_offset = partition.last_stable_offset
        self._size_bytes = log.size_bytes
        self._segment_count = len(log.segments)
        self._oldest_ms = oldest_ms
        self._is_leader = partition.is_leader
        self._is_offline = log.offline is not None


class PartitionGauges:
    def __init__(self, metrics: Metrics, names: SharedNames, partitions: Partitions) -> None:
        assert metrics.shared is not None
        self._metrics = metrics
        self._names = names
        self._partitions = partitions
        self._table = SharedRows(metrics.shared, PARTITIONS, metrics)
        self._rows: dict[Partition, _Told] = {}
        self._dirs: dict[str, int] = {}
        self._unknown: dict[Segment, Partition] = {}  # whose first batch nobody has looked at

    @property
    def is_settled(self) -> bool:
        """Every partition there is has its row, and there is no other row."""
        left_out = self._metrics.slots[Slot.PARTITIONS_LEFT_OUT]
        return len(self._rows) + left_out == len(self._partitions)

    def refresh_each(self, partitions: Iterable[Partition]) -> Iterator[None]:
        for partition in partitions:
            self._refresh(partition)
            yield

    def sweep(self) -> Iterator[None]:
        left_out = 0
        for partitions in self._partitions.by_topic():
            for partition in partitions:
                left_out += not self._refresh(partition)
                yield
        self._metrics.slots[Slot.PARTITIONS_LEFT_OUT] = left_out
        if not self.is_settled:  # some are gone
            for partition in list(self._rows):
                if not self._is_held(partition):
                    self._forget(partition)
                yield

    def _is_held(self, partition: Partition) -> bool:
        return self._partitions.find(*partition.topic_partition) is partition

    def _forget(self, partition: Partition) -> None:
        self._table.give_back(self._rows.pop(partition).row)
        self._names.give_back(partition.topic_partition.topic)

    def _place(self, partition: Partition) -> _Told | None:
        """A row for a partition that has none; None if there is no room."""
        row = self._table.take()
        if row == NO_ROW:
            return None
        topic = self._names.take(partition.topic_partition.topic)
        if not topic:
            self._table.give_back(row)
            return None
        told = self._rows[partition] = _Told(row, topic)
        return told

    def _refresh(self, partition: Partition) -> bool:
        """False: there is no row for it."""
        log, told = partition.log, self._rows.get(partition)
        first = log.segments[0]
        oldest_ms = first.known_first_timestamp
        if oldest_ms is None:
            oldest_ms = -1
            if len(self._unknown) < LOOKED_INTO_PER_TICK and self._is_held(partition):
                self._unknown[first] = partition
        if told is not None and told.is_so(partition, log, oldest_ms):
            return True
        if not self._is_held(partition):
            return True
        if told is None:
            told = self._place(partition)
            if told is None:
                return False
        told.note(partition, log, oldest_ms)
        self._table.write(
            told.row,
            told.topic,
            log.index,
            partition.is_leader,
            log.offline is not None,
            self._dir(directory_of(log)),
            log.log_start_offset,
            log.log_end_offset,
            partition.high_watermark,
            partition.last_stable_offset,
            log.size_bytes,
            len(log.segments),
            oldest_ms,
        )
        return True

    def _dir(self, path: str) -> int:
        number = self._dirs.get(path)
        if number is None:
            number = self._dirs[path] = self._names.take(path)
        return number

    async def look_for_oldest(self, workers: Workers) -> None:
        """In a worker, because after a start nothing of it is in memory."""
        unknown, self._unknown = self._unknown, {}
        if not unknown:
            return
        readings = [segment.reading_first_timestamp() for segment in unknown]
        found = await workers.run(partial(_read_each, readings))
        for (segment, partition), timestamp in zip(unknown.items(), found, strict=True):
            segment.learn_first_timestamp(timestamp)
            self._refresh(partition)


def _read_each(readings: "list[partial[int]]") -> list[int]:
    return [reading() for reading in readings]


class DirGauges:
    def __init__(self, metrics: Metrics, names: SharedNames) -> None:
        assert metrics.shared is not None
        self._names = names
        self._table = SharedRows(metrics.shared, DIRS, metrics)
        self._rows: dict[str, tuple[int, int]] = {}

    def refresh(self, spaces: dict[str, Space | None]) -> None:
        """None: the folder is offline."""
        for path, space in spaces.items():
            place = self._rows.get(path)
            if place is None:
                row = self._table.take()
                if row == NO_ROW:
                    continue
                place = self._rows[path] = row, self._names.take(path)
            total, free = (-1, -1) if space is None else space
            self._table.write(*place, total, free)
