"""The entries of a segment's indexes, compared with the batches as they are walked past."""

from runnel.inspect.folders import SegmentFiles
from runnel.ports import Disk
from runnel.storage.index import NO_TIMESTAMP, OffsetIndex, TimeIndex
from runnel.storage.segment import INDEX, TIME_INDEX
from runnel.wire.batch import BatchHeader

FAULTS_MAX = 20  # of one index; more of them say nothing new


class OffsetEntries:
    """Every entry names a position where a batch starts, and the last offset appended there."""

    def __init__(self, disk: Disk, segment: SegmentFiles) -> None:
        self.path = segment.path(INDEX)
        self._faults: list[str] = []
        self._entries: list[tuple[int, int]] = []
        self._next = 0
        self._open: tuple[int, int] | None = None  # its batch is seen, its offset is not
        try:
            # The index first: whatever it names is in the log by then.
            data = disk.read_whole(self.path)
            size = disk.size(segment.path())
            self._entries = OffsetIndex.decode(data, segment.base_offset, size).entries()
        except FileNotFoundError:
            if not disk.exists(segment.path()):
                raise
        except ValueError as error:
            self._faults.append(f"no index: {error}")

    @property
    def is_damaged(self) -> bool:
        """Whether it cannot be read at all; asked before the first batch."""
        return bool(self._faults)

    def saw(self, position: int, header: BatchHeader) -> None:
        last_offset = header.last_offset
        while self._next < len(self._entries) and self._entries[self._next][1] <= position:
            entry = self._entries[self._next]
            self._next += 1
            self._close()
            if entry[1] < position:
                self._fault(entry, "points into the middle of a batch")
            else:
                self._open = entry
        if self._open is not None and last_offset >= self._open[0]:
            if last_offset > self._open[0]:
                self._fault(self._open, f"is at a batch that ends at offset {last_offset}")
            self._open = None

    def faults(self, is_whole: bool) -> list[str]:
        """After the last batch; entries past a damage of the log are left out."""
        if is_whole:
            self._close()
            for entry in self._entries[self._next :]:
                self._fault(entry, "points into the middle of a batch")
        return self._faults

    def _close(self) -> None:
        if self._open is not None:
            self._fault(self._open, "names an offset that no batch before the next entry ends with")
            self._open = None

    def _fault(self, entry: tuple[int, int], what: str) -> None:
        if len(self._faults) < FAULTS_MAX:
            self._faults.append(f"the entry of offset {entry[0]}, position {entry[1]}, {what}")


class TimeEntries:
    """Every entry names the largest timestamp up to its offset, and a batch that has it."""

    def __init__(self, disk: Disk, segment: SegmentFiles) -> None:
        self.path = segment.path(TIME_INDEX)
        self._faults: list[str] = []
        self._entries: list[tuple[int, int]] = []
        self._next = 0
        self._max_timestamp = NO_TIMESTAMP
        try:
            data = disk.read_whole(self.path)
            self._entries = TimeIndex.decode(data, segment.base_offset).entries()
        except FileNotFoundError:
            if not disk.exists(segment.path()):
                raise
        except ValueError as error:
            self._faults.append(f"no time index: {error}")

    @property
    def is_damaged(self) -> bool:
        return bool(self._faults)

    def saw(self, header: BatchHeader) -> None:
        self._max_timestamp = max(self._max_timestamp, header.max_timestamp)
        while (
            self._next < len(self._entries) and self._entries[self._next][1] <= header.last_offset
        ):
            timestamp, offset = self._entries[self._next]
            self._next += 1
            if header.max_timestamp != timestamp:
                self._fault(timestamp, offset, f"is at a batch of {header.max_timestamp}")
            elif self._max_timestamp != timestamp:
                self._fault(timestamp, offset, f"comes after a record of {self._max_timestamp}")

    def faults(self, is_whole: bool) -> list[str]:
        if is_whole:
            for timestamp, offset in self._entries[self._next :]:
                self._fault(timestamp, offset, "lies past the end of the log")
        return self._faults

    def _fault(self, timestamp: int, offset: int, what: str) -> None:
        if len(self._faults) < FAULTS_MAX:
            self._faults.append(f"the entry of timestamp {timestamp}, offset {offset}, {what}")
