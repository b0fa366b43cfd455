"""Frames that no correct client sends, by name, each with the answer that Kafka gives.

The answers were learned by running these cases against Apache Kafka 4.3.1: an error code, or the
connection closed. Where Runnel finds another fault of the same bytes first, both codes are right.
"""

import struct
from collections.abc import Callable
from typing import NamedTuple

from crc32c import crc32c

from runnel.client.raw import encode_frame
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.wire.apis import ApiKey
from runnel.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from runnel.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCE_VERSION = 12  # the last that names its topics
CRC_AT, CRC_START, ATTRIBUTES_AT, MAGIC_AT, LENGTH_AT = 17, 21, 21, 16, 8
LAST_OFFSET_DELTA_AT, RECORD_COUNT_AT = 23, 57
BATCH_TIMESTAMP_MS = 1_700_000_000_000


def make_batch(values: int = 3) -> bytearray:
    records = [Record(None, b"value", BATCH_TIMESTAMP_MS) for _ in range(values)]
    return encode(records)


def produce(topic: str, records: bytes | bytearray | None, *, acks: int = 1) -> bytes:
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    return encode_frame(request, PRODUCE_VERSION)


def sized(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def _changed(at: int, code: str, value: int, *, crc_anew: bool = True) -> bytearray:
    """A batch with one field of its header overwritten."""
    batch = make_batch()
    struct.pack_into(f">{code}", batch, at, value)
    if crc_anew:
        struct.pack_into(">I", batch, CRC_AT, crc32c(batch[CRC_START:]))
    return batch


def _flipped(batch: bytearray, at: int) -> bytearray:
    batch[at] ^= 0x01
    return batch


class Case(NamedTuple):
    """`answers`: the error codes of a reply that are right; None stands for a closed connection."""

    name: str
    frame: Callable[[str], bytes]  # of a topic's name
    answers: frozenset[int | None]
    reply_of: tuple[int, int] = (ApiKey.PRODUCE, PRODUCE_VERSION)


def _closes(name: str, frame: bytes) -> Case:
    return Case(name, lambda _topic: frame, frozenset({None}))


def _refuses(name: str, records: Callable[[], bytes | bytearray | None], *codes: int) -> Case:
    return Case(name, lambda topic: produce(topic, records()), frozenset(codes))


_METADATA = encode_frame(MetadataRequest(topics=[]), 12)
_HEADER = struct.Struct(">hhih")

CASES: tuple[Case, ...] = (
    # Frames
    _closes("negative size", struct.pack(">i", -1) + b"x" * 20),
    _closes("smallest size", struct.pack(">i", -(2**31)) + b"x" * 20),
    _closes("size zero", struct.pack(">i", 0) + b"x" * 20),
    _closes("header cut", sized(b"\0\x12\0")),
    _closes("size over the limit", struct.pack(">i", 104_857_601) + b"x" * 20),
    _closes("largest size", struct.pack(">i", 2**31 - 1) + b"x" * 20),
    _closes("another protocol", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    _closes("TLS hello", bytes.fromhex("16030100a5010000a10303") + bytes(160)),
    # Headers
    _closes("unknown API", sized(_HEADER.pack(999, 0, 1, -1))),
    _closes("negative API", sized(_HEADER.pack(-1, 0, 1, -1))),
    _closes("unknown version", sized(_HEADER.pack(ApiKey.METADATA, 99, 1, -1) + b"\0" * 20)),
    _closes("negative version", sized(_HEADER.pack(ApiKey.METADATA, -1, 1, -1) + b"\0" * 20)),
    _closes("client id longer than the frame", sized(_HEADER.pack(3, 1, 1, 30_000) + b"\0" * 9)),
    _closes("body missing", sized(_METADATA[4:][:10])),
    _closes("body cut", sized(_METADATA[4:-3])),
    _closes("array of two billion", sized(_HEADER.pack(3, 1, 1, -1) + b"\x7f\xff\xff\xff")),
    _closes("array of minus two", sized(_HEADER.pack(19, 2, 1, -1) + b"\xff\xff\xff\xfe" + b"x")),
    Case(  # Java reads replacement characters and then finds the name illegal
        "topic name is not UTF-8",
        lambda _topic: sized(_HEADER.pack(3, 1, 1, -1) + b"\0\0\0\1\0\4\xff\xfe\xfd\xfc"),
        frozenset({None, 17}),
        (ApiKey.METADATA, 1),
    ),
    # Batches
    _refuses("wrong CRC", lambda: _flipped(make_batch(), CRC_AT), 2),
    _refuses("record bytes flipped", lambda: _flipped(make_batch(), 70), 2),
    _refuses("batch cut", lambda: make_batch()[:-5], 2, 42, 87),
    _refuses("batch header cut", lambda: make_batch()[:30], 2, 42, 87),
    # Kafka ignores these bytes and takes the batch before them; nothing we store is that doubtful.
    _refuses("bytes after the batch", lambda: make_batch() + b"x", 2, 87),
    _refuses("two batches", lambda: make_batch() + make_batch(), 87),
    _refuses("no batch", lambda: b"", 87),
    _refuses("batch length of minus one", lambda: _changed(LENGTH_AT, "i", -1), 2, 87),
    _refuses("batch length of two billion", lambda: _changed(LENGTH_AT, "i", 2**31 - 1), -1, 2, 87),
    _refuses("magic 1", lambda: _changed(MAGIC_AT, "b", 1), 2, 87),
    _refuses("magic 9", lambda: _changed(MAGIC_AT, "b", 9), 2, 87),
    _refuses("control batch", lambda: _changed(ATTRIBUTES_AT, "h", 0x20), 87),
    _refuses("unknown compression", lambda: _changed(ATTRIBUTES_AT, "h", 7), -1, 2, 76, 87),
    _refuses("record count too high", lambda: _changed(RECORD_COUNT_AT, "i", 2**31 - 1), 2, 87),
    _refuses("record count negative", lambda: _changed(RECORD_COUNT_AT, "i", -1), 2, 87),
    _refuses("last offset too high", lambda: _changed(LAST_OFFSET_DELTA_AT, "i", 2**31 - 1), 2, 87),
    _refuses("larger than the limit", lambda: encode([Record(None, bytes(2_000_000), 1)]), 10),
    # Requests
    Case(
        "acks 7",
        lambda topic: produce(topic, make_batch(), acks=7),
        frozenset({21}),
    ),
    Case(
        "acks 0 and a wrong CRC",
        lambda topic: produce(topic, _flipped(make_batch(), CRC_AT), acks=0),
        frozenset({None}),
    ),
    Case(
        "over-long topic in produce",
        lambda _topic: produce("x" * 250, make_batch()),
        frozenset({3, 17}),
    ),
    Case(
        "over-long topic in metadata",
        lambda _topic: encode_frame(
            MetadataRequest(topics=[MetadataRequestTopic(name="x" * 250)]), 12
        ),
        frozenset({17}),
        (ApiKey.METADATA, 12),
    ),
    Case(
        "over-long topic in create",
        lambda _topic: encode_frame(
            CreateTopicsRequest(
                topics=[CreatableTopic(name="x" * 250, num_partitions=1, replication_factor=1)]
            ),
            7,
        ),
        frozenset({17}),
        (ApiKey.CREATE_TOPICS, 7),
    ),
    Case(
        "two billion partitions",
        lambda _topic: encode_frame(
            CreateTopicsRequest(
                topics=[CreatableTopic(name="huge", num_partitions=2**31 - 1, replication_factor=1)]
            ),
            7,
        ),
        frozenset({37, 42, 44}),
        (ApiKey.CREATE_TOPICS, 7),
    ),
    Case(
        "unknown version of ApiVersions",
        lambda _topic: sized(_HEADER.pack(ApiKey.API_VERSIONS, 99, 0, -1) + b"\0\1\1\0"),
        frozenset({35}),
        (ApiKey.API_VERSIONS, 0),
    ),
)
