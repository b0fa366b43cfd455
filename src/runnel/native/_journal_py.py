"""What a coordinator writes, in Python: the twin of `_journal.pyx`.

The batch is what `native.encode.encode` makes of the same records, byte for byte; key and value of
a committed offset are what the codecs make of OffsetCommitKey and OffsetCommitValue.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

from runnel.native.encode import uvarint, varint
from runnel.types import NO_TOPIC_ID
from runnel.wire.batch import CONTROL, CRC_START, LOG_OVERHEAD, MAGIC, TRANSACTIONAL, crc32c

_pack_rest: Final = Struct(">hiqqqhii").pack  # all that the CRC covers of a header
_pack_start: Final = Struct(">qiibI").pack
_VARINTS: Final = tuple(varint(value) for value in range(256))
_NO_VALUE: Final = varint(-1)
_pack_int16: Final = Struct(">h").pack
_pack_int32: Final = Struct(">i").pack
_pack_start_of_value: Final = Struct(">hqi").pack  # version, offset, leader epoch
_pack_end_of_value: Final = Struct(">qB").pack  # commit time, count of tagged fields
_OFFSET_KEY: Final = b"\0\x01"
_OFFSET_VALUE_VERSION: Final = 4
_TOPIC_ID_TAG: Final = b"\0\x10"  # its number, its size


def encode_pairs(
    pairs: Sequence[tuple[bytes, bytes | None]],
    timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    *,
    control: bool = False,
) -> bytearray:
    """At least one; part of a transaction if there is a producer id, or its marker."""
    count = len(pairs)
    attributes = (TRANSACTIONAL if producer_id >= 0 else 0) | (CONTROL if control else 0)
    parts = [
        _pack_rest(
            attributes,
            count - 1,
            timestamp_ms,
            timestamp_ms,
            producer_id,
            producer_epoch,
            -1,
            count,
        )
    ]
    for delta, (key, value) in enumerate(pairs):
        # Attributes and the difference in time are nothing, and so is the count of headers.
        start = b"\0\0" + _varint(delta) + _varint(len(key))
        if value is None:
            body = start + key + _NO_VALUE + b"\0"
        else:
            body = start + key + _varint(len(value)) + value + b"\0"
        parts.append(_varint(len(body)))
        parts.append(body)
    covered = b"".join(parts)
    length = CRC_START - LOG_OVERHEAD + len(covered)
    return bytearray(_pack_start(0, length, -1, MAGIC, crc32c(covered)) + covered)


def _varint(value: int) -> bytes:
    return _VARINTS[value] if value < len(_VARINTS) else varint(value)


def offset_key(group: str, topic: str, partition: int) -> bytes:
    """OffsetCommitKey, version 1."""
    group_bytes, topic_bytes = group.encode(), topic.encode()
    return b"".join(
        (
            _OFFSET_KEY,
            _pack_int16(len(group_bytes)),
            group_bytes,
            _pack_int16(len(topic_bytes)),
            topic_bytes,
            _pack_int32(partition),
        )
    )


def offset_value(
    offset: int, leader_epoch: int, metadata: str, committed_ms: int, topic_id: bytes
) -> bytes:
    """OffsetCommitValue, version 4: with the topic's id, if it is known, as tag 0."""
    note = metadata.encode()
    is_named = topic_id == NO_TOPIC_ID
    value = _pack_start_of_value(_OFFSET_VALUE_VERSION, offset, leader_epoch)
    value += uvarint(len(note) + 1) + note + _pack_end_of_value(committed_ms, not is_named)
    return value if is_named else value + _TOPIC_ID_TAG + topic_id
