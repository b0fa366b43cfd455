"""Topics that live as long as one load: made, waited for, deleted.

A broker may answer CreateTopics before its metadata shows a leader of every partition, and Kafka
shows itself as the leader a moment before it serves; so nothing is sent before ListOffsets gave
the end of every partition. A broker that cannot create topics is used with the one it shows.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from runnel.bench.pipeline import LoadError
from runnel.client.raw import Topic, WireClient
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

TIMEOUT_S = 120.0
POLL_S = 0.002
LATEST, CONSUMER = -1, -1


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
    """Returns when every partition is led and empty."""
    rows = [CreatableTopicConfig(name=key, value=text) for key, text in (configs or {}).items()]
    wanted = CreatableTopic(
        name=name, num_partitions=partition_count, replication_factor=1, configs=rows
    )
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=int(TIMEOUT_S * 1e3))
    (result,) = client.call(request).topics
    if result.error_code:
        raise LoadError(f"{name}: {result.error_code} {result.error_message}")
    return await_topic(client, name, partition_count)


def await_topic(client: WireClient, name: str, partition_count: int, end_offset: int = 0) -> Topic:
    """Returns when every partition is led and gives its end. Raises LoadError for another end."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        (found,) = client.call(request).topics
        led = [row for row in found.partitions if row.leader_id >= 0 and not row.error_code]
        if not found.error_code and len(led) == partition_count:
            ends = _ends(client, name, partition_count)
            if ends is not None:
                break
        time.sleep(POLL_S)
    else:
        raise LoadError(f"{len(led)} of {partition_count} partitions of {name} have a leader")
    wrong = sum(end != end_offset for end in ends)
    if wrong:
        raise LoadError(f"{wrong} partitions of {name} do not end at {end_offset}")
    return Topic(name, found.topic_id, partition_count)


def _ends(client: WireClient, name: str, partition_count: int) -> list[int] | None:
    """None while a partition is not served yet."""
    rows = [
        ListOffsetsPartition(partition_index=index, timestamp=LATEST)
        for index in range(partition_count)
    ]
    request = ListOffsetsRequest(
        replica_id=CONSUMER,
        topics=[ListOffsetsTopic(name=name, partitions=rows)],
        timeout_ms=int(TIMEOUT_S * 1e3),
    )
    (answer,) = client.call(request).topics
    if any(row.error_code for row in answer.partitions):
        return None
    return [row.offset for row in answer.partitions]


def _existing(client: WireClient, partition_count: int) -> Topic:
    topics = client.call(MetadataRequest(topics=None)).topics
    if not topics:
        raise LoadError("the broker cannot create topics and shows none")
    found = client.topic(str(topics[0].name))
    if found.partition_count < partition_count:
        raise LoadError(f"{found} has too few partitions")
    return found
