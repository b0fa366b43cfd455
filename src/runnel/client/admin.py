"""What an operator asks of a cluster: topics, partitions, configuration, offsets.

Each function makes one kind of request and raises `RefusedError` with the broker's own code and
message. Refusals that pass by themselves are tried again (see `client.cluster`).
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final

from runnel.client.cluster import Cluster, RefusedError, ensure_there
from runnel.wire.apis import ApiKey
from runnel.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from runnel.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from runnel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from runnel.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from runnel.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from runnel.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from runnel.wire.messages.metadata import MetadataResponseTopic

TIMEOUT_MS: Final = 30_000
CONSUMER: Final = -1  # the replica id of those who are none
BROKERS_CHOICE: Final = -1  # of partitions or replicas
LATEST: Final = -1
EARLIEST: Final = -2


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4


class ConfigSource(IntEnum):
    """Where a value comes from, by the number on the wire."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class _Operation(IntEnum):
    SET = 0
    DELETE = 1


def topics(cluster: Cluster, names: Sequence[str] | None = None) -> list[MetadataResponseTopic]:
    """All topics by name, or those asked for. Raises RefusedError for one that is not there."""
    found = cluster.metadata(names).topics
    for row in found:
        ensure_there(row)
        row.partitions.sort(key=lambda partition: partition.partition_index)
    return sorted(found, key=lambda row: row.name or "")


def create_topic(
    cluster: Cluster,
    name: str,
    partition_count: int = BROKERS_CHOICE,
    replication_factor: int = BROKERS_CHOICE,
    configs: Mapping[str, str] | None = None,
    *,
    validate_only: bool = False,
) -> CreatableTopicResult:
    wanted = CreatableTopic(
        name=name,
        num_partitions=partition_count,
        replication_factor=replication_factor,
        configs=[
            CreatableTopicConfig(name=key, value=text) for key, text in (configs or {}).items()
        ],
    )
    request = CreateTopicsRequest(
        topics=[wanted], timeout_ms=TIMEOUT_MS, validate_only=validate_only
    )

    def attempt() -> CreatableTopicResult:
        result: CreatableTopicResult
        (result,) = cluster.call(request).topics
        if result.error_code:
            raise RefusedError(result.error_code, result.error_message, f"topic {name}")
        return result

    return cluster.retried(attempt)


def delete_topic(cluster: Cluster, name: str) -> None:
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS)
    if cluster.version_of(ApiKey.DELETE_TOPICS) >= 6:
        request.topics = [DeleteTopicState(name=name)]

    def attempt() -> None:
        (result,) = cluster.call(request).responses
        if result.error_code:
            raise RefusedError(result.error_code, result.error_message, f"topic {name}")

    cluster.retried(attempt)


def add_partitions(cluster: Cluster, name: str, total: int, *, validate_only: bool = False) -> None:
    """Make `total` partitions of what are fewer."""
    wanted = CreatePartitionsTopic(name=name, count=total, assignments=None)
    request = CreatePartitionsRequest(
        topics=[wanted], timeout_ms=TIMEOUT_MS, validate_only=validate_only
    )

    def attempt() -> None:
        (result,) = cluster.call(request).results
        if result.error_code:
            raise RefusedError(result.error_code, result.error_message, f"topic {name}")

    cluster.retried(attempt)


def describe_configs(
    cluster: Cluster, kind: ResourceType, name: str, keys: Iterable[str] | None = None
) -> list[DescribeConfigsResourceResult]:
    """By name. A broker is asked about itself; the empty name means the default of all brokers."""
    resource = DescribeConfigsResource(
        resource_type=kind,
        resource_name=name,
        configuration_keys=None if keys is None else list(keys),
    )
    request = DescribeConfigsRequest(resources=[resource])
    (result,) = cluster.call(request, node_id=_node_of(kind, name)).results
    if result.error_code:
        raise RefusedError(result.error_code, result.error_message, _subject(kind, name))
    return sorted(result.configs, key=lambda row: row.name)


def alter_configs(
    cluster: Cluster,
    kind: ResourceType,
    name: str,
    values: Mapping[str, str | None],
    *,
    validate_only: bool = False,
) -> None:
    """Set these values; None takes the name's own value away, so that its default holds again."""
    rows = [
        AlterableConfig(
            name=key,
            config_operation=_Operation.DELETE if text is None else _Operation.SET,
            value=text,
        )
        for key, text in values.items()
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)

    def attempt() -> None:
        (result,) = cluster.call(request, node_id=_node_of(kind, name)).responses
        if result.error_code:
            raise RefusedError(result.error_code, result.error_message, _subject(kind, name))

    cluster.retried(attempt)


def list_offsets(
    cluster: Cluster, topic: str, wanted: Mapping[int, int], *, committed: bool = False
) -> dict[int, int]:
    """Offset by partition for LATEST, EARLIEST or a time in ms; -1 if nothing is that new.

    With `committed`, nothing from the first open transaction on counts. Raises RefusedError, also
    for a partition that the topic does not have.
    """

    def attempt() -> dict[int, int]:
        leaders = cluster.leaders(topic, wanted)
        found: dict[int, int] = {}
        for node_id in set(leaders.values()):
            here = {at: wanted[at] for at in wanted if leaders[at] == node_id}
            found |= _list_offsets_of(cluster, node_id, topic, here, committed)
        return found

    return cluster.retried(attempt)


def _list_offsets_of(
    cluster: Cluster, node_id: int, topic: str, wanted: Mapping[int, int], committed: bool
) -> dict[int, int]:
    rows = [
        ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        for index, timestamp in wanted.items()
    ]
    request = ListOffsetsRequest(
        replica_id=CONSUMER,
        isolation_level=int(committed),
        topics=[ListOffsetsTopic(name=topic, partitions=rows)],
        timeout_ms=TIMEOUT_MS,
    )
    (answer,) = cluster.call(request, node_id=node_id).topics
    for row in answer.partitions:
        if row.error_code:
            raise RefusedError(row.error_code, None, f"{topic}-{row.partition_index}")
    return {row.partition_index: row.offset for row in answer.partitions}


def _node_of(kind: ResourceType, name: str) -> int | None:
    return int(name) if kind == ResourceType.BROKER and name else None


def _subject(kind: ResourceType, name: str) -> str:
    if kind == ResourceType.TOPIC:
        return f"topic {name}"
    return f"broker {name}" if name else "the brokers' default"
