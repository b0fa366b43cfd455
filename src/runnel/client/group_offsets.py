"""The offsets that groups have committed: reading, setting and forgetting them from outside.

Topics are named, not numbered (OffsetCommit and OffsetFetch up to version 9), so that offsets of
a topic that is gone can still be seen.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from runnel.client.cluster import Cluster, RefusedError
from runnel.client.coordinators import KeyType, asked
from runnel.types import TopicPartition
from runnel.wire.apis import ApiKey
from runnel.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from runnel.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from runnel.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)

BY_NAME_UNTIL: Final = 9
MANY_GROUPS_SINCE: Final = 8
NO_GENERATION: Final = -1  # of those who are no member


class Committed(NamedTuple):
    offset: int
    metadata: str


def committed_offsets(cluster: Cluster, group: str) -> dict[TopicPartition, Committed]:
    """All that the group has; nothing of a group that is not there. Raises ClientError."""

    def attempt(node_id: int) -> dict[TopicPartition, Committed]:
        found: dict[TopicPartition, Committed] = {}
        for topic, row in _fetched(cluster, node_id, group):
            if row.error_code:
                raise RefusedError(row.error_code, None, f"{topic}-{row.partition_index}")
            if row.committed_offset >= 0:
                at = TopicPartition(topic, row.partition_index)
                found[at] = Committed(row.committed_offset, row.metadata or "")
        return dict(sorted(found.items()))

    return asked(cluster, KeyType.GROUP, group, attempt)


def commit_offsets(
    cluster: Cluster,
    group: str,
    offsets: Mapping[TopicPartition, int],
    metadata: Mapping[TopicPartition, str] | None = None,
) -> None:
    """As one who is no member: refused (UNKNOWN_MEMBER_ID) while the group has members."""
    notes = metadata or {}
    topics: defaultdict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
    for at, offset in offsets.items():
        row = OffsetCommitRequestPartition(
            partition_index=at.index, committed_offset=offset, committed_metadata=notes.get(at, "")
        )
        topics[at.topic].append(row)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=NO_GENERATION,
        topics=[
            OffsetCommitRequestTopic(name=name, partitions=rows) for name, rows in topics.items()
        ],
    )

    def attempt(node_id: int) -> None:
        response = cluster.call(request, node_id=node_id, newest=BY_NAME_UNTIL)
        for topic in response.topics:
            for row in topic.partitions:
                if row.error_code:
                    where = f"group {group}, {topic.name}-{row.partition_index}"
                    raise RefusedError(row.error_code, None, where)

    asked(cluster, KeyType.GROUP, group, attempt)


def delete_offsets(cluster: Cluster, group: str, partitions: Iterable[TopicPartition]) -> None:
    """Raises RefusedError, above all for a topic that members of the group are subscribed to."""
    topics: defaultdict[str, list[OffsetDeleteRequestPartition]] = defaultdict(list)
    for at in partitions:
        topics[at.topic].append(OffsetDeleteRequestPartition(partition_index=at.index))
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(name=name, partitions=rows) for name, rows in topics.items()
        ],
    )

    def attempt(node_id: int) -> None:
        response = cluster.call(request, node_id=node_id)
        if response.error_code:
            raise RefusedError(response.error_code, None, f"group {group}")
        for topic in response.topics:
            for row in topic.partitions:
                if row.error_code:
                    where = f"group {group}, {topic.name}-{row.partition_index}"
                    raise RefusedError(row.error_code, None, where)

    asked(cluster, KeyType.GROUP, group, attempt)


def _fetched(
    cluster: Cluster, node_id: int, group: str
) -> list[tuple[str, OffsetFetchResponsePartitions | OffsetFetchResponsePartition]]:
    if cluster.version_of(ApiKey.OFFSET_FETCH) < MANY_GROUPS_SINCE:
        answer = cluster.call(OffsetFetchRequest(group_id=group, topics=None), node_id=node_id)
    else:
        groups = [OffsetFetchRequestGroup(group_id=group, topics=None)]
        request = OffsetFetchRequest(groups=groups)
        (answer,) = cluster.call(request, node_id=node_id, newest=BY_NAME_UNTIL).groups
    if answer.error_code:
        raise RefusedError(answer.error_code, None, f"group {group}")
    return [(topic.name, row) for topic in answer.topics for row in topic.partitions]
