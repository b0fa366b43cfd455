"""Small record batches for tests of storage, built by the record encoder."""

import struct

from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.storage.transactions import ABORT, COMMIT
from runnel.wire.batch import BatchHeader


def make_batch(
    base_offset: int,
    count: int = 1,
    *,
    timestamp: int = 1_000,
    value: bytes = b"v",
    epoch: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> tuple[BatchHeader, bytes]:
    """A stamped batch of `count` records, whose timestamps are `timestamp` and the next ones."""
    records = [Record(timestamp=timestamp + i, key=None, value=value) for i in range(count)]
    raw = encode(
        records,
        base_offset=base_offset,
        partition_leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    return BatchHeader.read(raw), bytes(raw)


def make_marker(
    base_offset: int,
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int = 0,
    timestamp: int = 1_000,
    epoch: int = 0,
) -> tuple[BatchHeader, bytes]:
    """The control batch that ends a transaction."""
    key = struct.pack(">hh", 0, COMMIT if commit else ABORT)
    value = struct.pack(">hi", 0, coordinator_epoch)
    raw = encode(
        [Record(timestamp=timestamp, key=key, value=value)],
        base_offset=base_offset,
        partition_leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
    return BatchHeader.read(raw), bytes(raw)
