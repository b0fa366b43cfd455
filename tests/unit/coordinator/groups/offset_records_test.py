"""Offsets in the journal are what the codecs of the same messages write and read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnel.coordinator.groups.offset_records import (
    CommittedOffset,
    decode_offset,
    encode_offset,
    offset_record,
)
from runnel.coordinator.records import JournalRecord, decode_record, encode_record, kinds_of
from runnel.errors import WireError
from runnel.wire.messages.records.offset_commit import OffsetCommitKey, OffsetCommitValue

KINDS = kinds_of((OffsetCommitKey, OffsetCommitValue))
TEXTS = st.text(st.characters(codec="utf-8"), max_size=300)
INT64 = st.integers(-(2**63), 2**63 - 1)
TOPIC_IDS = st.just(bytes(16)) | st.binary(min_size=16, max_size=16)
KEYS = st.builds(
    OffsetCommitKey, group=TEXTS, topic=TEXTS, partition=st.integers(-(2**31), 2**31 - 1)
)
VALUES = st.builds(
    OffsetCommitValue,
    offset=INT64,
    leader_epoch=st.integers(-1, 2**31 - 1),
    metadata=TEXTS,
    commit_timestamp=INT64,
    expire_timestamp=st.just(-1) | INT64,
    topic_id=TOPIC_IDS,
)


@given(KEYS, VALUES)
def test_they_are_written_as_the_codecs_do(key: OffsetCommitKey, value: OffsetCommitValue) -> None:
    version = 4 if value.expire_timestamp == -1 else 1
    expected = encode_record(JournalRecord(key, value, version))
    assert encode_offset(offset_record(key, value, 0)) == expected


@given(KEYS, st.none() | VALUES, st.integers(0, 4))
def test_every_version_is_read(
    key: OffsetCommitKey, value: OffsetCommitValue | None, version: int
) -> None:
    raw_key, raw_value = encode_record(JournalRecord(key, value, version))
    record = decode_record(KINDS, raw_key, raw_value)
    assert record is not None
    assert decode_offset(raw_key, raw_value, 7) == offset_record(record.key, record.value, 7)


def _example() -> tuple[bytes, bytes]:
    found = CommittedOffset(5, 1, "note", 1_700_000_000_000, -1, b"i" * 16, 0)
    return encode_offset(("group", "topic", 3, found))


@pytest.mark.parametrize("cut", range(1, 50))
def test_what_is_cut_short_is_refused(cut: int) -> None:
    """Never another offset than the one that was written, never another exception."""
    key, value = _example()
    for short_key, short_value in ((key[:-cut], value), (key, value[:-cut])):
        if len(short_key) >= 2:
            with pytest.raises(WireError):
                decode_offset(short_key, short_value, 0)


@given(st.data())
def test_a_flipped_byte_never_raises_anything_else(data: st.DataObject) -> None:
    key, value = map(bytearray, _example())
    damaged = data.draw(st.sampled_from([key, value]))
    at = data.draw(st.integers(2 if damaged is key else 0, len(damaged) - 1))
    damaged[at] = data.draw(st.integers(0, 255))
    try:
        found = decode_offset(bytes(key), bytes(value), 0)
    except WireError:
        return
    record = decode_record(KINDS, key, value)
    assert record is not None
    assert found == offset_record(record.key, record.value, 0)
