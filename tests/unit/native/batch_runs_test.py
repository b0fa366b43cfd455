"""Runs of batches: the compiled ones and their Python twins find the same, whatever the bytes are.

That what they find is right is seen where they are used: in `journal_reading_test.py` and in
`storage/recovered_runs_test.py`, against the decoder of all batches and against appending.
"""

import struct
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnel.errors import RunnelError
from runnel.native import _batch_runs_py
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode, varint
from runnel.native.journal_steps import Step
from runnel.native.scanned import Run, Scanned, ScanRules
from runnel.wire.batch import BatchHeader
from tests.unit.native.conftest import load

KEYS = st.none() | st.binary(max_size=4) | st.sampled_from([b"\0\x01a", b"\0\x01bc", b"\0\x02"])
RECORDS = st.builds(
    Record,
    KEYS,
    st.none() | st.binary(max_size=20),
    st.integers(-1, 5),
    headers=st.just(()),
    offset=st.just(-1),
)
STRAIGHT = {b"\0\x01"}
START = Scanned(0, 0, 0, 0, -1, 0)
FOREVER = 2**63 - 1


@pytest.fixture(scope="module")
def compiled() -> ModuleType:
    return load("_batch_runs")


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    made, offset = bytearray(), 0
    for _ in range(draw(st.integers(1, 6))):
        offset += draw(st.sampled_from([0, 0, 0, 2]))
        producer_id = draw(st.sampled_from([-1, -1, 7]))
        records = draw(st.lists(RECORDS, min_size=1, max_size=3))
        made += encode(
            records,
            codec=draw(st.sampled_from([Compression.NONE] * 4 + [Compression.GZIP])),
            base_offset=offset,
            partition_leader_epoch=draw(st.sampled_from([0, 0, 0, 0, 1])),
            producer_id=producer_id,
            transactional=producer_id >= 0,
            control=draw(st.sampled_from([False] * 5 + [True])),
        )
        offset += len(records)
    return bytes(made)


@st.composite
def damaged_logs(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(logs()))
    for at in draw(st.lists(st.integers(0, len(data) - 1), max_size=2)):
        data[at] ^= 1 << draw(st.integers(0, 7))
    return bytes(data[: draw(st.integers(0, len(data)) | st.just(len(data)))])


@given(
    damaged_logs(),
    st.builds(
        ScanRules, st.sampled_from([-1, 4, FOREVER]), st.sampled_from([5, 2**62]), st.just(100)
    ),
    st.sampled_from([0, 1000]),
)
def test_a_scan_finds_the_same(
    compiled: ModuleType, data: bytes, rules: ScanRules, data_position: int
) -> None:
    before = START._replace(position=data_position)
    expected = _batch_runs_py.scan_run(data, data_position, rules, before)
    found: Run = compiled.scan_run(data, data_position, rules, before)
    assert found == expected
    assert all(type(number) is int for number in found.after)


def test_offsets_to_the_last_one_of_64_bits(compiled: ModuleType) -> None:
    for base_offset in (2**62, 2**63 - 3, 2**63 - 2, 2**63 - 1, -1, -(2**63)):
        record = Record(b"\0\x01", b"", 1)
        data = bytes(encode([record] * 2, base_offset=base_offset, partition_leader_epoch=0))
        rules = ScanRules(FOREVER, 2**63 - 2, 100)
        expected = _batch_runs_py.scan_run(data, 0, rules, START)
        assert compiled.scan_run(data, 0, rules, START) == expected
        assert (expected.after.position > 0) == (0 <= base_offset <= 2**63 - 3)
        assert _read(compiled, data, 0) == _read(_batch_runs_py, data, 0)


@given(damaged_logs(), st.integers(0, 9))
def test_a_journal_gives_the_same(compiled: ModuleType, data: bytes, from_offset: int) -> None:
    assert _read(compiled, data, from_offset) == _read(_batch_runs_py, data, from_offset)


def _read(module: ModuleType, data: bytes, from_offset: int) -> object:
    last: dict[bytes, bytes] = {}
    steps: list[Step] = []
    try:
        stopped = module.read_run(data, 0, from_offset, STRAIGHT, last, steps)
    except RunnelError as error:
        return error.code, str(error)
    return stopped, list(last.items()), steps


NUMBERS = st.integers(-3, 12) | st.sampled_from([63, 64, -(2**63), 2**63 - 1, 2**31])
TOO_LARGE = st.sampled_from([b"\xff" * 9 + b"\x02", b"\x80" * 10 + b"\0", b"\xff" * 9 + b"\x01"])


@given(
    st.lists(NUMBERS.map(varint) | TOO_LARGE | st.binary(max_size=4), max_size=12),
    st.integers(-1, 3),
    st.integers(0, 3),
)
def test_records_that_nobody_would_write(
    compiled: ModuleType, parts: list[bytes], count: int, from_offset: int
) -> None:
    """Their CRC is right: whoever wrote them is to blame, and they are refused or read alike."""
    plain = BatchHeader.read(encode([Record(b"", b"", 0)]))
    data = bytes(plain.changed(record_count=count).write(b"".join(parts)))
    assert _read(compiled, data, from_offset) == _read(_batch_runs_py, data, from_offset)


def test_a_batch_of_another_format_ends_a_scan(compiled: ModuleType) -> None:
    data = bytearray(encode([Record(None, b"", 0)], partition_leader_epoch=0))
    rules = ScanRules(FOREVER, 2**62, 100)
    assert compiled.scan_run(bytes(data), 0, rules, START).after.position == len(data)
    struct.pack_into(">b", data, 16, 3)
    assert compiled.scan_run(bytes(data), 0, rules, START).after == START
