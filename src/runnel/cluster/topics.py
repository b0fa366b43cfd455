"""What a new or a growing topic asks for, and the partitions it gets. Pure; Kafka's errors."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runnel.cluster.image import Broker, Image, Topic
from runnel.cluster.placement import place
from runnel.cluster.values import NO_LEADER, Partition
from runnel.errors import ErrorCode, RunnelError
from runnel.types import TopicId

MAX_PARTITIONS_PER_TOPIC = 10_000  # Kafka's limit for one request
MAX_PARTITION_INDEX = 1_000_000  # the storage takes a folder with a larger one for a stray


class Assignment(NamedTuple):
    index: int  # type: ignore[assignment]  # Kafka's word, worth hiding tuple.index
    replicas: Sequence[int]


class NewTopic(NamedTuple):
    name: str
    partition_count: int = -1  # -1: the broker's default, or what the assignments say
    replication_factor: int = -1
    assignments: Sequence[Assignment] = ()
    configs: Mapping[str, str | None] = {}


class NewPartitions(NamedTuple):
    """A topic is to have `count` partitions, more than it has now."""

    topic: str
    count: int  # type: ignore[assignment]  # Kafka's word, worth hiding tuple.count
    assignments: Sequence[Sequence[int]] | None = None  # replicas of the new ones, in order


class TopicDefaults(NamedTuple):
    partition_count: int = 1
    replication_factor: int = 1
    min_insync_replicas: int = 1
    storage: str = "disk"


def replicas_of(
    image: Image, new: NewTopic, defaults: TopicDefaults, start: int
) -> list[tuple[int, ...]]:
    """Broker ids by partition. Raises RunnelError with the code Kafka gives."""
    if new.assignments:
        return _assigned(image, new)
    count = defaults.partition_count if new.partition_count == -1 else new.partition_count
    factor = new.replication_factor
    factor = defaults.replication_factor if factor == -1 else factor
    if factor <= 0:
        raise RunnelError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count <= 0:
        raise RunnelError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    _ensure_count(count)
    brokers = image.ready_brokers()
    _ensure_enough(brokers, factor)
    return place(brokers, count, factor, start)


def replicas_of_new(
    image: Image, topic: Topic, new: NewPartitions, start: int
) -> list[tuple[int, ...]]:
    """Broker ids of the partitions to add. Raises RunnelError with the code Kafka gives."""
    present = len(topic.partitions)
    if new.count == present:
        raise RunnelError(
            ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s)."
        )
    if new.count < present:
        raise RunnelError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {new.count} would not "
            "be an increase.",
        )
    additional = new.count - present
    if new.assignments is not None and len(new.assignments) != additional:
        raise _wrong(
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(new.assignments)} assignment(s) were specified."
        )
    if additional > MAX_PARTITIONS_PER_TOPIC or new.count > MAX_PARTITION_INDEX:
        raise RunnelError(
            ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
        )
    factor = len(topic.partitions[0].replicas)
    if new.assignments is None:
        brokers = image.ready_brokers()
        _ensure_enough(brokers, factor)
        return place(brokers, additional, factor, start)
    for index, replicas in enumerate(new.assignments, present):
        ensure_replicas(image, index, replicas)
        _ensure_consistent(replicas, factor)
    return [tuple(replicas) for replicas in new.assignments]


def new_partition(
    topic_id: TopicId,
    index: int,
    replicas: tuple[int, ...],
    brokers: Mapping[int, Broker],
    min_isr: int,
) -> Partition:
    isr = tuple(brokers[broker_id].member for broker_id in replicas if brokers[broker_id].ready)
    return Partition(
        topic_id=topic_id,
        index=index,
        leader=isr[0].id,
        leader_epoch=0,
        isr=isr,
        elr=(),
        replicas=replicas,
        adding=(),
        removing=(),
        min_isr=min_isr,
        last_known_leader=NO_LEADER,
        recovering=False,
        partition_epoch=0,
    )


def _ensure_enough(brokers: Sequence[Broker], factor: int) -> None:
    if factor > len(brokers):
        raise RunnelError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor "
            f"of {factor} cannot be reached because only {len(brokers)} broker(s) are registered "
            "or some brokers have all their log directories cordoned.",
        )


def _ensure_count(count: int) -> None:
    if count > MAX_PARTITIONS_PER_TOPIC:
        raise RunnelError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


def _assigned(image: Image, new: NewTopic) -> list[tuple[int, ...]]:
    for value, name in (
        (new.replication_factor, "replication factor"),
        (new.partition_count, "numPartitions"),
    ):
        if value != -1:
            raise RunnelError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )
    _ensure_count(len(new.assignments))
    placed: dict[int, tuple[int, ...]] = {}
    for index, replicas in new.assignments:
        if index in placed:
            raise _wrong(f"Found multiple manual partition assignments for partition {index}")
        ensure_replicas(image, index, replicas)
        placed[index] = tuple(replicas)
        _ensure_consistent(replicas, len(next(iter(placed.values()))))
    if sorted(placed) != list(range(len(placed))):
        raise _wrong("partitions should be a consecutive 0-based integer sequence")
    return [placed[index] for index in range(len(placed))]


def ensure_replicas(image: Image, index: int, replicas: Sequence[int]) -> None:
    """Raises INVALID_REPLICA_ASSIGNMENT unless these brokers can hold the partition."""
    if not replicas:
        raise _wrong("The manual partition assignment includes an empty replica list.")
    for position, broker_id in enumerate(replicas):
        if broker_id in replicas[:position]:
            raise _wrong(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        if broker_id not in image.brokers:
            raise _wrong(
                f"The manual partition assignment includes broker {broker_id}, but no such "
                "broker is registered."
            )
    if not any(image.brokers[broker_id].ready for broker_id in replicas):
        raise _wrong(
            f"All brokers specified in the manual partition assignment for partition {index} "
            "are fenced or in controlled shutdown."
        )


def _ensure_consistent(replicas: Sequence[int], factor: int) -> None:
    if len(replicas) != factor:
        raise _wrong(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{factor} replica(s)."
        )


def _wrong(why: str) -> RunnelError:
    return RunnelError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
