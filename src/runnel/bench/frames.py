"""Requests encoded once, before the clock starts, and the marks by which replies are checked.

Works with any broker: versions are negotiated, and topics are addressed by name and by id.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from runnel.client.raw import Topic, WireClient, encode_frame
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode
from runnel.wire.apis import ApiKey, response_header_version
from runnel.wire.compiler import codec_for
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from runnel.wire.messages.header import ResponseHeader
from runnel.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

TIMEOUT_MS = 30_000
WORD_COUNT = 512
WORD_BYTES = 8


class Batch(NamedTuple):
    """One record batch, the same bytes for every request: a broker stamps its own copy."""

    data: bytes
    record_count: int


def make_batch(
    record_bytes: int, record_count: int, codec: Compression = Compression.NONE
) -> Batch:
    """Records without keys, every value different."""
    now_ms = time.time_ns() // 1_000_000
    records = [Record(None, value, now_ms) for value in values(record_bytes, record_count)]
    return Batch(bytes(encode(records, codec=codec)), record_count)


def values(record_bytes: int, count: int) -> Iterator[bytes]:
    """Text of random words out of a few hundred, so that codecs find as much as in real records."""
    chance = random.Random(record_bytes)
    words = [chance.randbytes(WORD_BYTES // 2).hex() for _ in range(WORD_COUNT)]
    for _ in range(count):
        text = " ".join(chance.choices(words, k=record_bytes // WORD_BYTES + 1))
        yield text.encode()[:record_bytes]


def produce_frame(
    client: WireClient, topic: Topic, indexes: Sequence[int], batch: Batch, acks: int
) -> bytes:
    """The same batch for each of these partitions."""
    data = TopicProduceData(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_data=[PartitionProduceData(index=at, records=batch.data) for at in indexes],
    )
    request = ProduceRequest(acks=acks, timeout_ms=TIMEOUT_MS, topic_data=[data])
    return encode_frame(request, client.version_of(ApiKey.PRODUCE))


def fetch_frame(
    client: WireClient,
    topic: Topic,
    offsets: dict[int, int],
    *,
    partition_max_bytes: int,
    max_wait_ms: int = 500,
    starts_session: bool = False,
) -> bytes:
    """`offsets` says where to begin in each partition."""
    partitions = [
        FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=partition_max_bytes
        )
        for index, offset in offsets.items()
    ]
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=partition_max_bytes * len(partitions),
        session_epoch=0 if starts_session else -1,
        topics=[FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=partitions)],
    )
    return encode_frame(request, client.version_of(ApiKey.FETCH))


class ReplyShape(NamedTuple):
    """Successful replies to the same request all have this size and these zero bytes."""

    size: int  # with the four bytes that state it
    zeros: tuple[int, ...]


def produce_reply_shape(client: WireClient, topic: Topic, partition_count: int = 1) -> ReplyShape:
    version = client.version_of(ApiKey.PRODUCE)
    return reply_shape(lambda code: produce_reply(topic, version, code, partition_count))


def reply_shape(reply: Callable[[int], bytes | bytearray]) -> ReplyShape:
    """Of what `reply` gives for an error code, as a broker sends it, without its size.

    Found by encoding a reply with every bit of the error codes off, and with all of them on.
    """
    good, bad = reply(0), reply(-1)
    assert len(good) == len(bad)
    zeros = tuple(at for at, (was, now) in enumerate(zip(good, bad, strict=True)) if was != now)
    return ReplyShape(4 + len(good), tuple(4 + at for at in zeros))


def produce_reply(
    topic: Topic, version: int, error_code: int, partition_count: int = 1
) -> bytearray:
    """As a broker sends it, without its size."""
    row = PartitionProduceResponse(error_code=error_code)
    result = TopicProduceResponse(
        name=topic.name, topic_id=topic.topic_id, partition_responses=[row] * partition_count
    )
    header = codec_for(ResponseHeader, response_header_version(ApiKey.PRODUCE, version))
    body = codec_for(ProduceResponse, version).write(ProduceResponse(responses=[result]))
    return header.write(ResponseHeader()) + body
