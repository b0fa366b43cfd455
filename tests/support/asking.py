"""The requests that tests of handlers ask again and again, with as few words as they need."""

from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.native.records import decode
from runnel.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from runnel.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from runnel.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from runnel.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.desk import Desk

FETCH_BY_NAME = 12
PRODUCE_BY_NAME = 12


async def create(desk: Desk, name: str = "t", partitions: int = 1, **configs: str) -> bytes:
    named = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, configs=named
    )
    response = await desk.ask(CreateTopicsRequest(topics=[topic]))
    (result,) = response.topics
    assert result.error_code == 0, result.error_message
    created: bytes = result.topic_id
    return created


def batch(*values: bytes, at_ms: int | None = None, **options: int) -> bytes:
    when = 1_700_000_000_000 if at_ms is None else at_ms
    return bytes(encode([Record(b"k", value, when) for value in values], **options))  # type: ignore[arg-type]  # options are encode's


async def produce(
    desk: Desk, records: bytes, *, topic: str = "t", index: int = 0, acks: int = -1,
    version: int = PRODUCE_BY_NAME, topic_id: bytes = bytes(16),
) -> PartitionProduceResponse:  # fmt: skip
    data = PartitionProduceData(index=index, records=records)
    request = ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])],
    )
    response = await desk.ask(request, version)
    result: PartitionProduceResponse = response.responses[0].partition_responses[0]
    return result


def fetch_request(offset: int = 0, **fields: int) -> FetchRequest:
    asked = FetchPartition(
        partition=fields.pop("index", 0),
        fetch_offset=offset,
        partition_max_bytes=fields.pop("partition_max_bytes", 1 << 20),
        current_leader_epoch=fields.pop("current_leader_epoch", -1),
        last_fetched_epoch=fields.pop("last_fetched_epoch", -1),
    )
    fields.setdefault("min_bytes", 1)
    return FetchRequest(topics=[FetchTopic(topic="t", partitions=[asked])], **fields)  # type: ignore[arg-type]  # all numbers


def values_of(response: FetchResponse) -> list[bytes | None]:
    records = response.responses[0].partitions[0].records
    assert isinstance(records, bytes | bytearray | memoryview)
    return [row.value for row in decode(records, max_records=10_000, max_bytes=1 << 24).rows()]


async def offset_at(desk: Desk, timestamp: int, version: int = 11) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name="t", partitions=[asked])
    response = await desk.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), version)
    found: ListOffsetsPartitionResponse = response.topics[0].partitions[0]
    return found
