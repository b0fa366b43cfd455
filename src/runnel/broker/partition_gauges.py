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
from runnel.storage.segment import Segment
from runnel.storage.store_state import directory_of

LOOKED_INTO_PER_TICK: Final = 200  # files, for the time of their first batch


class PartitionGauges:
    def __init__(self, metrics: Metrics, names: SharedNames, partitions: Partitions) -> None:
        assert metrics.shared is not None
        self._metrics = metrics
        self._names = names
        self._partitions = partitions
        self._table = SharedRows(metrics.shared, PARTITIONS, metrics)
        self._rows: dict[Partition, tuple[int, int]] = {}  # its row, the number of its topic
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
        for partition in list(self._rows):
            if not self._is_held(partition):
                self._forget(partition)
            yield

    def _is_held(self, partition: Partition) -> bool:
        return self._partitions.find(*partition.topic_partition) is partition

    def _forget(self, partition: Partition) -> None:
        row, _ = self._rows.pop(partition)
        self._table.give_back(row)
        self._names.give_back(partition.topic_partition.topic)

    def _place(self, partition: Partition) -> tuple[int, int] | None:
        place = self._rows.get(partition)
        if place is not None:
            return place
        row = self._table.take()
        if row == NO_ROW:
            return None
        topic = self._names.take(partition.topic_partition.topic)
        if not topic:
            self._table.give_back(row)
            return None
        place = self._rows[partition] = row, topic
        return place

    def _refresh(self, partition: Partition) -> bool:
        """False: there is no row for it."""
        if not self._is_held(partition):
            return True
        place = self._place(partition)
        if place is None:
            return False
        log = partition.log
        first = log.segments[0]
        oldest_ms = first.known_first_timestamp
        if oldest_ms is None:
            oldest_ms = -1
            if len(self._unknown) < LOOKED_INTO_PER_TICK:
                self._unknown[first] = partition
        self._table.write(
            place[0],
            place[1],
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
