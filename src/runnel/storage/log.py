"""One partition's log: segments in order, and the state that its batches imply.

Four offsets, never mixed: `log_start_offset` (first that may be read), `flushed_offset` (everything
before it survives a power loss), `log_end_offset` (the next to be written); the high watermark is
the partition's and comes in as an argument.

Rules:
  - everything but `Flush.run` and `Purge.run` happens on the loop;
  - an OSError from a write or a sync takes the log offline for good (`offline` says why). What was
    acknowledged is still in the files; recovery at the next start cuts what was not. A want of file
    descriptors passes, so it fails the one request that met it;
  - the recovery point that a checkpoint file holds may be too low, never too high.
"""

import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

from runnel.config.topic import NEVER, LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Clock, Disk, Readable
from runnel.storage.batches import split_batches
from runnel.storage.checkpoints import encode_epochs
from runnel.storage.epochs import LeaderEpochs
from runnel.storage.files import OpenFiles, is_passing
from runnel.storage.flush import Flush
from runnel.storage.index import MAX_RELATIVE_OFFSET, OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE, IndexWrite
from runnel.storage.producers import ProducerStates
from runnel.storage.rebuild import rebuild_producers, rebuild_transactions, write_snapshot
from runnel.storage.retention import ClockGuard, Deleted, expired
from runnel.storage.segment import LOG, SNAPSHOT, SUFFIXES, Segment
from runnel.storage.timestamps import Candidate, batches_at_or_after, latest_batch
from runnel.storage.transactions import AbortedTransaction, TransactionIndex, read_marker
from runnel.storage.trash import Trash
from runnel.types import FileSlice, TopicId, TopicPartition
from runnel.wire.batch import CONTROL, BatchHeader


class Surroundings(NamedTuple):
    """What a log needs of the world, the same for every log of one disk."""

    disk: Disk
    open_files: OpenFiles
    clock: Clock
    clock_guard: ClockGuard
    random: random.Random
    trash: Trash
    serials: Iterator[int]  # tell a log from a later one in a folder of the same name


