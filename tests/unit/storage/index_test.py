"""Index entries byte for byte as Kafka has them, and what is refused."""

import pytest

from runnel.storage.index import OffsetIndex, TimeIndex

# Base offset 100: batch ending at 104 stands at 4200, the one ending at 300 at 70000.
OFFSET_BYTES = bytes.fromhex("00000004 00001068 000000c8 00011170")
TIME_BYTES = bytes.fromhex("0000018bcfe56800 00000004 0000018bcfe56801 000000c8")


def _offset_index() -> OffsetIndex:
    index = OffsetIndex(100)
    index.append(104, 4200)
    index.append(300, 70_000)
    return index


def _time_index() -> TimeIndex:
    index = TimeIndex(100)
    index.maybe_append(1_700_000_000_000, 104)
    index.maybe_append(1_699_999_999_999, 104)  # older than the last: not an entry
    index.maybe_append(1_700_000_000_001, 300)
    return index


def test_offset_entries_are_written_as_kafka_writes_them() -> None:
    write = _offset_index().unwritten("path")
    assert write is not None
    assert (write.position, write.data, write.cut) == (0, OFFSET_BYTES, False)


def test_only_new_entries_are_written() -> None:
    index = _offset_index()
    index.written()
    assert index.unwritten("path") is None
    index.append(400, 80_000)
    write = index.unwritten("path")
    assert write is not None
    assert (write.position, write.data) == (16, bytes.fromhex("0000012c 00013880"))


def test_a_truncated_index_is_written_anew_and_its_file_cut() -> None:
    index = _offset_index()
    index.written()
    index.truncate(300)
    write = index.unwritten("path")
    assert write is not None
    assert (write.position, write.data, write.cut) == (0, OFFSET_BYTES[:8], True)
    assert index.last_position == 4200


@pytest.mark.parametrize(
    ("offset", "position"),
    [(100, 0), (103, 0), (104, 4200), (299, 4200), (300, 70_000), (9999, 70_000)],
)
def test_position_before_an_offset(offset: int, position: int) -> None:
    assert _offset_index().position_before(offset) == position


@pytest.mark.parametrize(("limit", "position"), [(4199, 0), (4200, 4200), (70_001, 70_000)])
def test_position_up_to_a_limit(limit: int, position: int) -> None:
    assert _offset_index().position_up_to(limit) == position


def test_preallocated_zeros_are_no_entries() -> None:
    index = OffsetIndex.decode(OFFSET_BYTES + bytes(10 << 10), 100, 100_000)
    assert index.entries() == [(104, 4200), (300, 70_000)]
    assert index.unwritten("path") is None
    assert TimeIndex.decode(TIME_BYTES + bytes(12 << 10), 100).entries() == _time_index().entries()


@pytest.mark.parametrize(
    "data",
    [
        OFFSET_BYTES[:-1],  # cut short
        OFFSET_BYTES[8:] + OFFSET_BYTES[:8],  # goes back
        OFFSET_BYTES[:8] * 2,  # does not grow
        b"\xff" * 8,  # before the segment
        bytes.fromhex("00000004 00100000"),  # past the end of the log
        bytes(8) + OFFSET_BYTES,  # a hole of zeros
    ],
)
def test_a_damaged_offset_index_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"entr|end"):
        OffsetIndex.decode(data, 100, 100_000)


def test_time_entries_are_written_as_kafka_writes_them() -> None:
    write = _time_index().unwritten("path")
    assert write is not None
    assert write.data == TIME_BYTES
    assert TimeIndex.decode(TIME_BYTES, 100).last == (1_700_000_000_001, 300)


@pytest.mark.parametrize(
    ("timestamp", "offset"),
    [(1, 100), (1_700_000_000_000, 100), (1_700_000_000_001, 104), (1_800_000_000_000, 300)],
)
def test_offset_before_a_timestamp(timestamp: int, offset: int) -> None:
    assert _time_index().offset_before(timestamp) == offset


@pytest.mark.parametrize("data", [TIME_BYTES[:-1], TIME_BYTES[12:] + TIME_BYTES[:12], b"\xff" * 12])
def test_a_damaged_time_index_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"entr|offsets"):
        TimeIndex.decode(data, 100)
