"""Idempotence and transactions of one partition (R24-R26), S25-S27, and the snapshot's bytes."""

import pytest

from runnel.errors import ErrorCode, RunnelError
from runnel.storage.producers import MAX_SEQUENCE, ProducerStates
from runnel.storage.transactions import AbortedTransaction, Marker, read_marker
from runnel.wire.batch import BatchHeader
from tests.support.batches import make_batch, make_marker


def _header(
    offset: int, sequence: int, count: int = 1, *, epoch: int = 0, pid: int = 1, txn: bool = False
) -> BatchHeader:
    return make_batch(
        offset, count, producer_id=pid, producer_epoch=epoch, sequence=sequence, transactional=txn
    )[0]


def _marker(
    offset: int, *, commit: bool, pid: int = 1, epoch: int = 0
) -> tuple[BatchHeader, Marker]:
    header, raw = make_marker(offset, commit=commit, producer_id=pid, producer_epoch=epoch)
    marker = read_marker(raw)
    assert marker is not None
    return header, marker


def _written(*headers: BatchHeader) -> ProducerStates:
    states = ProducerStates()
    for header in headers:
        assert states.check(header) is None
        states.update(header, None)
    return states


def _refusal(states: ProducerStates, header: BatchHeader) -> ErrorCode:
    with pytest.raises(RunnelError) as caught:
        states.check(header)
    return caught.value.code


def test_an_unknown_producer_starts_anywhere() -> None:
    assert ProducerStates().check(_header(0, 4711)) is None


def test_the_last_five_batches_are_known_again_and_the_sixth_is_not() -> None:
    """S25. The answer holds the offsets that the batch got when it was first written."""
    states = _written(*(_header(10 * n, 3 * n, 3) for n in range(6)))
    for n in range(1, 6):
        found = states.check(_header(999, 3 * n, 3))
        assert found is not None
        assert (found.base_offset, found.last_offset) == (10 * n, 10 * n + 2)
    assert _refusal(states, _header(999, 0, 3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_with_the_same_start_but_another_end_is_no_duplicate() -> None:
    states = _written(_header(0, 0, 3))
    assert _refusal(states, _header(9, 0, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_in_the_sequence_is_refused() -> None:
    states = _written(_header(0, 0, 3))
    assert _refusal(states, _header(3, 4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(_header(3, 3)) is None


def test_the_sequence_wraps() -> None:
    """S27: 2^31-1 is followed by 0, also within a batch."""
    states = _written(_header(0, MAX_SEQUENCE - 1, 2))
    assert states.check(_header(2, 0)) is None
    states = _written(_header(0, MAX_SEQUENCE, 3))
    assert states.producers[1].last_sequence == 1
    assert states.check(_header(3, 2)) is None
    assert states.check(_header(9, MAX_SEQUENCE, 3)) is not None


def test_a_new_epoch_starts_at_zero_and_an_old_one_is_fenced() -> None:
    states = _written(_header(0, 0, 3, epoch=1))
    assert _refusal(states, _header(3, 3, epoch=2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(_header(3, 0, epoch=2)) is None
    states.update(_header(3, 0, epoch=2), None)
    assert _refusal(states, _header(4, 3, epoch=1)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_expired_producer_starts_anywhere() -> None:
    """S26. A producer with an open transaction is never forgotten."""
    states = _written(_header(0, 0, 3), _header(3, 0, pid=2, txn=True))
    assert states.expire(now_ms=1_002 + 100, expiration_ms=101) == 0
    assert states.expire(now_ms=1_002 + 100, expiration_ms=100) == 1
    assert states.check(_header(4, 77)) is None
    assert 2 in states.producers


def test_a_plain_batch_inside_a_transaction_is_refused() -> None:
    states = _written(_header(0, 0, txn=True))
    assert _refusal(states, _header(1, 1)) == ErrorCode.INVALID_TXN_STATE


def test_the_first_unstable_offset_waits_for_the_marker_to_be_replicated() -> None:
    """R26: a transaction that ended holds it until its marker is below the high watermark."""
    states = _written(_header(5, 0, txn=True), _header(6, 0, pid=2, txn=True))
    assert states.first_unstable_offset == 5
    assert states.update(*_marker(7, commit=True)) is None
    assert states.first_unstable_offset == 5
    states.high_watermark_moved(7)
    assert states.first_unstable_offset == 5
    states.high_watermark_moved(8)
    assert states.first_unstable_offset == 6


def test_an_abort_names_the_stable_offset_of_its_time() -> None:
    states = _written(_header(5, 0, txn=True), _header(6, 0, pid=2, txn=True))
    assert states.update(*_marker(7, commit=False)) == AbortedTransaction(1, 5, 7, 6)
    assert states.update(*_marker(8, commit=False, pid=2)) == AbortedTransaction(2, 6, 8, 9)


def test_a_marker_without_data_ends_nothing() -> None:
    states = ProducerStates()
    assert states.update(*_marker(7, commit=False)) is None
    assert states.first_unstable_offset is None
    assert states.producers[1].epoch == 0


def test_a_marker_of_the_next_epoch_restarts_the_sequence() -> None:
    """KIP-890: the epoch is raised by the marker that ends the transaction."""
    states = _written(_header(5, 0, 4, txn=True))
    states.update(*_marker(9, commit=True, epoch=1))
    assert _refusal(states, _header(10, 4, txn=True)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert states.check(_header(10, 0, epoch=1, txn=True)) is None


def test_stale_markers_are_refused() -> None:
    states = _written(_header(0, 0, epoch=3, txn=True))
    header, _ = _marker(1, commit=True, epoch=2)
    with pytest.raises(RunnelError) as caught:
        states.check_marker(header, Marker(True, 9))
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    header, _ = _marker(1, commit=True, epoch=3)
    states.update(header, Marker(True, 9))
    with pytest.raises(RunnelError) as caught:
        states.check_marker(header, Marker(True, 8))
    assert caught.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED


SNAPSHOT = bytes.fromhex(
    "0001 00000000 00000002"
    "0000000000000001 0000 00000002 0000000000000002 00000002 00000000000003ea"
    "ffffffff ffffffffffffffff"
    "0000000000000002 0003 00000000 0000000000000003 00000000 00000000000003e8"
    "ffffffff 0000000000000003"
)


def test_the_snapshot_has_kafkas_bytes() -> None:
    states = _written(_header(0, 0, 3), _header(3, 0, pid=2, epoch=3, txn=True))
    data = states.snapshot()
    assert data[:2] == SNAPSHOT[:2]
    assert data[6:] == SNAPSHOT[6:]  # the CRC before it is proven by Kafka's own dump tool
    loaded = ProducerStates.load(data)
    assert loaded.snapshot() == data
    assert loaded.first_unstable_offset == 3
    found = loaded.check(_header(99, 0, 3))
    assert found is not None
    assert (found.base_offset, found.last_offset) == (0, 2)


def test_every_flipped_bit_and_every_cut_of_a_snapshot_is_noticed() -> None:
    data = _written(_header(0, 0, 3), _header(3, 0, pid=2, txn=True)).snapshot()
    for bit in range(16, len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match=r"CRC|count"):
            ProducerStates.load(bytes(damaged))
    for size in range(len(data)):
        with pytest.raises(ValueError, match=r"CRC|short"):
            ProducerStates.load(data[:size])


def test_a_snapshot_of_a_later_release_is_refused() -> None:
    data = bytearray(_written(_header(0, 0)).snapshot())
    data[1] = 2
    with pytest.raises(RunnelError, match="version 2"):
        ProducerStates.load(bytes(data))
