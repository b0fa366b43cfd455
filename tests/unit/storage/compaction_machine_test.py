"""A log under random writing, compaction and restarts, beside a model: the list of all records.

What a reader of committed data sees must give the same last value of every key, at the same offset
and time; what lies before the first dirty offset must hold each key once and nothing aborted; and
a producer's last batch must be known again when it is retried.
"""

import random
from typing import NamedTuple

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runnel.config.topic import LogConfig
from runnel.native.compression import Compression
from runnel.storage.cleaning_plan import Limits
from runnel.wire.batch import BatchHeader
from tests.support.compacting import LIMITS, clean, committed
from tests.support.writing import World

CONFIG = LogConfig(
    segment_bytes=1_500, index_interval_bytes=150, cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=500,
)  # fmt: skip
KEYS = st.sampled_from([f"key{n}" for n in range(6)])
PAIRS = st.lists(
    st.tuples(KEYS, st.sampled_from([None, "", "v", "w" * 60])), min_size=1, max_size=4
)
CODECS = st.sampled_from(list(Compression))
PRODUCERS = st.integers(0, 2)
TIGHT = LIMITS._replace(map_bytes=24 * 4)


class Written(NamedTuple):
    key: bytes
    value: bytes | None
    timestamp: int
    producer_id: int  # of an open transaction, else -1


class CompactedLog(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World(CONFIG)
        self.records: dict[int, Written] = {}  # by offset; aborted ones are taken out
        self.aborted: set[int] = set()
        self.last_batches: dict[int, BatchHeader] = {}
        self.in_transaction: set[int] = set()
        self.sequences: dict[int, int] = {}
        self.is_checked = True  # only what changes the files can break anything

    def _put(
        self, pairs: list[tuple[str, str | None]], codec: Compression, producer_id: int,
        transactional: bool,
    ) -> None:  # fmt: skip
        sequence = self.sequences.get(producer_id, 0)
        header = self.world.put(
            *pairs, codec=codec, producer_id=producer_id, transactional=transactional,
            sequence=sequence if producer_id >= 0 else -1,
        )  # fmt: skip
        if producer_id >= 0:
            self.last_batches[producer_id] = header
            self.sequences[producer_id] = sequence + len(pairs)
        owner = producer_id if transactional else -1
        for i, (key, value) in enumerate(pairs):
            content = None if value is None else value.encode()
            timestamp = self.world.clock.wall_ms() + i
            self.records[header.base_offset + i] = Written(key.encode(), content, timestamp, owner)

    @rule(pairs=PAIRS, codec=CODECS)
    def write(self, pairs: list[tuple[str, str | None]], codec: Compression) -> None:
        self._put(pairs, codec, -1, False)

    @rule(pairs=PAIRS, codec=CODECS, producer_id=PRODUCERS)
    def write_as_producer(
        self, pairs: list[tuple[str, str | None]], codec: Compression, producer_id: int
    ) -> None:
        self._put(pairs, codec, producer_id, producer_id in self.in_transaction)

    @rule(pairs=PAIRS, producer_id=PRODUCERS)
    def write_in_transaction(self, pairs: list[tuple[str, str | None]], producer_id: int) -> None:
        self.in_transaction.add(producer_id)
        self._put(pairs, Compression.NONE, producer_id, True)

    @precondition(lambda self: self.in_transaction)
    @rule(commit=st.booleans(), chance=st.randoms(use_true_random=False))
    def end_transaction(self, commit: bool, chance: random.Random) -> None:
        producer_id = chance.choice(sorted(self.in_transaction))
        self.in_transaction.remove(producer_id)
        self.world.end(producer_id, commit=commit)
        for offset, record in list(self.records.items()):
            if record.producer_id == producer_id:
                if commit:
                    self.records[offset] = record._replace(producer_id=-1)
                else:
                    del self.records[offset]
                    self.aborted.add(offset)

    @rule()
    def roll(self) -> None:
        if self.world.log.segments[-1].size:
            self.world.roll()

    @rule(ms=st.sampled_from([1, 250, 600]))
    def wait(self, ms: int) -> None:
        self.world.clock.advance(ms)

    @rule(limits=st.sampled_from([LIMITS, TIGHT]))
    def compact(self, limits: Limits) -> None:
        self.is_checked = False
        clean(self.world.disk, self.world.log, self.world.clock.wall_ms(), limits=limits)

    @rule(snapshots=st.booleans())
    def crash(self, snapshots: bool) -> None:
        self.is_checked = False
        world = self.world
        if not snapshots:  # the producers must come from the batches alone
            for name in world.disk.list(world.log.folder):
                if name.endswith(".snapshot"):
                    world.disk.remove(f"{world.log.folder}/{name}")
        world.crash()

    @rule()
    def restart(self) -> None:
        self.is_checked = False
        self.world.store.close_clean(1, {})
        self.world.crash()

    @rule(producer_id=PRODUCERS)
    def expire(self, producer_id: int) -> None:
        if producer_id not in self.in_transaction:
            self.world.log.producers.producers.pop(producer_id, None)
            self.last_batches.pop(producer_id, None)

    @invariant()
    def all_is_well(self) -> None:
        if not self.is_checked:
            self._the_last_values_are_there()
            self._what_is_clean_holds_each_key_once()
            self._retries_are_known()
            self.is_checked = True

    def _the_last_values_are_there(self) -> None:
        log = self.world.log
        unstable = log.first_unstable_offset
        stable = log.log_end_offset if unstable is None else unstable
        found: dict[bytes, tuple[int, bytes, int]] = {}
        for seen in committed(log):
            if seen.offset < stable:
                assert seen.key is not None
                assert self.records[seen.offset][:3] == seen[1:], "nothing is invented"
                found.pop(seen.key, None)
                if seen.value is not None:
                    found[seen.key] = (seen.offset, seen.value, seen.timestamp)
        expected: dict[bytes, tuple[int, bytes, int]] = {}
        for offset, record in self.records.items():
            if offset < stable:
                expected.pop(record.key, None)
                if record.value is not None:
                    expected[record.key] = (offset, record.value, record.timestamp)
        assert found == expected

    def _what_is_clean_holds_each_key_once(self) -> None:
        log = self.world.log
        clean_keys = [seen.key for seen in committed(log) if seen.offset < log.first_dirty_offset]
        assert len(clean_keys) == len(set(clean_keys))

    def _retries_are_known(self) -> None:
        producers = self.world.log.producers
        for producer_id, header in self.last_batches.items():
            if header.attributes & 0x10 and producer_id not in self.in_transaction:
                continue  # its transaction ended: the marker is the last that is known of it
            found = producers.check(header)
            assert found is not None
            assert (found.base_offset, found.last_offset) == (
                header.base_offset,
                header.last_offset,
            )


CompactedLog.TestCase.settings = settings(
    max_examples=200,
    stateful_step_count=50,
    deadline=None,
    print_blob=True,
    phases=[Phase.reuse, Phase.generate],  # shrinking takes minutes: a seed is enough to repeat it
)
TestCompactedLog = CompactedLog.TestCase
