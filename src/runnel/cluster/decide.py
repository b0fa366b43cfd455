"""Pure decisions: from the image and an intent to the transactions that carry it out.

Every transaction of the controller compares the creation revision of its election (`term`), so a
controller that was replaced can change nothing. Every change of an existing record compares that
record's modification revision. No transaction holds more than MAX_TXN_OPERATIONS compares and
writes; where one intent needs several, each of them leaves a state that the next start understands:
a topic's name is written last and deleted first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from runnel.cluster import values
from runnel.cluster.client_quotas import QuotaAlteration, altered, quota_key
from runnel.cluster.election import elect, restarted, revised
from runnel.cluster.image import Broker, Image, Topic
from runnel.cluster.topic_names import ensure_legal, ensure_no_collision
from runnel.cluster.topics import (
    NewPartitions,
    NewTopic,
    TopicDefaults,
    new_partition,
    replicas_of,
    replicas_of_new,
)
from runnel.cluster.values import Partition
from runnel.config.listeners import Listener
from runnel.config.overrides import validate_topic_configs
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import MAX_TXN_OPERATIONS, Compare, Delete, Put
from runnel.types import TopicId

PRODUCER_ID_BLOCK_SIZE = 1000
MAX_PRODUCER_ID = 2**63 - 1
ADOPTED_CONFIGS: Mapping[str, str] = {"retention.ms": "-1"}

Write = Put | Delete


class Transaction(NamedTuple):
    compares: Sequence[Compare]
    writes: Sequence[Write]


class FoundTopic(NamedTuple):
    """A topic as the folders of its logs tell of it.

    Kafka keeps the topics' settings in its own metadata log, which is not read. What is adopted
    therefore keeps its records for ever until somebody says otherwise.
    """

    name: str
    topic_id: TopicId
    first_epochs: tuple[int, ...]  # by partition, the first leader epoch that it may get
    configs: Mapping[str, str] = ADOPTED_CONFIGS


class BrokerInfo(NamedTuple):
    """What a broker process knows of itself when it starts."""

    id: int
    listeners: tuple[Listener, ...]
    rack: str | None = None
    clean_epoch: int = -1  # the epoch in the clean-shutdown file, -1 without one
    boot_id: str = ""  # the kernel's; empty where there is none to ask
    write_failed: bool = False  # an earlier life recorded a failed write or fsync


def found_cluster(cluster_id: str) -> Transaction:
    """The first broker of all names the cluster."""
    cluster = values.Cluster(cluster_id, values.FEATURE_LEVEL)
    return Transaction(
        [Compare(values.CLUSTER, "version", 0)], [Put(values.CLUSTER, values.encode(cluster))]
    )


def begin_epoch(seen: Broker, info: BrokerInfo, incarnation: str) -> Transaction:
    """Txn A: a new life of the broker. Its epoch is the revision this makes."""
    clean = info.clean_epoch == seen.epoch
    same_boot = info.boot_id != "" and info.boot_id == seen.boot_id and not info.write_failed
    lossless = seen.epoch == 0 or clean or same_boot
    epoch = values.BrokerEpoch(
        incarnation=incarnation,
        boot_id=info.boot_id,
        lossless_since=seen.lossless_since if lossless else seen.epoch + 1,
    )
    return Transaction(
        [
            Compare(values.live_key(info.id), "version", 0),
            Compare(values.epoch_key(info.id), "mod_revision", seen.epoch),
        ],
        [Put(values.epoch_key(info.id), values.encode(epoch))],
    )


def announce(info: BrokerInfo, broker_epoch: int, lease: int) -> Transaction:
    """Txn B: this life is up. Also after the loss of a lease, in the same epoch."""
    registration = values.Registration(info.listeners, info.rack)
    return Transaction(
        [
            Compare(values.epoch_key(info.id), "mod_revision", broker_epoch),
            Compare(values.live_key(info.id), "version", 0),
        ],
        [
            Put(values.live_key(info.id), values.encode_epoch(broker_epoch), lease),
            Put(values.registration_key(info.id), values.encode(registration)),
        ],
    )


def campaign(info: BrokerInfo, broker_epoch: int, lease: int) -> Transaction:
    """To be the controller. The creation revision of the key is the controller's epoch."""
    controller = values.Controller(info.id, broker_epoch)
    return Transaction(
        [
            Compare(values.CONTROLLER, "version", 0),
            Compare(values.live_key(info.id), "value", values.encode_epoch(broker_epoch)),
        ],
        [Put(values.CONTROLLER, values.encode(controller), lease)],
    )


