"""Changing settings over the wire: the transactions that bring what is stored to what is wanted.

Pure, as `decide` is. A change is a function from the settings stored to those wanted, so that it
can be applied again to a newer image when a transaction was refused or its outcome is unknown.
A set that became empty stays as an empty value: its revision then still tells a transaction that
comes late apart from the first one of all.
"""

from collections.abc import Callable, Iterable, Mapping

from runnel.cluster import values
from runnel.cluster.decide import Transaction, Write, batches
from runnel.cluster.image import NO_CONFIG_SET, Image, Topic
from runnel.cluster.values import ConfigOwner, Partition
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Compare, Delete, Put

MAX_OWNERS = 10_000  # of settings that are no topic's: brokers, groups, subscriptions
MAX_OWNER_NAME = 1024

Settings = Mapping[str, str]
Alteration = Callable[[Settings], Settings]
Piece = tuple[list[Compare], list[Write]]


def alter_configs(
    image: Image, term: int, owner: ConfigOwner, alteration: Alteration, min_isr: int
) -> list[Transaction]:
    """None are left when it is done. `alteration` and this raise RunnelError with Kafka's codes.

    `min_isr` is what topics without a word of their own get.
    """
    pieces: list[Piece]
    if owner.kind == "topic":
        topic = image.topics.get(owner.name)
        if topic is None:
            raise RunnelError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{owner.name}' does not exist."
            )
        wanted = alteration(topic.configs)
        pieces = [] if wanted == topic.configs else [_put_topic(topic, wanted)]
        pieces += _min_isr_pieces(topic._replace(configs=wanted), min_isr)
    else:
        seen = image.configs.get(owner, NO_CONFIG_SET)
        wanted = alteration(seen.values)
        pieces = [] if wanted == seen.values else [_put(image, owner, wanted)]
        pieces += [
            piece for topic in image.topics.values() for piece in _min_isr_pieces(topic, min_isr)
        ]
    return list(batches(term, [], pieces))


def settle_min_isr(image: Image, term: int, min_isr: int) -> list[Transaction]:
    """What a crash left undone between a topic's settings and its partitions."""
    topics = image.topics.values()
    return list(batches(term, [], [piece for t in topics for piece in _min_isr_pieces(t, min_isr)]))


def _put_topic(topic: Topic, wanted: Settings) -> Piece:
    key = values.topic_configs_key(topic.id)
    return (
        [
            Compare(key, "mod_revision", topic.configs_revision),
            # Nothing may come back under the id of a topic that was deleted meanwhile.
            Compare(values.topic_key(topic.name), "mod_revision", topic.mod_revision),
        ],
        [Put(key, values.encode_configs(values.Configs(wanted, topic.configs_extra)))],
    )


def _put(image: Image, owner: ConfigOwner, wanted: Settings) -> Piece:
    seen = image.configs.get(owner, NO_CONFIG_SET)
    if len(owner.name) > MAX_OWNER_NAME:
        raise RunnelError(
            ErrorCode.INVALID_REQUEST, f"a name of {len(owner.name)} characters is too long"
        )
    compares: list[Compare] = []
    writes: list[Write] = []
    if not seen.mod_revision and len(image.configs) >= MAX_OWNERS:
        revision, emptied = _longest_empty(image)
        compares.append(Compare(values.configs_key(emptied), "mod_revision", revision))
        writes.append(Delete(values.configs_key(emptied)))
    key = values.configs_key(owner)
    compares.append(Compare(key, "mod_revision", seen.mod_revision))
    writes.append(Put(key, values.encode_configs(values.Configs(wanted, seen.extra))))
    return compares, writes


def _longest_empty(image: Image) -> tuple[int, ConfigOwner]:
    """Whose place another may take, and its revision.

    What was emptied long ago meets no transaction any more.
    """
    emptied = [
        (seen.mod_revision, owner) for owner, seen in image.configs.items() if not seen.values
    ]
    if not emptied:
        raise RunnelError(
            ErrorCode.POLICY_VIOLATION,
            f"{MAX_OWNERS} groups, subscriptions and brokers have "
            "settings already; remove some first",
        )
    return min(emptied)


def _min_isr_pieces(topic: Topic, min_isr: int) -> Iterable[Piece]:
    """Leaders go by the partition's record; the write that changes it also clears the ELR (R18)."""
    wanted = int(topic.configs.get("min.insync.replicas", min_isr))
    for partition in topic.partitions:
        if partition.min_isr != wanted:
            yield _put_min_isr(partition, wanted)


def _put_min_isr(partition: Partition, min_isr: int) -> Piece:
    key = values.partition_key(partition.topic_id, partition.index)
    changed = partition._replace(
        min_isr=min_isr, elr=(), partition_epoch=partition.partition_epoch + 1
    )
    return (
        [Compare(key, "mod_revision", partition.mod_revision)],
        [Put(key, values.encode_partition(changed))],
    )
