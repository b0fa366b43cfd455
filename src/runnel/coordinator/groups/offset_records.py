"""Committed offsets as the journal has them, straight from and to bytes.

key:      type 1 (int16), group (string), topic (string), partition (int32)
value 4:  4 (int16), offset (int64), leader epoch (int32), metadata (compact string),
          commit time (int64), tagged fields: the topic's id as tag 0 if it is known
value 1:  1 (int16), offset (int64), metadata (string), commit time (int64), expiry time (int64)

These are what the codecs make of the same messages; a group commits often, and a start reads
millions. What is laid out in another way (versions 0, 2, 3, other tags) is left to the codecs.
"""

from struct import Struct
from typing import Final

from runnel.coordinator.records import decode_record, kinds_of
from runnel.native.journal_batch import offset_key, offset_value
from runnel.ports import Readable
from runnel.types import NO_TOPIC_ID
from runnel.wire.messages.records.offset_commit import OffsetCommitKey, OffsetCommitValue

NO_TIMESTAMP: Final = -1
KEY_PREFIX: Final = b"\0\x01"
_KINDS: Final = kinds_of((OffsetCommitKey, OffsetCommitValue))
_VERSION: Final = 4
_VERSION_WITH_EXPIRY: Final = 1
_START: Final = Struct(">hqiB")  # version, offset, leader epoch, size of the metadata and one
_unpack_start: Final = _START.unpack_from
_END: Final = Struct(">qB")  # commit time, count of tagged fields
_unpack_end: Final = _END.unpack_from
_pack_expiring_start: Final = Struct(">hqh").pack
_pack_expiring_end: Final = Struct(">qq").pack
_TOPIC_ID_TAG: Final = b"\0\x10"  # its number, its size
_METADATA_MAX: Final = 126  # with one more its size is still one byte


class CommittedOffset:
    """How far a group has come in one partition. Never changed: another takes its place."""

    __slots__ = (
        "commit_timestamp_ms",
        "expire_timestamp_ms",
        "leader_epoch",
        "metadata",
        "offset",
        "order",
        "topic_id",
    )

    def __init__(
        self,
        offset: int,
        leader_epoch: int,
        metadata: str,
        commit_timestamp_ms: int,
        expire_timestamp_ms: int,
        topic_id: bytes,
        order: int,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp_ms = commit_timestamp_ms
        self.expire_timestamp_ms = expire_timestamp_ms  # old clients could set it; else -1
        self.topic_id = topic_id  # zeros if the client committed by name
        self.order = order  # among the records that the shard has seen; not in the journal

    def fields(self) -> tuple[int, int, str, int, int, bytes, int]:
        return (
            self.offset,
            self.leader_epoch,
            self.metadata,
            self.commit_timestamp_ms,
            self.expire_timestamp_ms,
            self.topic_id,
            self.order,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CommittedOffset) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash(self.fields())

    def __repr__(self) -> str:
        return f"CommittedOffset{self.fields()}"


# Group, topic, partition, and the offset: None in a tombstone.
OffsetRecord = tuple[str, str, int, CommittedOffset | None]


def encode_offset(record: OffsetRecord) -> tuple[bytes, bytes]:
    group, topic, index, found = record
    assert found is not None, record
    key = offset_key(group, topic, index)
    if found.expire_timestamp_ms != NO_TIMESTAMP:
        metadata = found.metadata.encode()
        start = _pack_expiring_start(_VERSION_WITH_EXPIRY, found.offset, len(metadata))
        return key, start + metadata + _pack_expiring_end(
            found.commit_timestamp_ms, found.expire_timestamp_ms
        )
    return key, offset_value(
        found.offset,
        found.leader_epoch,
        found.metadata,
        found.commit_timestamp_ms,
        found.topic_id,
    )


def decode_offset(key: bytes, value: bytes | None, order: int) -> OffsetRecord:
    """Raises WireError."""
    end = len(key) - 4
    group_end = 4 + int.from_bytes(key[2:4], "big")
    if (
        value is None
        or group_end + 2 > end
        or group_end + 2 + int.from_bytes(key[group_end : group_end + 2], "big") != end
    ):
        return _decode_slowly(key, value, order)
    if len(value) < _START.size + _END.size:
        return _decode_slowly(key, value, order)
    version, offset, leader_epoch, size = _unpack_start(value)
    metadata_end = _START.size + size - 1
    if (
        version != _VERSION
        or not 0 < size <= _METADATA_MAX
        or metadata_end + _END.size > len(value)
    ):
        return _decode_slowly(key, value, order)
    committed_ms, tag_count = _unpack_end(value, metadata_end)
    topic_id = NO_TOPIC_ID
    if tag_count:
        at = metadata_end + _END.size
        if tag_count > 1 or value[at : at + 2] != _TOPIC_ID_TAG or len(value) != at + 18:
            return _decode_slowly(key, value, order)
        topic_id = value[at + 2 :]
    try:
        return (
            str(key[4:group_end], "utf-8"),
            str(key[group_end + 2 : end], "utf-8"),
            int.from_bytes(key[end:], "big", signed=True),
            CommittedOffset(
                offset,
                leader_epoch,
                str(value[_START.size : metadata_end], "utf-8") if size > 1 else "",
                committed_ms,
                NO_TIMESTAMP,
                topic_id,
                order,
            ),
        )
    except UnicodeDecodeError:
        return _decode_slowly(key, value, order)


def _decode_slowly(key: Readable, value: Readable | None, order: int) -> OffsetRecord:
    record = decode_record(_KINDS, key, value)
    assert record is not None, bytes(key[:2])
    return offset_record(record.key, record.value, order)


def offset_record(
    key: OffsetCommitKey, value: OffsetCommitValue | None, order: int
) -> OffsetRecord:
    if value is None:
        return key.group, key.topic, key.partition, None
    found = CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
        order,
    )
    return key.group, key.topic, key.partition, found
