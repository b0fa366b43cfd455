"""The index of aborted transactions and the markers that end one."""

import pytest

from runnel.errors import RunnelError
from runnel.storage.transactions import (
    AbortedTransaction,
    Marker,
    TransactionIndex,
    read_marker,
)
from tests.support.batches import make_batch, make_marker

ENTRY = bytes.fromhex("0000 0000000000000007 000000000000000a 0000000000000014 0000000000000015")


def _index() -> TransactionIndex:
    index = TransactionIndex()
    index.append(AbortedTransaction(7, 10, 20, 21))
    index.append(AbortedTransaction(8, 5, 30, 25))
    index.append(AbortedTransaction(7, 32, 40, 41))
    return index


def test_entries_have_kafkas_bytes() -> None:
    write = _index().unwritten("path")
    assert write is not None
    assert write.data[:34] == ENTRY
    assert TransactionIndex.decode(write.data, 0).entries == _index().entries


@pytest.mark.parametrize(
    ("start", "end", "producers", "stops"),
    [(0, 11, [7], True), (21, 26, [8], True), (15, 32, [7, 8], True), (31, 99, [7], False)],
)
def test_collecting_what_touches_a_range(
    start: int, end: int, producers: list[int], stops: bool
) -> None:
    """The walk stops at the first entry whose last stable offset covers the range."""
    found: list[AbortedTransaction] = []
    assert _index().collect(start, end, found) == stops
    assert [entry.producer_id for entry in found] == producers


def test_truncation_drops_transactions_whose_marker_is_cut() -> None:
    index = _index()
    index.truncate(30)
    assert [entry.last_offset for entry in index.entries] == [20]


@pytest.mark.parametrize("data", [ENTRY[:-1], ENTRY * 2, ENTRY[:18] + bytes(8) + ENTRY[26:]])
def test_a_damaged_index_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"entr"):
        TransactionIndex.decode(data, 5)


def test_an_index_of_a_later_release_is_refused() -> None:
    with pytest.raises(RunnelError, match="version 1"):
        TransactionIndex.decode(b"\0\1" + ENTRY[2:], 0)


@pytest.mark.parametrize("commit", [True, False])
def test_markers_are_read(commit: bool) -> None:
    _, raw = make_marker(3, commit=commit, producer_id=1, producer_epoch=0, coordinator_epoch=9)
    assert read_marker(raw) == Marker(commit, 9)


def test_an_emptied_control_batch_has_no_marker() -> None:
    _, raw = make_marker(3, commit=True, producer_id=1, producer_epoch=0)
    assert read_marker(raw[:61]) is None


def test_a_cut_or_plain_record_is_no_marker() -> None:
    _, raw = make_marker(3, commit=True, producer_id=1, producer_epoch=0)
    for size in range(62, len(raw) - 1):
        with pytest.raises(RunnelError):
            read_marker(raw[:size])
    with pytest.raises(RunnelError):
        read_marker(make_batch(0, 1)[1])
