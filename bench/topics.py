"""Topics that live as long as one load: made, waited for, deleted.

A broker may answer CreateTopics before its own metadata shows a leader of every partition, and
Kafka shows itself as the leader a moment before it serves; so nothing is sent before Metadata says
so and ListOffsets answers for every partition. A broker that cannot create topics is used with the one
it shows.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.pipeline import LoadError
from runnel.wire.apis import ApiKey
from runnel.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from runnel.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from runnel.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.wire_client import Topic, WireClient

CREATE_TIMEOUT_S = 60.0
POLL_S = 0.005
LATEST = -1


@contextmanager
def passing_topic(
    client: WireClient,
    purpose: str,
    partition_count: int,
    configs: dict[str, str] | None = None,
) -> Iterator[Topic]:
    """Under a name of its own; deleted at the end of the block, also after a failure."""
    if ApiKey.CREATE_TOPICS not in client.versions:
        yield _existing(client, partition_count)
        return
    topic = make_topic(client, unique_name(purpose), partition_count, configs)
    try:
        yield topic
    finally:
        client.delete_topic(topic.name)


def unique_name(purpose: str) -> str:
    return f"bench-{purpose}-{os.getpid()}-{time.time_ns():x}"


def make_topic(
    client: WireClient, name: str, partition_count: int, configs: dict[str, str] | None = None
) -> Topic:
    """Returns when every partition has a leader."""
    rows = [CreatableTopicConfig(name=key, value=text) for key, text in (configs or {}).items()]
    wanted = CreatableTopic(
        name=name, num_partitions=partition_count, replication_factor=1, configs=rows
    )
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=int(CREATE_TIMEOUT_S * 1e3))
    (result,) = client.call(request).topics
    if result.error_code:
        raise LoadError(f"{name}: {result.error_code} {result.error_message}")
    return await_topic(client, name, partition_count)


def await_topic(client: WireClient, name: str, partition_count: int) -> Topic:
    """Ask until Metadata shows a leader of every partition, and all of them answer."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    deadline = time.monotonic() + CREATE_TIMEOUT_S
    while time.monotonic() < deadline:
        (found,) = client.call(request).topics
        led = [row for row in found.partitions if row.leader_id >= 0 and not row.error_code]
        has_leaders = not found.error_code and len(led) == partition_count
        if has_leaders and _serves(client, name, partition_count):
            return Topic(name, found.topic_id, partition_count)
        time.sleep(POLL_S)
    raise LoadError(f"{len(led)} of {partition_count} partitions of {name} have a leader")


def _serves(client: WireClient, name: str, partition_count: int) -> bool:
    rows = [
        ListOffsetsPartition(partition_index=index, timestamp=LATEST)
        for index in range(partition_count)
    ]
    asked = ListOffsetsTopic(name=name, partitions=rows)
    request = ListOffsetsRequest(replica_id=-1, topics=[asked], timeout_ms=30_000)
    (answer,) = client.call(request).topics
    return not any(row.error_code for row in answer.partitions)


def _existing(client: WireClient, partition_count: int) -> Topic:
    topics = client.call(MetadataRequest(topics=None)).topics
    if not topics:
        raise LoadError("the broker cannot create topics and shows none")
    found = client.topic(str(topics[0].name))
    if found.partition_count < partition_count:
        raise LoadError(f"{found} has too few partitions")
    return found