class Log:
    """Made by `recovery.load_log` and `LogStore.create`; owned by the partition that uses it."""

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
        self._around = around
        self._active = segments[-1]
        self.log_start_offset = segments[0].base_offset
        self.log_end_offset = self._active.next_offset
        self.flushed_offset = self.log_start_offset
        self.opened_high_watermark = self.log_start_offset  # as checkpointed, within the log (R5)
        self._flush: Flush | None = None
        self._flushing: list[Segment] = []  # what was `closed_unsynced` when the flush began
        self._postponed_writes: list[IndexWrite] = []  # of a flush that found no descriptor
        self._serial = next(around.serials)
        self._generation = 0
        self._config = config
        self._jitter_ms = self._draw_jitter_ms()
        self._set_roll_limits()

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.index)

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        for segment in self.segments:
            segment.index_interval_bytes = config.index_interval_bytes
        self._set_roll_limits()

    @property
    def first_unstable_offset(self) -> int | None:
        return self.producers.first_unstable_offset

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def segment_count(self) -> int:
        return len(self.segments)

    @property
    def is_flushing(self) -> bool:
        return self._flush is not None

    @property
    def is_dirty(self) -> bool:
        """Whether a flush would find anything to do."""
        return (
            self.log_end_offset > self.flushed_offset
            or self.epochs.dirty
            or bool(self.closed_unsynced)
            or bool(self.unsynced_paths)
            or bool(self.unsynced_folders)
            or bool(self._postponed_writes)
        )

    # Appending

    def append(self, header: BatchHeader, raw: Readable, now_ms: int) -> None:
        """One batch, offset and epoch stamped, CRC and sequence checked. Durable after a flush.

        Raises KAFKA_STORAGE_ERROR; then the log is offline and no state has changed.
        """
        if self.offline is not None:
            raise self._offline_error()
        base_offset, max_timestamp = header.base_offset, header.max_timestamp
        marker = read_marker(memoryview(raw)) if header.attributes & CONTROL else None
        last_offset = base_offset + header.last_offset_delta
        segment = self._active
        size = segment.size
        if size and (
            size + len(raw) > self._roll_bytes
            or max_timestamp > self._roll_timestamp
            or last_offset > self._roll_offset
        ):
            segment = self.roll(now_ms, base_offset)
            size = 0
        try:
            segment.append(raw, base_offset, last_offset, max_timestamp)
        except OSError as error:
            raise self.fail(error) from error
        self.log_end_offset = last_offset + 1
        if header.partition_leader_epoch > self.epochs.latest_epoch:
            self.epochs.assign(header.partition_leader_epoch, base_offset)
        if header.producer_id >= 0:
            aborted = self.producers.update(header, marker)
            if aborted is not None:
                segment.txn_index.append(aborted)
        if not size:
            self._set_roll_limits()

    def append_as_follower(self, records: memoryview, now_ms: int) -> int:
        """Batches from the leader, offsets and epochs as it gave them (R11). How many were new.

        Batches that end before the end of this log are passed over. Raises CORRUPT_MESSAGE for a
        bad CRC or magic, and OFFSET_OUT_OF_RANGE for a batch that reaches back into the log; the
        batches before it are appended then. A partial batch at the end is left for the next fetch.
        """
        appended = 0
        for header, raw in split_batches(records):
            last_offset = header.base_offset + header.last_offset_delta
            if last_offset < self.log_end_offset:
                continue
            if header.base_offset < self.log_end_offset:
                raise RunnelError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"{self.partition}: batch {header.base_offset}..{last_offset} reaches back"
                    f" before {self.log_end_offset}",
                )
            self.append(header, raw, now_ms)
            appended += 1
        return appended

    def maybe_roll(self, now_ms: int) -> bool:
        """Close an active segment whose age is over `segment.ms` although nothing is written."""
        segment = self._active
        if self.offline is not None or not segment.size:
            return False
        since_ms = segment.first_timestamp if segment.first_timestamp >= 0 else segment.created_ms
        if now_ms - since_ms <= self._config.segment_ms - self._jitter_ms:
            return False
        self.roll(now_ms, self.log_end_offset)
        return True

    def roll(self, now_ms: int, base_offset: int) -> Segment:
        """Close the active segment and start one at `base_offset`. Raises KAFKA_STORAGE_ERROR."""
        assert base_offset >= self.log_end_offset, (base_offset, self.log_end_offset)
        try:
            # The segment last: without a descriptor for either no empty file is left behind.
            self._write_snapshot(base_offset)
            segment = self._new_segment(base_offset, now_ms)
            segment.start_empty()
        except OSError as error:
            raise self.fail(error) from error
        self._active.close_for_writing()
        self._active.next_offset = base_offset
        self.closed_unsynced.append(self._active)
        self.segments.append(segment)
        self._active = segment
        self.log_end_offset = base_offset
        self._jitter_ms = self._draw_jitter_ms()
        self._set_roll_limits()
        return segment

    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        self._note_unsynced_folder()
        return Segment(
            self._around.disk, self._around.open_files, self.folder, base_offset,
            index_interval_bytes=self._config.index_interval_bytes, created_ms=now_ms,
        )  # fmt: skip

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

    def _draw_jitter_ms(self) -> int:
        limit = min(self._config.segment_jitter_ms, self._config.segment_ms)
        return self._around.random.randrange(limit) if limit > 0 else 0

    def _set_roll_limits(self) -> None:
        """What `append` compares with, so that it computes nothing.

        An entry of an index stands for more than `index.interval.bytes`, so a limit in bytes keeps
        both within `segment.index.bytes`, with the one time entry that closing adds.
        """
        config, segment = self._config, self._active
        entries = min(
            config.segment_index_bytes // OFFSET_ENTRY_SIZE,
            config.segment_index_bytes // TIME_ENTRY_SIZE - 1,
        )
        self._roll_bytes = min(
            config.segment_bytes, max(entries, 1) * (config.index_interval_bytes + 1)
        )
        self._roll_offset = segment.base_offset + MAX_RELATIVE_OFFSET
        first_timestamp = segment.first_timestamp if segment.size else -1
        self._roll_timestamp = NEVER
        if first_timestamp >= 0:
            self._roll_timestamp = first_timestamp + config.segment_ms - self._jitter_ms

    # Reading

    def slice(
        self,
        offset: int,
        max_bytes: int,
        before_offset: int,
        *,
        at_least_one: bool,
        wait: bool = True,
    ) -> FileSlice | None:
        """Whole batches from the one that holds `offset`; None when there is nothing to give.

        The first may start before `offset`. They lie in one segment, end before `before_offset`
        (high watermark, last stable offset or log end) and take at most `max_bytes`, except that
        the first is given whole if `at_least_one`. The cut at `max_bytes` is made at an indexed
        batch, which is up to one index interval early, because finding the last batch that fits
        would mean walking headers; so no partial batch is ever sent. Raises OFFSET_OUT_OF_RANGE,
        and unless it may `wait` for the disk, ColdError.
        """
        if offset < self.log_start_offset or offset > self.log_end_offset:
            raise RunnelError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.partition}: {offset} is not in"
                f" {self.log_start_offset}..{self.log_end_offset}",
            )
        if self.offline is not None:
            raise self._offline_error()
        if offset >= before_offset:
            return None
        segment = self._active
        try:
            if offset >= segment.base_offset:
                return segment.slice(
                    offset, max_bytes, before_offset, at_least_one=at_least_one, wait=wait
                )
            for segment in self.segments[self._slot_of(offset) :]:
                if segment.base_offset >= before_offset:
                    return None
                found = segment.slice(
                    offset, max_bytes, before_offset, at_least_one=at_least_one, wait=wait
                )
                if found is not None or segment.position_of(offset) < segment.size:
                    return found  # only a segment without a batch at or after `offset` is passed
        except OSError as error:
            raise self.fail(error) from error
        return None

    def aborted_in(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Aborted transactions that touch the half-open range, for readers of committed data.

        Raises KAFKA_STORAGE_ERROR.
        """
        found: list[AbortedTransaction] = []
        try:
            for segment in self.segments[self._slot_of(from_offset) :]:
                if self._transactions_of(segment).collect(from_offset, to_offset, found):
                    break
        except OSError as error:
            raise self.fail(error) from error
        return found

    def _transactions_of(self, segment: Segment) -> TransactionIndex:
        try:
            return segment.txn_index
        except ValueError:
            around = self._around
            segment.txn_index = rebuild_transactions(
                around.disk, self.segments, self.snapshots, segment
            )
            return segment.txn_index

    def batches_at_or_after(self, timestamp: int) -> Iterator[Candidate]:
        """Where the first record not before `timestamp` may be. Raises KAFKA_STORAGE_ERROR."""
        try:
            yield from batches_at_or_after(self.segments, timestamp, self.log_start_offset)
        except OSError as error:
            raise self.fail(error) from error

    def latest_batch(self) -> Candidate | None:
        """Where the latest record is, the first of equals (KIP-734). Raises KAFKA_STORAGE_ERROR."""
        try:
            return latest_batch(self.segments)
        except OSError as error:
            raise self.fail(error) from error

    def _slot_of(self, offset: int) -> int:
        """Which segment holds `offset`, or the first if it lies before all."""
        return max(bisect_right(self.segments, offset, key=_base_offset) - 1, 0)

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
            keep = bisect_left(self.segments, offset, key=_base_offset)
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
            segment.start_empty()
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
            if segment.base_offset in self.snapshots:
                self.snapshots.remove(segment.base_offset)

    def _remove_snapshot(self, offset: int) -> None:
        self.snapshots.remove(offset)
        self._around.disk.remove(f"{self.folder}/{offset:020d}{SNAPSHOT}")

    # Flushing

    def begin_flush(
        self, *, sync_active: bool | None = None, sync_indexes: bool = False
    ) -> Flush | None:
        """Collect what is not durable yet; None when there is nothing, or one is under way.

        None too if a file cannot be opened: then the log is offline, or still dirty.
        With durability `os` only closed segments are synced, as Kafka does, and the active one has
        its index entries written; `sync_active` says otherwise. The indexes of the active segment
        are synced only when the log is closed: after a crash they are made anew.
        """
        try:
            return self._collect_flush(sync_active, sync_indexes)
        except OSError as error:
            self.fail(error)
            return None

    def _collect_flush(self, sync_active: bool | None, sync_indexes: bool) -> Flush | None:
        if self._flush is not None or self.offline is not None:
            return None
        if sync_active is None:
            sync_active = self._config.durability != "os"
        next_offset = self.log_end_offset if sync_active else self._active.base_offset
        files = [s.file for s in self.closed_unsynced]
        if sync_active and self.log_end_offset > self.flushed_offset:
            files.append(self._active.file)
        flush = Flush(
            self._around.disk, self.folder, files,
            serial=self._serial, generation=self._generation, next_offset=next_offset,
        )  # fmt: skip
        flush.index_writes += self._postponed_writes
        for segment in (*self.closed_unsynced, self._active):
            flush.index_writes += segment.take_index_writes()
            if sync_indexes or not segment.is_active:
                flush.paths += [segment.path(suffix) for suffix in segment.indexes_unsynced]
                segment.indexes_unsynced = []
        flush.paths += self.unsynced_paths
        flush.folders += self.unsynced_folders
        if self.epochs.dirty:
            flush.epochs = encode_epochs(self.epochs.entries)
        if not (files or flush.index_writes or flush.paths or flush.folders or flush.epochs):
            return None
        self.epochs.dirty = False
        self._postponed_writes = []
        for segment in self.closed_unsynced:
            segment.is_flushing = True
        self._flushing, self.closed_unsynced = self.closed_unsynced, []
        self.unsynced_paths, self.unsynced_folders = [], []
        self._flush = flush
        return flush

    def end_flush(self, flush: Flush) -> None:
        """On the loop, after `flush.run`. A failure takes the log offline; nothing is raised."""
        assert flush is self._flush, "a flush ends once, on its own log"
        self._flush = None
        closed, self._flushing = self._flushing, []
        for segment in closed:
            segment.is_flushing = False
        if flush.error is not None:
            self.fail(flush.error)
        elif flush.postponed is not None:
            self.closed_unsynced[:0] = [
                s for s in closed if s in self.segments and s is not self._active
            ]
            self._postponed_writes = flush.index_writes
            self.unsynced_paths[:0] = flush.paths
            self.unsynced_folders[:0] = flush.folders
            self.epochs.dirty = self.epochs.dirty or flush.epochs is not None
        elif flush.generation == self._generation:
            self.flushed_offset = max(self.flushed_offset, flush.next_offset)

    def flush(self, *, sync_indexes: bool = False) -> None:
        """All of it inline. Raises KAFKA_STORAGE_ERROR."""
        try:
            flush = self._collect_flush(True, sync_indexes)
        except OSError as error:
            raise self.fail(error) from error
        if flush is not None:
            flush.run()
            self.end_flush(flush)
            if flush.postponed is not None:
                raise self.fail(flush.postponed)
        if self.offline is not None:
            raise self._offline_error()

    def begin_close(self) -> Flush | None:
        """For a clean stop: a flush after which opening reads next to nothing. None if in vain.

        No snapshot is written where there never was a producer: none at all means none to Kafka.
        Raises KAFKA_STORAGE_ERROR.
        """
        assert self._flush is None, "end the flush under way first"
        if self.offline is not None:
            raise self._offline_error()
        try:
            if (self.producers.producers or self.snapshots) and (
                not self.snapshots or self.snapshots[-1] < self.log_end_offset
            ):
                self._write_snapshot(self.log_end_offset)
            self._active.index_max_timestamp()
            return self._collect_flush(True, True)
        except OSError as error:
            raise self.fail(error) from error

    def close(self) -> None:
        """All of it inline. Raises KAFKA_STORAGE_ERROR."""
        flush = self.begin_close()
        if flush is not None:
            flush.run()
            self.end_flush(flush)
        self.end_close()

    def end_close(self) -> None:
        """After the flush of `begin_close`. Raises KAFKA_STORAGE_ERROR if it was in vain."""
        if self.offline is not None:
            raise self._offline_error()
        if self.is_dirty:
            raise RunnelError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.partition} is not flushed")
        for segment in self.segments:
            segment.release()

    def withdraw(self) -> None:
        """The log is deleted: nothing more is written, not even by a flush that is under way."""
        self.offline = f"{self.partition} is deleted"
        if self._flush is not None:
            self._flush.withdrawn = True

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


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
