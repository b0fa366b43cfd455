"""RecordBatch v2 as the broker sees it: a header to check and stamp, records never opened.

    position  size
           0     8  base offset             stamped by the leader
           8     4  length                  of all that follows this field
          12     4  partition leader epoch  stamped by the leader
          16     1  magic                   2
          17     4  crc                     CRC-32C of all from attributes to the end
          21     2  attributes              see the bits below
          23     4  last offset delta
          27     8  base timestamp
          35     8  max timestamp
          43     8  producer id             -1 without idempotence, as are the next two
          51     2  producer epoch
          53     4  base sequence
          57     4  record count
          61        records, compressed as one

The CRC starts after the offset and the epoch, so stamping them is free. All numbers are big
endian. Every function here wants the whole header to be there: the caller has looked.
"""

from struct import Struct
from typing import Final

from runnel.ports import Readable
from runnel.wire import hot
from runnel.wire.crc import crc32c as crc32c  # one place to take it from

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12  # base offset and length, which `length` does not count
CRC_START: Final = 21
MAGIC: Final = 2

COMPRESSION_MASK: Final = 0x07  # 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd
LOG_APPEND_TIME: Final = 0x08  # max timestamp is the broker's, for all records
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40  # base timestamp says when compaction may drop tombstones

_HEADER: Final = hot.BATCH_HEADER
_unpack_header: Final = hot.batch_header
_stamp: Final = hot.stamp_batch
_pack_int64_into: Final = Struct(">q").pack_into
_pack_uint32_into: Final = Struct(">I").pack_into
_CRC_AT: Final = 17
_MAX_TIMESTAMP_AT: Final = 35


class BatchHeader:
    """The header as it was when it was read; stamping the bytes does not change it."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "last_offset_delta",
        "length",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "record_count",
    )

    def __init__(
        self,
        base_offset: int,
        length: int,
        partition_leader_epoch: int,
        magic: int,
        crc: int,
        attributes: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        record_count: int,
    ) -> None:
        self.base_offset = base_offset
        self.length = length
        self.partition_leader_epoch = partition_leader_epoch
        self.magic = magic
        self.crc = crc
        self.attributes = attributes
        self.last_offset_delta = last_offset_delta
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.record_count = record_count

    @classmethod
    def read(cls, buffer: Readable, position: int = 0) -> "BatchHeader":
        # Spelled out: a call with known arguments is a plain C call where this is compiled.
        a, b, c, d, e, f, g, h, i, j, k, l, m = _unpack_header(buffer, position)  # noqa: E741
        return BatchHeader(a, b, c, d, e, f, g, h, i, j, k, l, m)

    def fields(self) -> tuple[int, ...]:
        """In the order of the bytes."""
        return (
            self.base_offset,
            self.length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        )

    def changed(self, **values: int) -> "BatchHeader":
        """Another header that differs in these fields."""
        other = BatchHeader(*self.fields())
        for name, value in values.items():
            setattr(other, name, value)
        return other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BatchHeader) and self.fields() == other.fields()

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __repr__(self) -> str:
        return f"BatchHeader{self.fields()}"

    @property
    def size(self) -> int:
        """Of the whole batch, in bytes."""
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    def write(self, records: Readable) -> bytearray:
        """The batch of this header and these bytes, with length and CRC as they must be."""
        length = HEADER_SIZE + len(records) - LOG_OVERHEAD
        batch = bytearray(_HEADER.pack(*self.changed(length=length).fields()))
        batch += records
        _stamp_crc(batch, 0)
        return batch


def crc_is_right(header: BatchHeader, batch: Readable, position: int = 0) -> bool:
    """Whether the bytes are those that the producer summed up. The batch is whole."""
    body = memoryview(batch)[position + CRC_START : position + header.length + LOG_OVERHEAD]
    return crc32c(body) == header.crc


def compression_of(batch: Readable, position: int = 0) -> int:
    return batch[position + CRC_START + 1] & COMPRESSION_MASK


def stamp(
    batch: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int
) -> None:
    """Write what the leader decides. The CRC stays right."""
    _stamp(batch, position, base_offset, leader_epoch)


def restamp_log_append_time(
    batch: bytearray | memoryview, position: int, timestamp_ms: int
) -> None:
    """Make `timestamp_ms` the time of every record, and the CRC anew. The batch is whole."""
    batch[position + CRC_START + 1] |= LOG_APPEND_TIME
    _pack_int64_into(batch, position + _MAX_TIMESTAMP_AT, timestamp_ms)
    _stamp_crc(batch, position)


def _stamp_crc(batch: bytearray | memoryview, position: int) -> None:
    end = position + LOG_OVERHEAD + int.from_bytes(batch[position + 8 : position + 12], "big")
    crc = crc32c(memoryview(batch)[position + CRC_START : end])
    _pack_uint32_into(batch, position + _CRC_AT, crc)
