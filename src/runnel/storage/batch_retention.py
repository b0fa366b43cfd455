"""What compaction leaves of one batch: all of it, some of its records, its bare header, nothing.

The rules (R35) are those of Kafka's `Cleaner` and `MemoryRecords.filterTo`:
  - a record stays unless a later one of its key is known, or it has no key;
  - a tombstone, and a marker of which no data is left, stay until their delete horizon. The first
    compaction that meets them sets it: bit 6 of the attributes, and the time itself as the base
    timestamp, from which the records' own times are counted then;
  - the last batch of a producer that may go on stays as a header without records, because it holds
    the sequence number and the epoch; so does the last batch of the round;
  - offsets, the last offset of the batch among them, and sequences stay what they are.
"""

from typing import NamedTuple

from runnel.native.backend import OffsetMap, rebased
from runnel.native.compression import codec_of, compress
from runnel.native.records import payload_of
from runnel.ports import Readable
from runnel.storage.cleaned_transactions import CleanedTransactions
from runnel.storage.cleaning_plan import LastRecord
from runnel.storage.transactions import read_marker
from runnel.wire.batch import (
    CONTROL,
    DELETE_HORIZON,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
)

KEPT_WHEN_EMPTY = LOG_APPEND_TIME | TRANSACTIONAL | CONTROL
NO_TIMESTAMP = -1


class Round(NamedTuple):
    """What one compaction goes by."""

    offsets: OffsetMap
    mapped_offset: int  # the map knows all before this
    end_offset: int  # of the round: its last batch stays
    now_ms: int
    delete_retention_ms: int
    last_records: dict[int, LastRecord]
    transactions: CleanedTransactions


class Left(NamedTuple):
    """A batch after compaction."""

    header: BatchHeader
    raw: Readable


def left_of(header: BatchHeader, raw: memoryview, by: Round) -> Left | None:
    """Raises RunnelError for records that cannot be read. Batches come in the order of the log."""
    if header.attributes & CONTROL:
        return _left_of_marker(header, raw, by)
    if by.transactions.is_aborted(header):
        return _emptied(header, by)
    if header.record_count == 0:
        return Left(header, raw) if _stays_empty(header, by) else None
    payload = payload_of(header, raw[HEADER_SIZE:])
    has_horizon = header.attributes & DELETE_HORIZON != 0
    is_past_horizon = has_horizon and header.base_timestamp <= by.now_ms
    count, tombstones, max_timestamp, records = by.offsets.retain(
        header, payload, by.mapped_offset, is_past_horizon
    )
    if count == 0:
        return _emptied(header, by)
    sets_horizon = tombstones > 0 and not has_horizon
    if count == header.record_count and not sets_horizon:
        return Left(header, raw)
    if not header.attributes & LOG_APPEND_TIME:
        header = header.changed(max_timestamp=max_timestamp)
    return _rewritten(header.changed(record_count=count), records, by if sets_horizon else None)


def _left_of_marker(header: BatchHeader, raw: memoryview, by: Round) -> Left | None:
    may_go = by.transactions.may_drop_marker(header, read_marker(raw))
    has_horizon = header.attributes & DELETE_HORIZON != 0
    if header.record_count == 0 or (may_go and has_horizon and header.base_timestamp <= by.now_ms):
        return _emptied(header, by)
    if may_go and not has_horizon:
        return _rewritten(header, payload_of(header, raw[HEADER_SIZE:]), by)
    return Left(header, raw)


def _rewritten(header: BatchHeader, records: Readable, sets_horizon: Round | None) -> Left:
    if sets_horizon is not None:
        horizon_ms = sets_horizon.now_ms + sets_horizon.delete_retention_ms
        records = rebased(header, records, horizon_ms)
        attributes = header.attributes | DELETE_HORIZON
        header = header.changed(attributes=attributes, base_timestamp=horizon_ms)
    raw = header.write(compress(codec_of(header.attributes), records))
    return Left(BatchHeader.read(raw), raw)


def _emptied(header: BatchHeader, by: Round) -> Left | None:
    if not _stays_empty(header, by):
        return None
    raw = header.changed(
        attributes=header.attributes & KEPT_WHEN_EMPTY,
        base_timestamp=NO_TIMESTAMP,
        record_count=0,
    ).write(b"")
    return Left(BatchHeader.read(raw), raw)


def _stays_empty(header: BatchHeader, by: Round) -> bool:
    if header.next_offset == by.end_offset:
        return True
    last = by.last_records.get(header.producer_id) if header.producer_id >= 0 else None
    if last is None:
        return False
    if last.last_data_offset >= 0:
        return header.last_offset == last.last_data_offset
    return header.is_control and header.producer_epoch == last.producer_epoch
