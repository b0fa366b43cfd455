"""Requests encoded once, before the clock starts, and the marks by which replies are checked.

Works with any broker: versions are negotiated, topics are addressed by name and by id, and a
broker that cannot create topics is used with the one it shows.
"""

import os
import time
from typing import NamedTuple

from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.wire.apis import ApiKey, response_header_version
from runnel.wire.compiler import codec_for
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from runnel.wire.messages.header import ResponseHeader
from runnel.wire.messages.metadata import MetadataRequest
from runnel.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tests.support.wire_client import Topic, WireClient, encode_frame

TIMEOUT_MS = 30_000


class Batch(NamedTuple):
    """One record batch, the same bytes for every request: a broker stamps its own copy."""

    data: bytes
    record_count: int


def make_batch(record_bytes: int, record_count: int) -> Batch:
    """Records with a value of random bytes and no key."""
    value, now_ms = os.urandom(record_bytes), time.time_ns() // 1_000_000
    records = [Record(None, value, now_ms) for _ in range(record_count)]
    return Batch(bytes(encode(records)), record_count)


def produce_frame(client: WireClient, topic: Topic, index: int, batch: Batch, acks: int) -> bytes:
    data = TopicProduceData(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_data=[PartitionProduceData(index=index, records=batch.data)],
    )
    request = ProduceRequest(acks=acks, timeout_ms=TIMEOUT_MS, topic_data=[data])
    return encode_frame(request, client.version_of(ApiKey.PRODUCE))


def fetch_frame(
    client: WireClient,
    topic: Topic,
    offsets: dict[int, int],
    *,
    partition_max_bytes: int,
    min_bytes: int = 1,
    max_wait_ms: int = 500,
) -> bytes:
    """A fetch without a session; `offsets` says where to begin in each partition."""
    partitions = [
        FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=partition_max_bytes
        )
        for index, offset in offsets.items()
    ]
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=partition_max_bytes * len(partitions),
        topics=[FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=partitions)],
    )
    return encode_frame(request, client.version_of(ApiKey.FETCH))


class ReplyShape(NamedTuple):
    """Successful produce replies for one topic all have this size and these zero bytes."""

    size: int  # with the four bytes that state it
    zeros: tuple[int, ...]


def produce_reply_shape(client: WireClient, topic: Topic) -> ReplyShape:
    """Found by encoding a reply with every bit of the error code off, and with all of them on."""
    version = client.version_of(ApiKey.PRODUCE)
    good, bad = (_produce_reply(topic, version, code) for code in (0, -1))
    assert len(good) == len(bad)
    zeros = tuple(at for at, (was, now) in enumerate(zip(good, bad, strict=True)) if was != now)
    return ReplyShape(4 + len(good), tuple(4 + at for at in zeros))


def _produce_reply(topic: Topic, version: int, error_code: int) -> bytearray:
    result = TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[PartitionProduceResponse(error_code=error_code)],
    )
    header = codec_for(ResponseHeader, response_header_version(ApiKey.PRODUCE, version))
    body = codec_for(ProduceResponse, version).write(ProduceResponse(responses=[result]))
    return header.write(ResponseHeader()) + body


def make_topic(client: WireClient, name: str, partition_count: int) -> Topic:
    if ApiKey.CREATE_TOPICS in client.versions:
        return client.create_topic(name, partition_count)
    topics = client.call(MetadataRequest(topics=None)).topics
    assert topics, "the broker cannot create topics and shows none"
    found = client.topic(str(topics[0].name))
    assert found.partition_count >= partition_count, f"{found} has too few partitions"
    return found


def drop_topic(client: WireClient, topic: Topic) -> None:
    if ApiKey.DELETE_TOPICS in client.versions:
        client.delete_topic(topic.name)
