"""Cutting a log: at its end by truncation, at its start by retention and DeleteRecords."""

from bisect import bisect_left

from runnel.storage.log_writing import WritableLog
from runnel.storage.producers import ProducerStates
from runnel.storage.rebuild import rebuild_producers
from runnel.storage.retention import Deleted, expired
from runnel.storage.segment import LOG, SUFFIXES, Segment, base_offset_of
from runnel.storage.trash import DELETED


class CuttableLog(WritableLog):
    # Cutting at the end

    def truncate_to(self, offset: int) -> None:
        """Cut all from the batch that holds `offset` on, durably. Raises KAFKA_STORAGE_ERROR.

        The epoch cache is cut even if no bytes are (R10). The log ends at the cut, so a batch that
        straddles `offset` is fetched again whole.
        """
        if self.offline is not None:
            raise self._offline_error()
        self.epochs.truncate_from_end(offset)
        if offset >= self.log_end_offset:
            return
        if offset <= self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        self._generation += 1
        try:
            keep = bisect_left(self.segments, offset, key=base_offset_of)
            if keep < len(self.segments):
                # From the end, and for good before the cut below: a power loss leaves no hole.
                self._discard(self.segments[: keep - 1 : -1])
                self._around.disk.sync_dir(self.folder)
                del self.segments[keep:]
            self._active = self.segments[-1]
            if self._active in self.closed_unsynced:
                self.closed_unsynced.remove(self._active)
            self._active.truncate(offset)
            self._truncated(self._active.next_offset)
            self._reload_producers()
        except OSError as error:
            raise self.fail(error, half_done=True) from error
        self._set_roll_limits()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Empty the log; the next batch gets `offset` or a later one (R12)."""
        if self.offline is not None:
            raise self._offline_error()
        self._generation += 1
        self.epochs.clear()
        self.producers = ProducerStates()
        try:
            self._discard(self.segments)
            segment = self._new_segment(offset, self._around.clock.wall_ms())
            segment.start_empty(self._reserved_bytes)
            self.segments[:] = [segment]
            self._active = segment
            self.log_start_offset = offset
            self._truncated(offset)
        except OSError as error:
            raise self.fail(error, half_done=True) from error
        self._set_roll_limits()

    def _truncated(self, log_end_offset: int) -> None:
        self.log_end_offset = log_end_offset
        self.epochs.truncate_from_end(log_end_offset)
        self.log_start_offset = min(self.log_start_offset, log_end_offset)
        first_offset = self.segments[0].base_offset
        for offset in [o for o in self.snapshots if not first_offset < o <= log_end_offset]:
            self._remove_snapshot(offset)
        self._around.disk.sync_dir(self.folder)
        self.flushed_offset = min(self.flushed_offset, log_end_offset)
        self.first_dirty_offset = min(self.first_dirty_offset, log_end_offset)
        self.on_offsets_lowered()

    def _reload_producers(self) -> None:
        self.producers = rebuild_producers(
            self._around.disk, self.segments, self.snapshots, self.log_end_offset
        )

    # Cutting at the start

    def delete_records(self, before_offset: int) -> None:
        """The log now starts at `before_offset`, which the caller keeps below the high watermark.

        Whole segments below it go with the next `retain` (R34).
        """
        assert before_offset <= self.log_end_offset, (before_offset, self.log_end_offset)
        if before_offset > self.log_start_offset:
            self.log_start_offset = before_offset
            self.epochs.truncate_from_start(before_offset)
            self.producers.high_watermark_moved(before_offset)
            self.on_start_moved()

    def retain(self, now_ms: int, high_watermark: int) -> list[Deleted]:
        """Let go of segments by age, size or log start (R33). Raises KAFKA_STORAGE_ERROR.

        An active segment whose time has come is rolled first, so that a log is never without one.
        Age is not asked while the clock cannot be trusted, see `ClockGuard`.
        """
        if self.offline is not None:
            raise self._offline_error()
        disk = self._around.disk
        try:
            going = expired(
                self.segments,
                self._config,
                now_ms=now_ms if self._around.clock_guard.trusts_clock() else None,
                high_watermark=high_watermark,
                log_start_offset=self.log_start_offset,
                modified_ms=lambda segment: disk.modified_ms(segment.path(LOG)),
            )
            if not going:
                return []
            deleted = [Deleted(s.base_offset, s.next_offset, s.size, why) for s, why in going]
            if len(going) == len(self.segments):
                self.roll(now_ms, self.log_end_offset)
            start = self.segments[len(going)].base_offset
            self.delete_records(max(start, self.log_start_offset))
            self._discard([segment for segment, _ in going])
            del self.segments[: len(going)]
        except OSError as error:
            raise self.fail(error) from error
        return deleted

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers that were silent too long; not while the clock cannot be trusted."""
        if not self._around.clock_guard.trusts_clock():
            return 0
        return self.producers.expire(now_ms, self._config.producer_id_expiration_ms)

    def _discard(self, segments: list[Segment]) -> None:
        """Rename the files of these segments out of the way; the trash removes them in time.

        The recovery point may pass them only once the folder is synced: until then a power loss
        may bring them back, without what was not synced of them.
        """
        self._note_unsynced_folder()
        self.closed_unsynced = [
            segment for segment in self.closed_unsynced if segment not in segments
        ]
        for segment in segments:
            for suffix in SUFFIXES:
                self._around.trash.discard_file(
                    segment.path(suffix), self._config.file_delete_delay_ms
                )
            segment.ending = DELETED
            segment.release()  # or its bytes stay on the disk although its name is gone
            if segment.base_offset in self.snapshots:
                self.snapshots.remove(segment.base_offset)
