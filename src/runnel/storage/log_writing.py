"""Appending to a log, and when it starts a new segment."""

from runnel.config.topic import NEVER, LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Readable
from runnel.storage.batches import split_batches
from runnel.storage.epochs import LeaderEpochs
from runnel.storage.index import MAX_RELATIVE_OFFSET, OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from runnel.storage.log_flushing import FlushingLog
from runnel.storage.log_state import Surroundings
from runnel.storage.producers import ProducerStates
from runnel.storage.segment import Segment
from runnel.storage.transactions import read_marker
from runnel.types import TopicId, TopicPartition
from runnel.wire.batch import CONTROL, BatchHeader


class WritableLog(FlushingLog):
    def __init__(
        self, around: Surroundings, folder: str, partition: TopicPartition, topic_id: TopicId,
        config: LogConfig, segments: list[Segment], epochs: LeaderEpochs, producers: ProducerStates,
    ) -> None:  # fmt: skip
        super().__init__(around, folder, partition, topic_id, config, segments, epochs, producers)
        self._jitter_ms = self._draw_jitter_ms()
        self._set_roll_limits()

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        for segment in self.segments:
            segment.index_interval_bytes = config.index_interval_bytes
        self._set_roll_limits()

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
        if now_ms - since_ms <= self._config.max_segment_ms - self._jitter_ms:
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
            segment.start_empty(self._reserved_bytes)
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

    def _draw_jitter_ms(self) -> int:
        limit = min(self._config.segment_jitter_ms, self._config.max_segment_ms)
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
            self._roll_timestamp = first_timestamp + config.max_segment_ms - self._jitter_ms