def unfence(image: Image, term: int, broker: Broker) -> list[Transaction]:
    """Apply a broker's new life to its partitions (R17), elect leaders, then mark it ready.

    The election is part of the same write: the record it starts from holds this epoch already, so
    no other transaction can come between.
    """
    assert broker.live and not broker.ready, broker
    electable = {b.id: b.epoch for b in image.ready_brokers()} | {broker.id: broker.epoch}
    alive = Compare(values.live_key(broker.id), "value", values.encode_epoch(broker.epoch))
    pieces: list[tuple[list[Compare], list[Write]]] = []
    for topic in image.topics.values():
        since = 0 if _syncs_before_ack(topic) else broker.lossless_since
        for old in topic.partitions:
            if broker.id not in old.replicas:
                continue
            after = restarted(old, broker.member, lossless_since=since)
            new = revised(old, elect(after, electable))
            if new is not old:
                pieces.append((_leader_compares(image, new, broker), [_put(new)]))
    ready = Put(values.ready_key(broker.id), values.encode_epoch(broker.epoch))
    own_epoch = Compare(values.epoch_key(broker.id), "mod_revision", broker.epoch)
    return [*batches(term, [alive], pieces), guarded(term, [alive, own_epoch], [ready])]


def _syncs_before_ack(topic: Topic) -> bool:
    """Only the topic's own word counts: a broker's default may have changed while it was down."""
    configs = topic.configs
    return configs.get("runnel.durability") == "ack" or configs.get("flush.messages") == "1"


def _leader_compares(image: Image, new: Partition, unfenced: Broker) -> list[Compare]:
    key = values.partition_key(new.topic_id, new.index)
    compares = [Compare(key, "mod_revision", new.mod_revision)]
    if new.leader in (values.NO_LEADER, unfenced.id):
        return compares
    epoch = values.encode_epoch(image.brokers[new.leader].epoch)
    return [
        *compares,
        Compare(values.live_key(new.leader), "value", epoch),
        Compare(values.ready_key(new.leader), "value", epoch),
    ]


def plan_topic(
    image: Image, new: NewTopic, topic_id: TopicId, defaults: TopicDefaults, start: int
) -> Topic:
    """The topic as it would be. Raises RunnelError with Kafka's codes."""
    ensure_legal(new.name)
    if new.name in image.topics:
        raise RunnelError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' already exists.")
    ensure_no_collision(new.name, image.topics)
    validate_topic_configs(new.configs)
    configs = {name: text for name, text in new.configs.items() if text is not None}
    if defaults.storage != "disk":
        # Written down, because a log stays where it was made when the default changes.
        configs.setdefault("runnel.storage", defaults.storage)
    min_isr = int(configs.get("min.insync.replicas", defaults.min_insync_replicas))
    partitions = [
        new_partition(topic_id, index, replicas, image.brokers, min_isr)
        for index, replicas in enumerate(replicas_of(image, new, defaults, start))
    ]
    return Topic(topic_id, new.name, tuple(partitions), configs)


def adopt_topic(broker: Broker, found: FoundTopic) -> Topic:
    """A topic whose logs exist already, on this broker alone, led in epochs they have not seen."""
    partitions = [
        new_partition(found.topic_id, index, (broker.id,), {broker.id: broker}, 1)._replace(
            leader_epoch=epoch
        )
        for index, epoch in enumerate(found.first_epochs)
    ]
    return Topic(found.topic_id, found.name, tuple(partitions), found.configs)


def create_topic(image: Image, term: int, topic: Topic) -> list[Transaction]:
    """Its contents, then its name. Until then, applying one of them twice changes nothing more."""
    writes: list[Write] = [_put(partition) for partition in topic.partitions]
    if topic.configs:
        value = values.encode_configs(values.Configs(topic.configs))
        writes.append(Put(values.topic_configs_key(topic.id), value))
    unchanged = Compare(values.TOPICS, "mod_revision", image.topics_revision)
    naming: list[Write] = [
        Put(values.topic_key(topic.name), values.encode_topic(values.TopicName(topic.id))),
        Put(values.TOPICS, values.encode_topics()),
    ]
    pieces: list[tuple[list[Compare], list[Write]]] = [([], [write]) for write in writes]
    absent = Compare(values.topic_key(topic.name), "version", 0)
    return list(batches(term, [unchanged], [*pieces, ([absent], naming)]))


def plan_partitions(
    image: Image, new: NewPartitions, defaults: TopicDefaults, start: int
) -> list[Partition]:
    """The partitions that the topic would get besides its own. Raises RunnelError."""
    topic = image.topics.get(new.topic)
    if topic is None:
        raise RunnelError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        )
    min_isr = int(topic.configs.get("min.insync.replicas", defaults.min_insync_replicas))
    return [
        new_partition(topic.id, index, replicas, image.brokers, min_isr)
        for index, replicas in enumerate(
            replicas_of_new(image, topic, new, start), len(topic.partitions)
        )
    ]


def add_partitions(term: int, topic: Topic, added: Sequence[Partition]) -> list[Transaction]:
    """In ascending order: what a crash leaves of many is a topic with some of them, and no gap."""
    named = Compare(values.topic_key(topic.name), "mod_revision", topic.mod_revision)
    pieces: list[tuple[list[Compare], list[Write]]] = [
        (
            [Compare(values.partition_key(topic.id, partition.index), "version", 0)],
            [_put(partition)],
        )
        for partition in added
    ]
    return list(batches(term, [named], pieces))


