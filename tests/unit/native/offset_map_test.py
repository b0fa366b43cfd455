"""The map of keys to offsets, and what it leaves of a batch: both decoders, and against a dict."""

import random
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runnel.errors import RunnelError
from runnel.native import backend
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.native.records import decode
from runnel.wire.batch import HEADER_SIZE, BatchHeader
from runnel.wire.crc import crc32c
from tests.unit.native.conftest import load

SEED = bytes(range(16))
SEEDS = st.integers(0, 2**32)


def _records(seed: int) -> list[Record]:
    """Drawn from one number: Hypothesis would take minutes to draw them one by one."""
    chance = random.Random(seed)

    def some(most: int) -> bytes | None:
        return chance.choice([None, b"", chance.randbytes(chance.randint(1, most))])

    keys = [some(20) for _ in range(chance.randint(1, 12))]
    return [
        Record(
            chance.choice(keys),
            some(40),
            chance.randrange(2**41),
            [("h", some(5)) for _ in range(chance.randint(0, 2))],
        )
        for _ in range(chance.randint(1, 30))
    ]


NEVER_SLOW = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60
)


def _batch(records: list[Record], base_offset: int = 0) -> tuple[BatchHeader, bytes]:
    raw = bytes(encode(records, base_offset=base_offset))
    return BatchHeader.read(raw), raw[HEADER_SIZE:]


@NEVER_SLOW
@given(first_seed=SEEDS, second_seed=SEEDS, from_offset=st.integers(0, 40), drops=st.booleans())
def test_what_is_retained_is_what_a_dict_says(
    decoder: ModuleType, first_seed: int, second_seed: int, from_offset: int, drops: bool
) -> None:
    first, second = _records(first_seed), _records(second_seed)
    offsets = backend.OffsetMap(1000, 0.9, SEED)
    expected: dict[bytes, int] = {}
    batches = [(first, 0), (second, len(first))]
    for records, base in batches:
        header, payload = _batch(records, base)
        assert offsets.add(header, payload, from_offset) == -1
        for offset, record in enumerate(records, base):
            if record.key is not None and offset >= from_offset:
                expected[record.key] = offset
    assert offsets.key_count == len(expected)
    up_to = len(first) + len(second) - 1
    for records, base in batches:
        header, payload = _batch(records, base)
        count, tombstones, latest, left = offsets.retain(header, payload, up_to, drops)
        kept = [
            record._replace(offset=offset)
            for offset, record in enumerate(records, base)
            if offset >= up_to
            or (
                record.key is not None
                and offset >= expected.get(record.key, -1)
                and not (drops and record.value is None)
            )
        ]
        assert count == len(kept)
        assert tombstones == sum(record.value is None for record in kept)
        assert latest == max((record.timestamp for record in kept), default=-1)
        if kept:
            raw = header.changed(record_count=count).write(left)
            assert list(decode(raw, max_records=100, max_bytes=1 << 20).rows()) == kept


@NEVER_SLOW
@given(seed=SEEDS, base_timestamp=st.integers(-1, 2**62))
def test_rebased_records_keep_their_times(
    decoder: ModuleType, seed: int, base_timestamp: int
) -> None:
    records = _records(seed)
    header, payload = _batch(records)
    left = backend.rebased(header, payload, base_timestamp)
    raw = header.changed(base_timestamp=base_timestamp).write(left)
    found = list(decode(raw, max_records=100, max_bytes=1 << 20).rows())
    assert found == [record._replace(offset=n) for n, record in enumerate(records)]


def test_a_full_map_says_at_which_offset(decoder: ModuleType) -> None:
    offsets = backend.OffsetMap(10, 0.5, SEED)
    header, payload = _batch([Record(b"%d" % (n % 7), b"") for n in range(20)], 100)
    assert offsets.add(header, payload, 0) == 105
    assert offsets.key_count == offsets.key_count_max == 5


def test_many_keys_are_told_apart(decoder: ModuleType) -> None:
    offsets = backend.OffsetMap(3000, 0.99, SEED)
    header, payload = _batch([Record(b"key%d" % n, b"") for n in range(2900)])
    assert offsets.add(header, payload, 0) == -1
    assert offsets.retain(header, payload, 2900, False)[0] == 2900
    later, more = _batch([Record(b"key%d" % n, b"") for n in range(0, 2900, 2)], 2900)
    assert offsets.add(later, more, 0) == -1
    assert offsets.key_count == 2900
    assert offsets.retain(header, payload, 2900, False)[0] == 1450


@pytest.mark.parametrize("position", range(0, 40, 3))
def test_damaged_records_are_refused(decoder: ModuleType, position: int) -> None:
    header, payload = _batch([Record(b"key", b"value")] * 2)
    damaged = bytearray(payload)
    damaged[position % len(damaged)] ^= 0xFF
    offsets = backend.OffsetMap(10, 0.5, SEED)
    for ask in (
        lambda: offsets.add(header, damaged, 0),
        lambda: offsets.retain(header, damaged, 10, False),
        lambda: backend.rebased(header, damaged, 0),
    ):
        try:
            ask()
        except RunnelError as error:
            assert "the batch at offset 0" in str(error)


@settings(deadline=None, max_examples=100)
@given(
    seeds=st.lists(SEEDS, min_size=1, max_size=8),
    interval_bytes=st.integers(0, 300),
    end=st.integers(0, 5),
)
def test_a_run_fares_as_its_batches_one_by_one(
    seeds: list[int], interval_bytes: int, end: int
) -> None:
    batches = [_records(seed) for seed in seeds]
    native = load("_records")
    chunk, offset = bytearray(), 0
    one_by_one = native.OffsetMap(1000, 0.9, SEED)
    for records in batches:
        raw = bytes(encode(records, base_offset=offset))
        chunk += raw
        one_by_one.add(BatchHeader.read(raw), raw[HEADER_SIZE:], 3)
        offset += len(records)
    offsets = native.OffsetMap(1000, 0.9, SEED)
    assert offsets.add_plain(bytes(chunk), 0, 3, crc32c) == (len(chunk), -1)
    assert offsets.key_count == one_by_one.key_count
    position, left, entries, state = offsets.retain_plain(
        bytes(chunk), 0, offset, offset - end, 0, (), crc32c, interval_bytes, (0, 0, -1, 0)
    )
    expected, seen, indexed = bytearray(), 0, []
    target = [0, 0, -1, 0]
    while seen < position:
        header = BatchHeader.read(chunk, seen)
        payload = chunk[seen + HEADER_SIZE : seen + header.size]
        count, tombstones, latest, kept = one_by_one.retain(header, payload, offset, False)
        if count:
            assert not tombstones
            raw = bytes(header.changed(record_count=count, max_timestamp=latest).write(kept))
            if count == header.record_count:
                raw = bytes(chunk[seen : seen + header.size])
            if header.changed(max_timestamp=latest).max_timestamp > target[2]:
                target[2:] = [BatchHeader.read(raw).max_timestamp, header.last_offset]
            if target[0] - target[1] > interval_bytes:
                target[1] = target[0]
                indexed.append((header.last_offset, target[0], target[2], target[3]))
            expected += raw
            target[0] += len(raw)
        seen += header.size
    assert left == expected
    assert entries == indexed
    assert state == tuple(target)
    if position < len(chunk):  # it stopped at a batch that is for the caller to judge
        header = BatchHeader.read(chunk, position)
        payload = chunk[position + HEADER_SIZE : position + header.size]
        count, tombstones, _, _ = one_by_one.retain(header, payload, offset, False)
        assert tombstones or (not count and header.next_offset == offset - end)
