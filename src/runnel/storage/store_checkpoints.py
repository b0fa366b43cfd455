"""The offsets of all logs, in files beside them: what a start after a crash may rely on."""

import contextlib
from collections.abc import Mapping

from runnel.storage.checkpoints import (
    BOOT,
    FIRST_DIRTY,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    Boot,
    encode_boot,
    encode_offsets,
    replace_file,
)
from runnel.storage.log import Log
from runnel.storage.store_state import MEMORY_FOLDER, CheckpointWrite, StoreState
from runnel.types import TopicPartition


class CheckpointingStore(StoreState):
    def begin_checkpoints(
        self, high_watermarks: Mapping[TopicPartition, int]
    ) -> CheckpointWrite | None:
        """Collect what changed of recovery points, high watermarks, log starts and dirty offsets.

        None if nothing did, or a write is under way. Run it anywhere, then `end_checkpoints`.
        """
        if self._writing is not None:
            return None
        write = CheckpointWrite(self._disk)
        for directory in self.dirs:
            current = self._offsets_in(directory)
            current[HIGH_WATERMARKS] = self._carried.get((directory, HIGH_WATERMARKS), {}) | {
                log.partition: high_watermarks.get(log.partition, log.opened_high_watermark)
                for log in self.logs_in(directory)
            }
            for name, offsets in current.items():
                is_written = (directory, name) not in self._unwritten
                if offsets != self._checkpointed[directory][name] or not is_written:
                    self._checkpointed[directory][name] = offsets
                    self._unwritten.discard((directory, name))
                    write.files[directory, name] = encode_offsets(offsets)
        if not write.files:
            return None
        self._writing = write
        return write

    def end_checkpoints(self, write: CheckpointWrite) -> None:
        """On the loop, after `write.run`. Raises the OSError it met; the next write tries again."""
        assert write is self._writing, "a write ends once"
        self._writing = None
        for directory, name in write.withdrawn:
            offsets = self._checkpointed[directory][name]
            replace_file(self._disk, directory, name, encode_offsets(offsets))
        if write.error is not None:
            self._unwritten.update(write.files)
            raise write.error

    def write_checkpoints(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """All of it inline. Raises OSError."""
        write = self.begin_checkpoints(high_watermarks)
        if write is not None:
            write.run()
            self.end_checkpoints(write)

    def _offsets_in(self, directory: str) -> dict[str, dict[TopicPartition, int]]:
        logs = self.logs_in(directory)
        return {
            RECOVERY_POINTS: self._carried.get((directory, RECOVERY_POINTS), {})
            | {log.partition: log.flushed_offset for log in logs},
            LOG_STARTS: self._carried.get((directory, LOG_STARTS), {})
            | {
                log.partition: log.log_start_offset
                for log in logs
                if log.log_start_offset > log.segments[0].base_offset
            },
            FIRST_DIRTY: self._carried.get((directory, FIRST_DIRTY), {})
            | {
                log.partition: log.first_dirty_offset for log in logs if log.first_dirty_offset >= 0
            },
        }

    def _offsets_lowered(self, directory: str) -> None:
        """A truncation: no crash may find higher points beside batches that are not synced yet."""
        for name, offsets in self._offsets_in(directory).items():
            self._replace_now(directory, name, offsets)

    def _forget_checkpoints(self, directory: str, partition: TopicPartition) -> None:
        """Offsets of a deleted namesake must not be taken for those of the new log.

        Those of all other logs that are gone go with them: a topic has many partitions.
        """
        for name, offsets in self._checkpointed[directory].items():
            if partition in offsets or (directory, name) in self._unwritten:
                known = self._logs.keys() | self.failed.keys()
                rest = {k: offset for k, offset in offsets.items() if k in known and k != partition}
                self._replace_now(directory, name, rest)

    def _replace_now(self, directory: str, name: str, offsets: dict[TopicPartition, int]) -> None:
        """Write at once; what a thread may be writing is older, and is written over at its end."""
        is_written = (directory, name) not in self._unwritten
        if self._checkpointed[directory][name] == offsets and is_written and self._writing is None:
            return
        self._checkpointed[directory][name] = offsets
        self._unwritten.add((directory, name))
        if self._writing is not None:
            self._writing.withdrawn.add((directory, name))
        replace_file(self._disk, directory, name, encode_offsets(offsets))
        self._unwritten.discard((directory, name))

    def _adopt(self, log: Log, directory: str) -> None:
        self._logs[log.partition] = log
        self._counts[directory] += 1
        if directory == MEMORY_FOLDER:
            return  # nothing of it is checkpointed
        log.on_offsets_lowered = lambda: self._offsets_lowered(directory)
        log.on_failed = lambda: self._note_failure(directory)

    def _note_failure(self, directory: str) -> None:
        """An unclean stop loses nothing while the kernel runs on, unless a write failed (R17)."""
        with contextlib.suppress(OSError):
            replace_file(self._disk, directory, BOOT, encode_boot(Boot(self._boot_id, True)))
