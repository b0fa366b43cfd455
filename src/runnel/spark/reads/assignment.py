"""What a subscription comes to, and the port by which the driver asks for topics and offsets.

`Logs` is answered by the brokers (brokers.py), or, with no broker, by their data folders
(folders.py).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from runnel.arrow.errors import SourceError
from runnel.client.cluster import Cluster
from runnel.config.registry import suggestion
from runnel.spark.reads.offsets import OffsetMap
from runnel.spark.reads.subscription import Subscription
from runnel.types import TopicPartition


@dataclass(frozen=True)
class TopicFound:
    name: str
    topic_id: str  # empty where it is not told
    partitions: Collection[int]
    is_internal: bool = False


@dataclass(frozen=True)
class Assignment:
    """The partitions of a read at one moment."""

    partitions: frozenset[TopicPartition]
    topic_ids: Mapping[str, str]


class Logs(Protocol):
    """Blocking; raises SourceError for what does not pass by itself in good time."""

    def topics(self, names: Collection[str] | None) -> list[TopicFound]:
        """Those that are there, of these names or of all."""
        ...

    def earliest(self, partitions: Collection[TopicPartition]) -> OffsetMap: ...

    def latest(self, partitions: Collection[TopicPartition]) -> OffsetMap:
        """Where the next record will be, or the first transaction that is open begins."""
        ...

    def at_timestamps(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        """The first offset of a record that is not older; None where there is none."""
        ...

    def bytes_of(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The size of each log on disk, where it is known."""
        ...

    @property
    def cluster(self) -> Cluster | None:
        """To ask where files are; None without a broker."""
        ...

    def close(self) -> None: ...


def assignment(logs: Logs, wanted: Subscription, *, must_exist: bool) -> Assignment:
    """Raises SourceError for a topic or partition that is not there, if it must be."""
    found = {topic.name: topic for topic in logs.topics(wanted.names)}
    if wanted.pattern:
        found = {
            name: topic
            for name, topic in found.items()
            if not topic.is_internal and wanted.matches(name)
        }
    partitions = {
        TopicPartition(name, index) for name, topic in found.items() for index in topic.partitions
    }
    if must_exist:
        _check_topics(logs, wanted, found)
    if wanted.assigned:
        if must_exist:
            _check_assigned(wanted, found, partitions)
        partitions &= set(wanted.assigned)
    ids = {name: topic.topic_id for name, topic in found.items() if topic.topic_id}
    return Assignment(frozenset(partitions), ids)


def _check_topics(logs: Logs, wanted: Subscription, found: Mapping[str, TopicFound]) -> None:
    missing = [name for name in wanted.names or () if name not in found]
    if not missing:
        return
    known = [topic.name for topic in logs.topics(None) if not topic.is_internal]
    hint = suggestion(missing[0], known)
    raise SourceError(f"{wanted.option}: there is no topic {missing[0]}{hint or '; make it first'}")


def _check_assigned(
    wanted: Subscription,
    found: Mapping[str, TopicFound],
    partitions: Collection[TopicPartition],
) -> None:
    for at in wanted.assigned:
        if at not in partitions:
            count = len(found[at.topic].partitions)
            raise SourceError(
                f"assign: topic {at.topic} has no partition {at.index}; it has {count}, of which"
                " the first is 0"
            )
