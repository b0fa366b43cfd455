"""One log against a model, under appends, cuts, crashes and reopening in any order.

The model is a list of batches. After every step: the log reads back exactly what the model holds;
its index equals one rebuilt from the file (I15); its producer state equals a replay of the model.
After a kill nothing is missing. After a power loss nothing is missing that was flushed, what is
left is a prefix, and nothing is there that was not written.

RUNNEL_LOG_MACHINE_EXAMPLES runs more than the 200 examples of an ordinary test run.
"""

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.index import OffsetIndex
from runnel.storage.log import Log
from runnel.storage.producers import ProducerStates
from runnel.storage.segment import Segment
from runnel.storage.store import LogStore
from runnel.storage.transactions import read_marker
from runnel.wire.batch import BatchHeader
from tests.simulated.disk import SimDisk
from tests.support.batches import make_batch, make_marker
from tests.support.stores import ManualClock, flush, open_log, read_all

EXAMPLES = int(os.environ.get("RUNNEL_LOG_MACHINE_EXAMPLES", "200"))

CONFIG = LogConfig(
    segment_bytes=1_500, index_interval_bytes=150, retention_bytes=4_000, retention_ms=10**9
)

done: Counter[str] = Counter()


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.disk = SimDisk(0)
        self.store: LogStore
        self.log: Log
        self.batches: list[tuple[BatchHeader, bytes]] = []  # what the log holds, and held before
        self.epoch = 0
        self.sequences: dict[int, int] = {}
        self.cleared = False  # retention or a full truncation took batches of producers away

    @initialize(seed=st.integers(0, 2**32))
    def start(self, seed: int) -> None:
        self.disk = SimDisk(seed)
        self.disk.short_write_probability = 0.05
        self.store, self.log = open_log(self.disk, self.clock, CONFIG)
        self.log.flush()

    @property
    def end(self) -> int:
        return self.log.log_end_offset

    def append(self, header: BatchHeader, raw: bytes) -> None:
        self.log.append(header, raw, self.clock.wall_ms())
        self.batches.append((header, raw))
        done["appended"] += 1

    @rule(
        count=st.integers(1, 4), size=st.integers(0, 300), ago=st.integers(-50, 50),
        producer=st.sampled_from([-1, -1, 7, 8]), times=st.integers(1, 4),
    )  # fmt: skip
    def write(self, count: int, size: int, ago: int, producer: int, times: int) -> None:
        for _ in range(times):
            known = self.log.producers.producers.get(producer)
            if known is not None and known.txn_first_offset >= 0:
                producer = -1
            sequence = self.sequences.get(producer, 0) if producer >= 0 else -1
            batch = make_batch(
                self.end, count, timestamp=1_000 + self.end - ago, value=bytes(size),
                epoch=self.epoch, producer_id=producer, sequence=sequence,
                producer_epoch=0 if producer >= 0 else -1,
            )  # fmt: skip
            if producer >= 0:
                assert self.log.producers.check(batch[0]) is None
                self.sequences[producer] = sequence + count
            self.append(*batch)

    @rule(count=st.integers(1, 3), producer=st.sampled_from([20, 21]))
    def write_in_transaction(self, count: int, producer: int) -> None:
        sequence = self.sequences.get(producer, 0)
        batch = make_batch(
            self.end, count, timestamp=1_000, epoch=self.epoch, producer_id=producer,
            producer_epoch=3, sequence=sequence, transactional=True,
        )  # fmt: skip
        assert self.log.producers.check(batch[0]) is None
        self.append(*batch)
        self.sequences[producer] = sequence + count

    @rule(producer=st.sampled_from([20, 21]), commit=st.booleans())
    def end_transaction(self, producer: int, commit: bool) -> None:
        self.append(
            *make_marker(
                self.end, commit=commit, producer_id=producer, producer_epoch=3, epoch=self.epoch
            )
        )

    @precondition(lambda self: any(h.base_sequence >= 0 for h, _ in self.batches[-3:]))
    @rule()
    def repeat_a_batch(self) -> None:
        """A retry is known for what it is, as long as it is in the window and of this life."""
        header = next(h for h, _ in reversed(self.batches) if h.base_sequence >= 0)
        producer = self.log.producers.producers.get(header.producer_id)
        if producer is not None and header.base_offset >= self.log.log_start_offset:
            found = self.log.producers.check(header)
            assert found is not None
            assert (found.base_offset, found.last_offset) == (
                header.base_offset,
                header.last_offset,
            )
            done["duplicates"] += 1

    @rule()
    def become_leader_again(self) -> None:
        self.epoch += 1
        self.log.epochs.assign(self.epoch, self.end)

    @rule()
    def flush(self) -> None:
        flush(self.log)
        assert self.log.flushed_offset == self.end

    @rule(count=st.integers(1, 5))
    def append_during_a_flush(self, count: int) -> None:
        work = self.log.begin_flush(sync_active=True)
        promised = self.end
        for _ in range(count):
            self.append(*make_batch(self.end, 2, value=bytes(200), epoch=self.epoch))
        if work is not None:
            assert self.log.begin_flush() is None
            work.run()
            self.log.end_flush(work)
            assert self.log.flushed_offset == promised

    @rule()
    def checkpoint(self) -> None:
        self.store.write_checkpoints({self.log.partition: self.end})

    @rule()
    def roll(self) -> None:
        if self.log.segments[-1].size:
            self.log.roll(self.clock.wall_ms(), self.end)
            done["rolled"] += 1

    @rule(back=st.integers(0, 12))
    def truncate(self, back: int) -> None:
        offset = max(self.end - back, self.log.log_start_offset)
        self.log.truncate_to(offset)
        self.batches = [b for b in self.batches if b[0].last_offset < offset]
        assert all(entry.start_offset < offset for entry in self.log.epochs.entries)
        self.resume_sequences()
        done["truncated"] += 1

    @rule(ahead=st.integers(0, 5))
    def truncate_fully(self, ahead: int) -> None:
        self.log.truncate_fully_and_start_at(self.end + ahead)
        self.batches.clear()
        self.sequences.clear()
        self.cleared = True
        done["emptied"] += 1

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        start = self.log.log_start_offset
        self.log.delete_records(start + int((self.end - start) * part))
        self.cleared = True

    @rule(below=st.integers(0, 5))
    def retain(self, below: int) -> None:
        start, high_watermark = self.log.log_start_offset, max(self.end - below, 0)
        for deleted in self.log.retain(self.clock.wall_ms(), high_watermark):
            assert deleted.next_offset <= max(high_watermark, start)
            self.cleared = True
            done["retained away"] += 1
        self.clock.advance(70_000)
        for purge in self.store.purge():
            purge.run()

    @rule()
    def stop_and_start(self) -> None:
        self.store.close_clean(4, {self.log.partition: self.end})
        self.disk.kill()
        before = self.log
        self.store, self.log = open_log(self.disk, self.clock, CONFIG)
        assert self.log.log_end_offset == before.log_end_offset
        assert self.log.log_start_offset == before.log_start_offset
        assert self.log.epochs.entries == before.epochs.entries
        assert self.log.producers.snapshot() == before.producers.snapshot()
        done["clean stops"] += 1

    @rule()
    def kill(self) -> None:
        self.disk.kill()
        before = self.log
        self.store, self.log = open_log(self.disk, self.clock, CONFIG)
        assert self.log.log_end_offset == before.log_end_offset
        assert self.log.log_start_offset <= before.log_start_offset
        done["kills"] += 1

    @rule()
    def lose_power(self) -> None:
        promised = self.log.flushed_offset
        start = self.log.log_start_offset
        self.disk.lose_power()
        self.store, self.log = open_log(self.disk, self.clock, CONFIG)
        assert self.end >= promised, "something that was flushed is gone"
        assert self.log.log_start_offset <= start
        done["lost batches"] += sum(h.last_offset >= self.end for h, _ in self.batches)
        self.batches = [b for b in self.batches if b[0].last_offset < self.end]
        self.epoch = max(self.epoch, self.log.epochs.latest_epoch)
        self.resume_sequences()
        done["power losses"] += 1

    def resume_sequences(self) -> None:
        self.sequences = {
            producer_id: producer.last_sequence + 1
            for producer_id, producer in self.log.producers.producers.items()
        }

    @invariant()
    def reads_what_was_written(self) -> None:
        start = self.log.log_start_offset
        expected = b"".join(raw for h, raw in self.batches if h.last_offset >= start)
        size = len(expected) // 3 + 1
        assert read_all(self.log, max_bytes=size) == expected
        assert self.log.flushed_offset <= self.end
        assert self.log.segments[0].base_offset <= start <= self.end
        with pytest.raises(RunnelError) as caught:
            self.log.slice(self.end + 1, 1, self.end, at_least_one=True)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE

    @invariant()
    def index_equals_a_rebuilt_one(self) -> None:
        for segment in self.log.segments:
            assert segment.index.entries() == _rebuilt(segment).entries()
            newest = max((h.max_timestamp for _, h in segment.headers()), default=-1)
            assert segment.max_timestamp == newest
            time_index = segment.time_index.entries()
            for timestamp, offset in time_index:
                header = next(h for _, h in segment.headers() if h.last_offset >= offset)
                assert header.max_timestamp == timestamp

    @invariant()
    def producers_equal_a_replay(self) -> None:
        if self.cleared:
            return
        states = ProducerStates()
        aborted = []
        for header, raw in self.batches:
            if header.producer_id >= 0:
                marker = read_marker(raw) if header.is_control else None
                ended = states.update(header, marker)
                aborted += [ended] if ended else []
        entries = self.log.producers.producers
        assert entries.keys() == states.producers.keys()
        for producer_id, producer in entries.items():
            other = states.producers[producer_id]
            assert producer.epoch == other.epoch
            assert producer.last_sequence == other.last_sequence
            assert producer.txn_first_offset == other.txn_first_offset
        assert self.log.aborted_in(0, self.end) == aborted


def _rebuilt(segment: Segment) -> OffsetIndex:
    index = OffsetIndex(segment.base_offset)
    for position, header in segment.headers():
        if position - index.last_position > segment.index_interval_bytes:
            index.append(header.last_offset, position)
    return index


def test_the_log_keeps_what_the_model_keeps() -> None:
    done.clear()
    case = LogMachine.TestCase
    case.settings = settings(
        max_examples=EXAMPLES,
        stateful_step_count=50,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    case().runTest()
    print(f"\n{EXAMPLES} examples: {dict(done)}")
    assert all(done[kind] for kind in ("appended", "truncated", "kills", "power losses", "rolled"))
