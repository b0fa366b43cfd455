"""What a partition knows of its producers: the idempotence window and the open transactions.

The rules are Kafka's (R24-R26). A batch is a duplicate when its epoch and both its sequence
numbers equal those of one of the producer's last five batches. Otherwise its first sequence must
follow the last, wrapping from 2^31-1 to 0; a new epoch starts at 0; a producer that is not known
(any more) may start anywhere (KIP-360). `check` judges and changes nothing; `update` records
what was appended and judges nothing, so recovery and followers use it alone (R25).

  .snapshot  int16 version 1, uint32 CRC-32C of the rest, int32 count, then 46 bytes an entry:
             int64 producer id, int16 epoch, int32 last sequence, int64 last offset,
             int32 last offset - first offset, int64 timestamp, int32 coordinator epoch,
             int64 first offset of the open transaction or -1
"""

import struct
from collections import deque
from typing import NamedTuple

from runnel.errors import ErrorCode, RunnelError
from runnel.storage.transactions import AbortedTransaction, Marker
from runnel.wire.batch import CONTROL, TRANSACTIONAL, BatchHeader, crc32c

WINDOW_BATCHES = 5
MAX_SEQUENCE = 2**31 - 1
SNAPSHOT_VERSION = 1

_SNAPSHOT_HEAD = struct.Struct(">hIi")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
_CRC_FROM = 6  # version and CRC are not covered


class WrittenBatch(NamedTuple):
    """One batch of the window; what a duplicate of it is answered with."""

    base_offset: int
    last_offset: int
    first_sequence: int
    last_sequence: int
    timestamp: int


