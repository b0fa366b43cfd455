"""How far a group is behind: what it has committed beside where its partitions end, and who reads.

A partition that a member owns and nobody has committed is listed without an offset; so is one of a
topic that is gone without an end.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from runnel.client.admin import LATEST, list_offsets
from runnel.client.cluster import Cluster, RefusedError
from runnel.client.group_offsets import committed_offsets
from runnel.client.groups import Group, Member
from runnel.errors import ErrorCode
from runnel.types import TopicPartition


class Lag(NamedTuple):
    topic: str
    partition: int
    committed: int | None
    end: int | None
    metadata: str
    owner: Member | None

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - self.committed)


def lags_of(cluster: Cluster, group: Group) -> list[Lag]:
    """By topic and partition. Raises ClientError."""
    owners = {
        TopicPartition(topic, index): member
        for member in group.members
        for topic, indexes in member.owned.items()
        for index in indexes
    }
    committed = committed_offsets(cluster, group.group)
    partitions = sorted({*owners, *committed})
    ends = end_offsets(cluster, partitions)
    return [
        Lag(
            at.topic,
            at.index,
            committed[at].offset if at in committed else None,
            ends.get(at),
            committed[at].metadata if at in committed else "",
            owners.get(at),
        )
        for at in partitions
    ]


def end_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Of those that are there."""
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for at in partitions:
        topics[at.topic].append(at.index)
    found: dict[TopicPartition, int] = {}
    for topic, indexes in topics.items():
        try:
            offsets = list_offsets(cluster, topic, dict.fromkeys(indexes, LATEST))
        except RefusedError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            continue
        found |= {TopicPartition(topic, index): offset for index, offset in offsets.items()}
    return found
