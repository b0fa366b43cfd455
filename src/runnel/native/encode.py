"""Building a record batch, byte for byte as Kafka's Java producer does."""

from collections.abc import Iterable

from runnel.native.columns import Payload, Record
from runnel.native.compression import Compression, compress
from runnel.wire.batch import CONTROL, LOG_APPEND_TIME, MAGIC, TRANSACTIONAL, BatchHeader


def encode(
    records: Iterable[Record],
    *,
    codec: Compression = Compression.NONE,
    level: int | None = None,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
) -> bytearray:
    """One batch of at least one record. A record that has an offset leaves a gap before it."""
    payload = bytearray()
    count, next_offset, base_timestamp, max_timestamp = 0, base_offset, -1, -1
    for record in records:
        if count == 0:
            base_timestamp = record.timestamp
        offset = next_offset if record.offset < 0 else record.offset
        assert offset >= next_offset, (offset, next_offset)
        body = _body(record, record.timestamp - base_timestamp, offset - base_offset)
        payload += varint(len(body))
        payload += body
        max_timestamp = max(max_timestamp, record.timestamp)
        next_offset = offset + 1
        count += 1
    assert count > 0, "a batch has records"
    attributes = codec | (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME
        max_timestamp = log_append_time_ms
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        partition_leader_epoch=partition_leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=next_offset - 1 - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=count,
    )
    return header.write(compress(codec, payload, level))


def batch_of(
    payload: Payload,
    *,
    codec: Compression = Compression.NONE,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytearray:
    """A batch around records that `native.payloads` has encoded."""
    header = BatchHeader(
        base_offset=0,
        length=0,
        partition_leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=codec | (TRANSACTIONAL if transactional else 0),
        last_offset_delta=payload.record_count - 1,
        base_timestamp=payload.base_timestamp,
        max_timestamp=payload.max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=payload.record_count,
    )
    return header.write(compress(codec, payload.data, level))


def varint(value: int) -> bytes:
    """Zigzag, as all numbers of a record are; good for varlongs too."""
    return uvarint(value << 1 ^ value >> 63)


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _body(record: Record, timestamp_delta: int, offset_delta: int) -> bytearray:
    out = bytearray(1)  # attributes, of which none is defined
    out += varint(timestamp_delta)
    out += varint(offset_delta)
    _append_bytes(out, record.key)
    _append_bytes(out, record.value)
    out += varint(len(record.headers))
    for key, value in record.headers:
        _append_bytes(out, key.encode())
        _append_bytes(out, value)
    return out


def _append_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out += varint(-1)
    else:
        out += varint(len(value))
        out += value
