"""Bytes that no correct client sends: the right error from both decoders, and never a crash."""

import importlib
import random
from collections.abc import Callable
from functools import partial
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.errors import ErrorCode, RunnelError
from runnel.native import backend, faults, records
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode, varint
from runnel.wire.batch import HEADER_SIZE, BatchHeader
from tests.unit.native.conftest import NAMES, load
from tests.unit.native.strategies import batches

NO_LIMIT = 1 << 30
SOUND = [
    Record(b"key", b"value", 1000, [("h", b"x"), ("i", None)]),
    Record(None, b"", 990),
    Record(b"", None, 1005, [("", b"")]),
]


def body(
    *,
    timestamp_delta: bytes = b"\x00",
    offset_delta: bytes = b"\x00",
    key: bytes = b"\x02k",
    value: bytes = b"\x02v",
    headers: bytes = b"\x00",
) -> bytes:
    return b"\x00" + timestamp_delta + offset_delta + key + value + headers


def sized(content: bytes) -> bytes:
    return varint(len(content)) + content


def batch(*contents: bytes, tail: bytes = b"", count: int | None = None) -> bytearray:
    """A batch of raw record bytes with a right CRC."""
    template = BatchHeader.read(encode([Record(None, None, 1000)]))
    number = len(contents) if count is None else count
    header = template.changed(record_count=number, last_offset_delta=number - 1)
    return header.write(b"".join(contents) + tail)


FAULTS = {
    "no record": (faults.LENGTH, varint(50) + body()),
    "negative length": (faults.LENGTH, varint(-1) + body()),
    "greatest length": (faults.LENGTH, varint(2**31 - 1) + body()),
    "least length": (faults.LENGTH, varint(-(2**31)) + body()),
    "empty record": (faults.TRUNCATED, varint(0) + bytes(8)),
    "attributes only": (faults.TRUNCATED, sized(b"\x00") + bytes(8)),
    "endless length": (faults.VARINT, b"\xff" * 12),
    "endless timestamp": (faults.VARINT, sized(body(timestamp_delta=b"\x80" * 10 + b"\x00"))),
    "endless offset": (faults.VARINT, sized(body(offset_delta=b"\x80" * 5 + b"\x00"))),
    "long key": (faults.KEY, sized(body(key=varint(5)))),
    "longest key": (faults.KEY, sized(body(key=varint(2**31 - 1)))),
    "long value": (faults.VALUE, sized(body(value=varint(3)))),
    "longest value": (faults.VALUE, sized(body(value=varint(2**31 - 1)))),
    "negative headers": (faults.HEADER_COUNT, sized(body(headers=varint(-1)))),
    "many headers": (faults.HEADER_COUNT, sized(body(headers=varint(2**31 - 1)))),
    "one header too many": (faults.HEADER_COUNT, sized(body(headers=varint(2) + b"\x00\x00"))),
    "null header key": (faults.HEADER, sized(body(headers=varint(1) + b"\x01\x00"))),
    "long header key": (faults.HEADER, sized(body(headers=varint(1) + varint(9) + b"\x00"))),
    "long header value": (faults.HEADER, sized(body(headers=varint(1) + b"\x00" + varint(9)))),
    "header cut off": (faults.TRUNCATED, sized(body(headers=varint(1) + b"\x02k"))),
    "surplus": (faults.SURPLUS, sized(body() + b"x")),
    "offset beyond": (faults.OFFSET_DELTA, sized(body(offset_delta=varint(1)))),
    "negative offset": (faults.OFFSET_DELTA, sized(body(offset_delta=varint(-1)))),
}


def error_of(work: Callable[[], object]) -> RunnelError:
    with pytest.raises(RunnelError) as caught:
        work()
    return caught.value


