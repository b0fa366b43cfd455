"""What a broker demands of a batch from a client, judged by its header and CRC alone (R23).

One question for the path that every batch takes, and one function that finds the words and the
error code for a batch that is not good.
"""

from typing import Final

from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.batch import (
    COMPRESSION_MASK,
    CONTROL,
    CRC_START,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    crc32c,
    crc_is_right,
)

NO_TIMESTAMP: Final = -1
_crc32c: Final = crc32c  # a name that is imported is looked for at every call
NOT_FOR_CLIENTS: Final = CONTROL | TRANSACTIONAL
LZ4: Final = 3
ZSTD: Final = 4  # the last compression type that Kafka has given out
# Of the flags of an lz4 frame: version 1, independent blocks, no dictionary. Java reads no other.
LZ4_FLAGS_AT: Final = HEADER_SIZE + 4
LZ4_FLAGS_MASK: Final = 0b1110_0011
LZ4_FLAGS: Final = 0b0110_0000


def is_good(header: BatchHeader, records: memoryview, size_max: int) -> bool:
    """Whether the records are one whole batch of a client. Wants at least a whole header."""
    size = len(records)
    count, attributes = header.record_count, header.attributes
    return (
        header.magic == MAGIC
        and header.length == size - LOG_OVERHEAD
        and size <= size_max
        and header.base_offset == 0
        and count > 0
        and header.last_offset_delta == count - 1
        and not attributes & NOT_FOR_CLIENTS
        and attributes & COMPRESSION_MASK <= ZSTD
        and (attributes & COMPRESSION_MASK != LZ4 or _java_reads_lz4(records))
        and (header.producer_id < 0 or (header.base_sequence >= 0 and header.producer_epoch >= 0))
        and _crc32c(records[CRC_START:]) == header.crc
    )


def is_good_in_transaction(header: BatchHeader, records: memoryview, size_max: int) -> bool:
    """The same of a batch whose partition is known to be in its producer's transaction."""
    if not header.attributes & TRANSACTIONAL or header.producer_id < 0:
        return False
    header.attributes &= ~TRANSACTIONAL
    good = is_good(header, records, size_max)
    header.attributes |= TRANSACTIONAL
    return good


def _java_reads_lz4(records: memoryview) -> bool:
    """A frame of dependent blocks is read by some clients, and stops others for good."""
    return len(records) > LZ4_FLAGS_AT and records[LZ4_FLAGS_AT] & LZ4_FLAGS_MASK == LZ4_FLAGS


def refusal(header: BatchHeader, records: memoryview, config: LogConfig) -> RunnelError:
    """Why a batch is not good, in Kafka's codes."""
    return _wrong_whole(header, records, config) or _wrong_header(header, records)


def _wrong_whole(header: BatchHeader, records: memoryview, config: LogConfig) -> RunnelError | None:
    size, held = header.size, len(records)
    code, why = ErrorCode.INVALID_RECORD, ""
    if header.magic != MAGIC:
        why = f"magic {header.magic}, only {MAGIC} is accepted"
    elif HEADER_SIZE <= size < held:
        why = "more than one batch for one partition"
    elif size != held:
        code, why = ErrorCode.CORRUPT_MESSAGE, f"batch of {size} bytes in {held}"
    elif size > config.max_message_bytes:
        code = ErrorCode.MESSAGE_TOO_LARGE
        why = f"batch of {size} bytes, max.message.bytes is {config.max_message_bytes}"
    elif size > config.segment_bytes:
        code = ErrorCode.RECORD_LIST_TOO_LARGE
        why = f"batch of {size} bytes, segment.bytes is {config.segment_bytes}"
    elif not crc_is_right(header, records):
        code, why = ErrorCode.CORRUPT_MESSAGE, "wrong CRC"
    return RunnelError(code, why) if why else None


def _wrong_header(header: BatchHeader, records: memoryview) -> RunnelError:
    code, why = ErrorCode.INVALID_RECORD, "a producer id without a sequence or epoch"
    if header.base_offset != 0:
        why = f"base offset {header.base_offset}, must be 0"
    elif header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        why = f"{header.record_count} records, last offset delta {header.last_offset_delta}"
    elif header.is_control:
        why = "clients may not write control records"
    elif header.is_transactional:
        code, why = ErrorCode.INVALID_TXN_STATE, "no transaction is open on this partition"
    elif header.compression > ZSTD:
        code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        why = f"unknown compression type {header.compression}"
    elif header.compression == LZ4 and not _java_reads_lz4(records):
        why = "an lz4 frame that Kafka's Java clients cannot read: its blocks must be independent"
    return RunnelError(code, why)


def ensure_timestamps(header: BatchHeader, now_ms: int, config: LogConfig) -> None:
    """Raises INVALID_TIMESTAMP for times too far from ours; a batch need not have any."""
    latest = header.max_timestamp
    earliest = min(header.base_timestamp, latest)
    if latest - now_ms > config.timestamp_after_max_ms or (
        earliest != NO_TIMESTAMP and now_ms - earliest > config.timestamp_before_max_ms
    ):
        raise RunnelError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamps {earliest} to {latest} lie too far from {now_ms}",
        )
