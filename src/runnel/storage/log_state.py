"""What one log of a partition is made of, and what happens when its disk fails.

The parts of a log are layers of one object, each of which knows those below it: `LogState` <
`FlushingLog` < `WritableLog` < `CuttableLog` < `CleanableLog` < `Log`, which is what everybody else
uses. They are apart to be read apart; plain inheritance, because that costs an append nothing where
the modules are compiled.
"""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Clock, Disk
from runnel.storage.epochs import LeaderEpochs
from runnel.storage.files import OpenFiles, is_passing
from runnel.storage.flush import Flush
from runnel.storage.index import IndexWrite
from runnel.storage.producers import ProducerStates
from runnel.storage.rebuild import write_snapshot
from runnel.storage.retention import ClockGuard
from runnel.storage.segment import SNAPSHOT, Segment
from runnel.storage.trash import Trash
from runnel.types import TopicId, TopicPartition


class Surroundings(NamedTuple):
    """What a log needs of the world, the same for every log of one disk."""

    disk: Disk
    open_files: OpenFiles
    clock: Clock
    clock_guard: ClockGuard
    random: random.Random
    trash: Trash
    serials: Iterator[int]  # tell a log from a later one in a folder of the same name


class LogState:
    """The fields of a log. See `log.py` for the rules that they follow."""

    def __init__(
        self, around: Surroundings, folder: str, partition: TopicPartition, topic_id: TopicId,
        config: LogConfig, segments: list[Segment], epochs: LeaderEpochs, producers: ProducerStates,
    ) -> None:  # fmt: skip
        assert segments, folder
        self.topic, self.index = partition
        self.topic_id = topic_id
        self.folder = folder
        self.epochs = epochs
        self.producers = producers
        self.offline: str | None = None
        self.segments = segments
        self.snapshots: list[int] = []  # offsets of the producer snapshots on disk, ascending
        self.closed_unsynced: list[Segment] = []  # their indexes may be behind their files
        self.unsynced_paths: list[str] = []
        self.unsynced_folders: list[str] = []
        # Called when a checkpointed offset goes down, before another batch can be written.
        self.on_offsets_lowered: Callable[[], None] = lambda: None
        # Called once, when a write or a sync fails.
        self.on_failed: Callable[[], None] = lambda: None
        # Called when records at the start of the log have gone.
        self.on_start_moved: Callable[[], None] = lambda: None
        self._around = around
        self._active = segments[-1]
        self.log_start_offset = segments[0].base_offset
        self.log_end_offset = self._active.next_offset
        self.flushed_offset = self.log_start_offset
        self.opened_high_watermark = self.log_start_offset  # as checkpointed, within the log (R5)
        self.first_dirty_offset = -1  # up to which it is compacted, as checkpointed; -1: not at all
        self._flush: Flush | None = None
        self._flushing: list[Segment] = []  # what was `closed_unsynced` when the flush began
        self._postponed_writes: list[IndexWrite] = []  # of a flush that found no descriptor
        self._serial = next(around.serials)
        self._generation = 0
        self._config = config

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.index)

    @property
    def first_unstable_offset(self) -> int | None:
        return self.producers.first_unstable_offset

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def segment_count(self) -> int:
        return len(self.segments)

    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        self._note_unsynced_folder()
        return Segment(
            self._around.disk, self._around.open_files, self.folder, base_offset,
            index_interval_bytes=self._config.index_interval_bytes, created_ms=now_ms,
        )  # fmt: skip

    @property
    def _reserved_bytes(self) -> int:
        return self._config.segment_bytes if self._config.preallocate else 0

    def _note_unsynced_folder(self) -> None:
        if self.folder not in self.unsynced_folders:
            self.unsynced_folders.append(self.folder)

    def _write_snapshot(self, offset: int) -> None:
        """Producer state at `offset`. Synced by the next flush; a torn one is found by its CRC."""
        around = self._around
        path = around.open_files.sparing(
            lambda: write_snapshot(around.disk, self.folder, offset, self.producers)
        )
        if offset not in self.snapshots:
            self.snapshots.append(offset)
        self.unsynced_paths.append(path)

    def _remove_snapshot(self, offset: int) -> None:
        self.snapshots.remove(offset)
        self._around.disk.remove(f"{self.folder}/{offset:020d}{SNAPSHOT}")

    def fail(self, error: OSError, *, half_done: bool = False) -> RunnelError:
        """Take the log offline. The returned error is for the caller to raise, if it has one.

        Not if the failure passes, unless it left something half done.
        """
        if is_passing(error) and not half_done:
            return RunnelError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.partition}: {error}")
        if self.offline is None:
            self.offline = f"{self.partition} is offline: {error}"
            self.on_failed()
        return self._offline_error()

    def _offline_error(self) -> RunnelError:
        return RunnelError(ErrorCode.KAFKA_STORAGE_ERROR, self.offline or "")