@pytest.mark.usefixtures("decoder")
@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_by_its_name(name: str) -> None:
    number, content = FAULTS[name]
    raw = batch(content)
    expected = str(faults.fault(number, 0, 0))
    for work in (
        lambda: records.validate(raw, require_keys=False),
        lambda: records.decode(raw, max_records=9, max_bytes=NO_LIMIT),
        lambda: records.max_timestamp(raw),
        lambda: records.first_at_or_after(raw, 2**62),
    ):
        error = error_of(work)
        assert (error.code, str(error)) == (ErrorCode.INVALID_RECORD, expected)


@pytest.mark.usefixtures("decoder")
def test_what_only_a_client_must_not_send() -> None:
    first, third = sized(body()), sized(body(offset_delta=varint(2)))
    keyless = sized(body(key=varint(-1), offset_delta=varint(1)))
    cases = [
        (faults.NOT_CONSECUTIVE, batch(first, third, third)),
        (faults.NOT_CONSECUTIVE, batch(first, first)),
        (faults.NO_KEY, batch(first, keyless)),
    ]
    for number, raw in cases:
        error = error_of(partial(records.validate, raw, require_keys=True))
        assert str(error) == str(faults.fault(number, 1, 0))
        assert error.code == ErrorCode.INVALID_RECORD
        records.decode(raw, max_records=9, max_bytes=NO_LIMIT)
    records.validate(cases[2][1], require_keys=False)


@pytest.mark.usefixtures("decoder")
def test_fewer_and_more_records_than_the_header_says() -> None:
    record = sized(body(value=varint(8) + b"longer so that two seem possible"[:8]))
    for number, raw in (
        (faults.TRAILING, batch(record, tail=b"\x00")),
        (faults.TRUNCATED, batch(record, count=2)),
    ):
        error = error_of(partial(records.validate, raw, require_keys=False))
        assert str(error) == str(faults.fault(number, 1, 0))


@pytest.mark.usefixtures("decoder")
@pytest.mark.parametrize("count", [0, -1, 2, 2**31 - 1])
def test_a_count_that_is_not_true(count: int) -> None:
    raw = batch(sized(body()), count=count)
    header = BatchHeader.read(raw)
    if count <= 0:
        raw = header.changed(last_offset_delta=0).write(raw[HEADER_SIZE:])
    error = error_of(lambda: records.validate(raw, require_keys=False))
    assert error.code == ErrorCode.INVALID_RECORD


