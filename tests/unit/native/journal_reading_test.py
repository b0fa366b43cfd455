"""A journal is read as the decoder of all batches reads it; damage is refused, never read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnel.errors import RunnelError
from runnel.native.columns import ControlType, Record
from runnel.native.compression import Compression
from runnel.native.encode import encode
from runnel.native.journal_reading import JournalReader
from runnel.native.journal_steps import Step
from runnel.native.records import decode

COMMIT_MARKER = Record(b"\0\0\0\x01", b"\0\0\0\0\0\0", 5)
KEYS = st.none() | st.binary(max_size=9) | st.sampled_from([b"\0\x01a", b"\0\x01bc"])
RECORDS = st.builds(
    Record,
    key=KEYS,
    value=st.none() | st.binary(max_size=100),
    timestamp=st.integers(-1, 2**40),
    headers=st.lists(
        st.tuples(st.sampled_from(["", "h"]), st.none() | st.binary(max_size=3)), max_size=2
    ),
    offset=st.just(-1),
)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    made, offset = bytearray(), draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(1, 4))):
        offset += draw(st.integers(0, 3))  # what compaction took away
        producer_id = draw(st.sampled_from([-1, -1, -1, 7, 2**40]))
        control = producer_id >= 0 and draw(st.booleans())
        records = [COMMIT_MARKER] if control else draw(st.lists(RECORDS, min_size=1, max_size=3))
        made += encode(
            records,
            codec=draw(st.sampled_from([Compression.NONE, Compression.NONE, Compression.GZIP])),
            base_offset=offset,
            producer_id=producer_id,
            transactional=producer_id >= 0,
            control=control,
        )
        offset += len(records)
    return bytes(made)


def _expected(data: bytes, from_offset: int) -> tuple[list[Step], int]:
    columns = decode(data, from_offset=from_offset, max_records=2**31 - 1, max_bytes=2**30)
    keys, values = columns.keys.values(), columns.values.values()
    steps: list[Step] = []
    for batch in columns.batches:
        producer_id = batch.header.producer_id
        if batch.control is not None:
            steps.append((batch.control, None, producer_id))
        for row in range(batch.first_row, batch.first_row + batch.row_count):
            key = keys[row]
            if key is not None:
                steps.append((key, values[row], producer_id))
    return steps, columns.next_offset


@given(batches(), st.integers(0, 4))
def test_every_record_and_marker_is_there(data: bytes, later: int) -> None:
    from_offset = int.from_bytes(data[:8], "big") + later
    steps, next_offset = _expected(data, from_offset)
    reader = JournalReader(())
    assert reader.read(data, from_offset) == next_offset
    assert reader.steps == steps


@given(batches())
def test_what_is_passed_over_changes_no_outcome(data: bytes) -> None:
    """The model: the last value per key, and per producer what it wrote before its marker and
    nobody has deleted since."""
    reader = JournalReader({b"\0\x01"})
    reader.read(data, 0)
    steps, _ = _expected(data, 0)
    assert len(reader.steps) <= len(steps)
    assert _outcome(reader.steps) == _outcome(steps)


def _outcome(steps: list[Step]) -> tuple[dict[object, bytes | None], list[object], set[object]]:
    """What each key has at the end, the rest in its order with the keys known by then, and which
    keys wait in a transaction."""
    last: dict[object, bytes | None] = {}
    story: list[object] = []
    waiting: set[object] = set()
    for key, value, producer_id in steps:
        if isinstance(key, bytes) and key[:2] == b"\0\x01" and producer_id < 0:
            last[key] = value
            if value is None:
                waiting.discard(key)
        else:
            story.append((key, value, producer_id, dict(last)))
            waiting.add(key)
    return last, story, waiting


def test_only_the_last_of_a_key_is_given() -> None:
    pairs = [
        (b"\0\x01a", b"1"),
        (b"\0\x01b", b"2"),
        (b"\0\x01a", None),
        (b"\0\x02c", b"3"),
        (b"\0\x01b", b"4"),
    ]
    data = bytes(encode([Record(key, value) for key, value in pairs]))
    reader = JournalReader({b"\0\x01"})
    assert reader.read(data, 0) == 5
    assert reader.steps == [
        (b"\0\x01a", None, -1),
        (b"\0\x01b", b"2", -1),
        (b"\0\x02c", b"3", -1),
        (b"\0\x01b", b"4", -1),
    ]


def test_a_marker_is_a_step() -> None:
    data = bytes(encode([COMMIT_MARKER], producer_id=7, transactional=True, control=True))
    reader = JournalReader(())
    reader.read(data, 0)
    assert reader.steps == [(ControlType.COMMIT, None, 7)]


@given(batches(), st.data())
def test_a_flipped_byte_is_refused(data: bytes, draw: st.DataObject) -> None:
    damaged = bytearray(data)
    at = draw.draw(st.integers(16, len(data) - 1))  # the offset and epoch are under no CRC
    size = 12 + int.from_bytes(data[8:12], "big")
    if at < size:
        damaged[at] ^= 1 << draw.draw(st.integers(0, 7))
        with pytest.raises(RunnelError):
            JournalReader(()).read(bytes(damaged), 0)


@given(st.binary(min_size=61, max_size=200))
def test_any_bytes_are_refused_in_words(data: bytes) -> None:
    with pytest.raises(RunnelError):
        JournalReader(()).read(data, 0)