class Producer:
    """The state of one producer id in one partition."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "txn_first_offset")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[WrittenBatch] = deque(maxlen=WINDOW_BATCHES)
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.txn_first_offset = -1

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    def raise_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class _Ended(NamedTuple):
    first_offset: int
    marker_offset: int


class ProducerStates:
    """Owned by one Log."""

    __slots__ = ("_ended", "_open", "producers")

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}
        # First offset of each open transaction -> producer id. Offsets only grow, so the first
        # key is the smallest: an insertion-ordered dict is all the sorting that is needed.
        self._open: dict[int, int] = {}
        # Transactions whose marker may still be above the high watermark, in order of the marker.
        self._ended: list[_Ended] = []

    def __len__(self) -> int:
        return len(self.producers)

    def check(self, header: BatchHeader) -> WrittenBatch | None:
        """May a client append this batch? The batch it repeats, or None for a new one.

        Raises INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE. Only for
        batches that carry a producer id and are not control batches.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return None
        first = header.base_sequence
        if header.producer_epoch == producer.epoch:
            last_sequence = producer.last_sequence
            if first != last_sequence + 1:
                last = _sequence_plus(first, header.last_offset_delta)
                for batch in producer.batches:
                    if batch.first_sequence == first and batch.last_sequence == last:
                        return batch
                if first != 0 or last_sequence != MAX_SEQUENCE:
                    raise RunnelError(
                        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                        f"producer {header.producer_id}: sequence {first} after {last_sequence}",
                    )
        elif header.producer_epoch < producer.epoch:
            raise RunnelError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id}: epoch {header.producer_epoch}"
                f" is older than {producer.epoch}",
            )
        elif first != 0:
            raise RunnelError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}: sequence {first} opens epoch"
                f" {header.producer_epoch}, which starts at 0",
            )
        if producer.txn_first_offset >= 0 and not header.attributes & TRANSACTIONAL:
            raise RunnelError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has an open transaction",
            )
        return None

    def check_marker(
        self, header: BatchHeader, marker: Marker, *, bumped_epoch: bool = False
    ) -> bool:
        """May a coordinator append this marker? False: it stands here already.

        With KIP-890 a marker's epoch is above that of its data (`bumped_epoch`), and equals that
        of the next transaction: so if one of that epoch is open, the marker comes too late.
        Raises INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return True
        is_next = bumped_epoch and header.producer_epoch == producer.epoch
        is_open = producer.txn_first_offset >= 0
        if header.producer_epoch < producer.epoch or (is_next and is_open):
            raise RunnelError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"marker of producer {header.producer_id}: epoch {header.producer_epoch}"
                f" comes after {producer.epoch}",
            )
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise RunnelError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"marker of producer {header.producer_id}: coordinator epoch"
                f" {marker.coordinator_epoch} is older than {producer.coordinator_epoch}",
            )
        return not is_next

    def update(self, header: BatchHeader, marker: Marker | None) -> AbortedTransaction | None:
        """A batch of a producer is in the log. An aborted transaction that it ended, if any."""
        last_offset = header.base_offset + header.last_offset_delta
        producer = self.producers.get(header.producer_id)
        if header.attributes & CONTROL:
            if marker is None:
                return None
            if producer is None:
                producer = self.producers[header.producer_id] = Producer(header.producer_epoch)
            return self._end_transaction(header, producer, marker)
        if producer is None:
            producer = self.producers[header.producer_id] = Producer(header.producer_epoch)
        elif header.producer_epoch != producer.epoch:
            producer.raise_epoch(header.producer_epoch)
        first = header.base_sequence
        producer.batches.append(
            WrittenBatch(
                header.base_offset,
                last_offset,
                first,
                _sequence_plus(first, header.last_offset_delta),
                header.max_timestamp,
            )
        )
        producer.last_timestamp = header.max_timestamp
        if header.attributes & TRANSACTIONAL and producer.txn_first_offset < 0:
            producer.txn_first_offset = header.base_offset
            self._open[header.base_offset] = header.producer_id
        return None

    def _end_transaction(
        self, header: BatchHeader, producer: Producer, marker: Marker
    ) -> AbortedTransaction | None:
        producer.raise_epoch(header.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        first_offset = producer.txn_first_offset
        if first_offset < 0:
            return None  # a transaction without data here leaves nothing to hide or to wait for
        producer.txn_first_offset = -1
        del self._open[first_offset]
        self._ended.append(_Ended(first_offset, header.base_offset))
        if marker.is_commit:
            return None
        stable = next(iter(self._open), header.base_offset + 1)
        return AbortedTransaction(header.producer_id, first_offset, header.base_offset, stable)

    @property
    def first_unstable_offset(self) -> int | None:
        """The start of the oldest transaction that is open, or ended by an unreplicated marker."""
        if not self._open and not self._ended:
            return None  # as nearly always
        undecided = next(iter(self._open), None)
        if not self._ended:
            return undecided
        unreplicated = min(ended.first_offset for ended in self._ended)
        return unreplicated if undecided is None else min(undecided, unreplicated)

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Transactions whose marker is replicated hold the last stable offset no more."""
        if self._ended and self._ended[0].marker_offset < high_watermark:
            self._ended = [e for e in self._ended if e.marker_offset >= high_watermark]

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that wrote nothing for so long and have no transaction open."""
        gone = [
            producer_id
            for producer_id, producer in self.producers.items()
            if producer.txn_first_offset < 0 and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in gone:
            del self.producers[producer_id]
        return len(gone)

    def snapshot(self) -> bytes:
        rows = [
            _SNAPSHOT_ENTRY.pack(producer_id, *_snapshot_fields(producer))
            for producer_id, producer in self.producers.items()
        ]
        body = struct.pack(">i", len(rows)) + b"".join(rows)
        return struct.pack(">hI", SNAPSHOT_VERSION, crc32c(body)) + body

    @classmethod
    def load(cls, data: bytes) -> "ProducerStates":
        """Raises ValueError for a damaged snapshot, RunnelError for one of a later release."""
        if len(data) < _SNAPSHOT_HEAD.size:
            raise ValueError("the snapshot is cut short")
        version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
        if crc32c(data[_CRC_FROM:]) != crc:
            raise ValueError("the snapshot's CRC is wrong")
        if version != SNAPSHOT_VERSION:
            raise RunnelError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"producer snapshot of version {version}"
            )
        if len(data) != _SNAPSHOT_HEAD.size + count * _SNAPSHOT_ENTRY.size:
            raise ValueError("the snapshot's count does not fit its size")
        states = cls()
        open_transactions: list[tuple[int, int]] = []
        rows = _SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_HEAD.size :])
        for producer_id, epoch, sequence, offset, delta, timestamp, coordinator, txn_first in rows:
            producer = states.producers[producer_id] = Producer(epoch)
            producer.coordinator_epoch = coordinator
            producer.last_timestamp = timestamp
            producer.txn_first_offset = txn_first
            if offset >= 0:
                first_sequence = _sequence_plus(sequence, -delta)
                producer.batches.append(
                    WrittenBatch(offset - delta, offset, first_sequence, sequence, timestamp)
                )
            if txn_first >= 0:
                open_transactions.append((txn_first, producer_id))
        states._open.update(sorted(open_transactions))
        return states


def _snapshot_fields(producer: Producer) -> tuple[int, ...]:
    last = producer.batches[-1] if producer.batches else WrittenBatch(-1, -1, -1, -1, -1)
    return (
        producer.epoch,
        last.last_sequence,
        last.last_offset,
        last.last_offset - last.base_offset,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.txn_first_offset,
    )


def _sequence_plus(sequence: int, delta: int) -> int:
    """Sequences wrap from 2^31-1 to 0; -1 (none) stays what it is."""
    return sequence if sequence < 0 else (sequence + delta) & MAX_SEQUENCE
