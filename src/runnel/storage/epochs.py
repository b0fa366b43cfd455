"""Which offset each leader epoch of a partition starts at (KIP-101), as Kafka's epoch cache has it.

Invariant: epochs and start offsets both grow strictly. An epoch may have no records (R7).
Changes are made in memory and marked dirty; the log's next flush writes them down. A crash in
between loses nothing that matters: batches carry their epoch, and recovery assigns from them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter

from runnel.storage.checkpoints import EpochStart

NO_EPOCH = -1
NO_OFFSET = -1

_EPOCH = attrgetter("epoch")
_START = attrgetter("start_offset")


class LeaderEpochs:
    """Owned by one Log."""

    __slots__ = ("_entries", "dirty", "latest_epoch")

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self._entries: list[EpochStart] = []
        self.latest_epoch = NO_EPOCH
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)
        self.dirty = False

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """The epoch starts here. Entries that contradict it (same or later epoch or start) go."""
        assert epoch >= 0, epoch
        assert start_offset >= 0, start_offset
        entries = self._entries
        if epoch == self.latest_epoch and start_offset >= entries[-1].start_offset:
            return
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochStart(epoch, start_offset))
        self._changed()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch at or below `epoch`, and the offset where the next one starts.

        (-1, -1) when the epoch is above all that is known, or is -1 itself. Below all that is
        known it answers with the epoch asked for and the first start: that data is gone.
        """
        if epoch == NO_EPOCH:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        higher = bisect_right(self._entries, epoch, key=_EPOCH)
        if higher == len(self._entries):
            return NO_EPOCH, NO_OFFSET
        found = self._entries[higher - 1].epoch if higher else epoch
        return found, self._entries[higher].start_offset

    def epoch_for(self, offset: int) -> int:
        """The epoch in which the record at `offset` was written, or -1 if that is not known."""
        index = bisect_right(self._entries, offset, key=_START)
        return self._entries[index - 1].epoch if index else NO_EPOCH

    def truncate_from_end(self, offset: int) -> None:
        """Forget epochs that start at or after `offset`, also if no record is cut (KAFKA-10706)."""
        index = bisect_left(self._entries, offset, key=_START)
        if index < len(self._entries):
            del self._entries[index:]
            self._changed()

    def truncate_from_start(self, offset: int) -> None:
        """The log now starts at `offset`: the epoch that holds it starts there too."""
        index = bisect_right(self._entries, offset, key=_START)
        if index and (index > 1 or self._entries[0].start_offset < offset):
            self._entries[:index] = [EpochStart(self._entries[index - 1].epoch, offset)]
            self._changed()

    def clear(self) -> None:
        if self._entries:
            self._entries.clear()
            self._changed()

    def _changed(self) -> None:
        self.latest_epoch = self._entries[-1].epoch if self._entries else NO_EPOCH
        self.dirty = True