@pytest.mark.usefixtures("decoder")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"magic": 1}, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        ({"base_offset": -1}, ErrorCode.CORRUPT_MESSAGE),
        ({"base_offset": 2**63 - 1}, ErrorCode.CORRUPT_MESSAGE),
        ({"last_offset_delta": -1}, ErrorCode.CORRUPT_MESSAGE),
        ({"last_offset_delta": 7}, ErrorCode.INVALID_RECORD),
        ({"attributes": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"attributes": 4}, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_headers_that_contradict_themselves(change: dict[str, int], code: ErrorCode) -> None:
    raw = encode(SOUND)
    changed = BatchHeader.read(raw).changed(**change).write(raw[HEADER_SIZE:])
    assert error_of(lambda: records.validate(changed, require_keys=False)).code == code


@pytest.mark.usefixtures("decoder")
def test_exactly_one_batch() -> None:
    raw = encode(SOUND)
    for wrong in (b"", raw[:60], raw[:-1], raw + b"x", raw + raw):
        error = error_of(partial(records.validate, wrong, require_keys=False))
        assert error.code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.usefixtures("decoder")
def test_bits_that_do_not_fit_are_dropped_as_in_java() -> None:
    wide_zero = b"\x80\x80\x80\x80\x70"  # bits 32 to 34
    wide_time = b"\x82" + b"\x80" * 8 + b"\x7e"  # 1 << 1, and bits beyond 63
    raw = batch(sized(body(offset_delta=wide_zero, timestamp_delta=wide_time)))
    assert records.validate(raw, require_keys=True).max_timestamp == 1001


@pytest.mark.usefixtures("decoder")
def test_timestamps_overflow_as_in_java() -> None:
    raw = batch(sized(body(timestamp_delta=varint(2**63 - 1))))
    (row,) = records.decode(raw, max_records=1, max_bytes=9).rows()
    assert row.timestamp == 1000 + 2**63 - 1 - 2**64


def outcome(module: ModuleType, raw: bytes | bytearray) -> list[object]:
    """All that a decoder says about a batch, errors included."""
    before = {name: getattr(backend, name) for name in NAMES}
    found: list[object] = []
    works: list[Callable[[], object]] = [
        lambda: records.decode(raw, max_records=NO_LIMIT, max_bytes=NO_LIMIT, verify_crc=False),
        lambda: records.decode(
            raw, max_records=2, max_bytes=10, from_offset=1, verify_crc=False, control=True
        ),
        lambda: records.decode(
            raw, max_records=9, max_bytes=10, keys=False, headers=False, verify_crc=False
        ),
        lambda: records.validate(raw, require_keys=False),
        lambda: records.validate(raw, require_keys=True),
        lambda: records.max_timestamp(raw),
        lambda: records.first_at_or_after(raw, 1001, 1),
    ]
    try:
        for name in NAMES:
            setattr(backend, name, getattr(module, name))
        for work in works:
            try:
                found.append(work())
            except RunnelError as error:
                found.append((error.code, str(error)))
    finally:
        for name, value in before.items():
            setattr(backend, name, value)
    return found


def ensure_agreement(raw: bytes | bytearray) -> bool:
    """Whether both accept it; they must agree on everything."""
    twin = importlib.import_module("runnel.native._records_py")
    compiled, plain = outcome(load("_records"), raw), outcome(twin, raw)
    assert compiled == plain
    return not isinstance(compiled[3], tuple) or isinstance(compiled[3], records.BatchSummary)


@pytest.mark.parametrize("codec", Compression)
def test_every_truncation(codec: Compression) -> None:
    """With the length left as it was, and with a length that fits what is left."""
    raw = encode(SOUND, codec=codec)
    header = BatchHeader.read(raw)
    for size in range(len(raw)):
        assert not ensure_agreement(raw[:size])
    accepted = [
        size
        for size in range(HEADER_SIZE, len(raw))
        if ensure_agreement(header.write(raw[HEADER_SIZE:size]))
    ]
    assert accepted == []


@pytest.mark.parametrize("codec", Compression)
def test_every_bit_flip(codec: Compression) -> None:
    raw = encode(SOUND, codec=codec)
    refused = sum(
        not ensure_agreement(_flipped(raw, position, bit))
        for position in range(len(raw))
        for bit in range(8)
    )
    assert refused > len(raw)  # many a flip changes a value alone


def _flipped(raw: bytearray, position: int, bit: int) -> bytearray:
    out = raw.copy()
    out[position] ^= 1 << bit
    return out


@settings(max_examples=100, deadline=None)
@given(made=batches(), seed=st.integers(0, 2**32))
def test_random_damage(made: tuple[list[Record], bytearray], seed: int) -> None:
    """Bytes overwritten, cut out and put in, under a header of the right length."""
    chance = random.Random(seed)
    for _ in range(5):
        raw = _damaged(made[1], chance)
        ensure_agreement(BatchHeader.read(raw).write(raw[HEADER_SIZE:]))


def _damaged(sound: bytearray, chance: random.Random) -> bytearray:
    raw = sound.copy()
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(12, max(HEADER_SIZE, len(raw)))
        match chance.randrange(3):
            case 0:
                raw[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
            case 1 if at >= HEADER_SIZE:
                del raw[at : at + chance.randint(1, 9)]
            case 2 if at >= HEADER_SIZE:
                raw[at:at] = chance.randbytes(chance.randint(1, 9))
    return raw


@settings(max_examples=200, deadline=None)
@given(payload=st.binary(max_size=80), count=st.integers(-2, 12))
def test_noise(payload: bytes, count: int) -> None:
    ensure_agreement(batch(payload, count=count))