def delete_topic(term: int, topic: Topic) -> list[Transaction]:
    """Takes the name away, which is the deletion; what is left then is for `sweep`."""
    key = values.topic_key(topic.name)
    unchanged = Compare(key, "mod_revision", topic.mod_revision)
    writes: list[Write] = [Delete(key), Put(values.TOPICS, values.encode_topics())]
    room = MAX_TXN_OPERATIONS - len(writes) - 2
    return [guarded(term, [unchanged], [*writes, *islice(_contents(topic), room)])]


def sweep(image: Image, term: int) -> list[Transaction]:
    """Clear what has no name: the rest of a deletion, or what a crash left of a creation."""
    deletes = [delete for topic in image.unnamed.values() for delete in _contents(topic)]
    room = MAX_TXN_OPERATIONS - 2
    noted = Put(values.TOPICS, values.encode_topics())
    return [
        guarded(term, [], [noted, *deletes[start : start + room]])
        for start in range(0, len(deletes), room)
    ]


def _contents(topic: Topic) -> Iterator[Write]:
    if topic.configs_revision:
        yield Delete(values.topic_configs_key(topic.id))
    for partition in topic.partitions:
        yield Delete(values.partition_key(topic.id, partition.index))


def allocate_producer_ids(
    image: Image, broker: Broker, at_least: int = 0
) -> tuple[Transaction, range]:
    """A block of ids for one broker, and the transaction that makes it the broker's own."""
    seen = image.producer_ids
    first = max(seen.next_id if seen else 0, at_least)
    if first > MAX_PRODUCER_ID - PRODUCER_ID_BLOCK_SIZE:
        raise RunnelError(ErrorCode.UNKNOWN_SERVER_ERROR, "all producer ids are used up")
    following = first + PRODUCER_ID_BLOCK_SIZE
    extra = seen.extra if seen else values.NO_EXTRA
    taken = values.ProducerIds(following, broker.id, broker.epoch, extra)
    transaction = Transaction(
        [Compare(values.PRODUCER_IDS, "mod_revision", image.producer_ids_revision)],
        [Put(values.PRODUCER_IDS, values.encode(taken))],
    )
    return transaction, range(first, following)


def update_features(image: Image, term: int, levels: Mapping[str, int]) -> Transaction:
    """These levels beside the others that were set. A level of 0 is kept: it was asked for."""
    features = values.Features({**image.features, **levels}, image.features_extra)
    unchanged = Compare(values.FEATURES, "mod_revision", image.features_epoch)
    return guarded(term, [unchanged], [Put(values.FEATURES, values.encode_features(features))])


def unregister(term: int, broker: Broker) -> Transaction:
    """Forget a broker that is gone; what it held stays assigned to it, as in Kafka."""
    gone = Compare(values.live_key(broker.id), "version", 0)
    unchanged = Compare(values.epoch_key(broker.id), "mod_revision", broker.epoch)
    keys = (
        values.epoch_key(broker.id),
        values.registration_key(broker.id),
        values.ready_key(broker.id),
    )
    return guarded(term, [gone, unchanged], [Delete(key) for key in keys])


def alter_client_quotas(
    image: Image, term: int, alterations: Iterable[QuotaAlteration]
) -> list[Transaction]:
    """What is not so already; done twice it changes nothing more."""
    pieces: list[tuple[list[Compare], list[Write]]] = []
    for entity, changes in alterations:
        old = image.client_quotas.get(entity, values.ClientQuota({}))
        wanted = altered(old.values, changes)
        if wanted == old.values:
            continue
        key = quota_key(entity)
        write = Put(key, values.encode_configs(old._replace(values=wanted)))
        pieces.append(
            (
                [Compare(key, "mod_revision", old.mod_revision)],
                [write if wanted else Delete(key)],
            )
        )
    return list(batches(term, [], pieces))


def _put(partition: Partition) -> Put:
    key = values.partition_key(partition.topic_id, partition.index)
    return Put(key, values.encode_partition(partition))


def guarded(term: int, compares: Sequence[Compare], writes: Sequence[Write]) -> Transaction:
    transaction = Transaction(
        [Compare(values.CONTROLLER, "create_revision", term), *compares], writes
    )
    assert len(transaction.compares) + len(writes) <= MAX_TXN_OPERATIONS
    return transaction


def batches(
    term: int,
    always: Sequence[Compare],
    pieces: Iterable[tuple[list[Compare], list[Write]]],
) -> Iterator[Transaction]:
    """Pieces packed into as few transactions as fit; a piece is never divided."""
    compares: list[Compare] = list(always)
    writes: list[Write] = []
    for more_compares, more_writes in pieces:
        needed = len(compares) + len(writes) + len(more_compares) + len(more_writes) + 1
        if needed > MAX_TXN_OPERATIONS:
            yield guarded(term, compares, writes)
            compares, writes = list(always), []
        compares += more_compares
        writes += more_writes
    if writes:
        yield guarded(term, compares, writes)
