"""The sink answers every produce request once, however the bytes are cut."""

import random

import pytest

from bench.sink import TOPIC, Connection
from runnel.client.raw import decode_reply, encode_frame
from runnel.wire.apis import ApiKey
from runnel.wire.messages.api_versions import ApiVersionsRequest
from runnel.wire.messages.metadata import MetadataRequest
from runnel.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

PORT = 1234


def produce_request(size: int) -> bytes:
    data = PartitionProduceData(index=0, records=bytes(size))
    topic = TopicProduceData(name=TOPIC.name, topic_id=TOPIC.topic_id, partition_data=[data])
    return encode_frame(ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic]), 13)


@pytest.mark.parametrize("seed", range(20))
def test_produce_requests_are_answered_however_they_are_cut(seed: int) -> None:
    chance = random.Random(seed)
    data = b"".join(produce_request(chance.randint(0, 300)) for _ in range(50))
    connection, position, replies = Connection(PORT), 0, b""
    while position < len(data):
        size = chance.randint(1, 500)
        replies += connection.feed(memoryview(data)[position : position + size])
        position += size
    one = len(replies) // 50
    assert replies == replies[:one] * 50
    _, response = decode_reply(ApiKey.PRODUCE, 13, replies[4:one])
    assert response.responses[0].topic_id == TOPIC.topic_id
    assert response.responses[0].partition_responses[0].error_code == 0


def test_it_shows_its_topic_and_no_way_to_create_one() -> None:
    connection = Connection(PORT)
    asked = encode_frame(ApiVersionsRequest(), 0, correlation_id=7)
    number, versions = decode_reply(ApiKey.API_VERSIONS, 0, connection.feed(memoryview(asked))[4:])
    assert number == 7
    assert ApiKey.CREATE_TOPICS not in {row.api_key for row in versions.api_keys}
    asked = encode_frame(MetadataRequest(topics=None), 12)
    _, shown = decode_reply(ApiKey.METADATA, 12, connection.feed(memoryview(asked))[4:])
    assert [topic.name for topic in shown.topics] == [TOPIC.name]
    assert len(shown.topics[0].partitions) == TOPIC.partition_count
