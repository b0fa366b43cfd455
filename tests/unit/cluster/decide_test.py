"""Decisions as data: what is compared, what is written, what is refused with which code."""

from collections.abc import Sequence

import pytest

from runnel.cluster import decide, values
from runnel.cluster.decide import BrokerInfo, Transaction
from runnel.cluster.image import Broker, Image, Topic
from runnel.cluster.placement import place
from runnel.cluster.topics import (
    MAX_PARTITIONS_PER_TOPIC,
    Assignment,
    NewPartitions,
    NewTopic,
    TopicDefaults,
)
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import MAX_TXN_OPERATIONS, Compare, Delete, Put

TERM = 99
TOPIC_ID = bytes(range(16))
DEFAULTS = TopicDefaults(4, 2, 2)


def ready(broker_id: int, rack: str | None = None) -> Broker:
    epoch = 10 + broker_id
    return Broker(broker_id, epoch, rack=rack, live_epoch=epoch, ready_epoch=epoch)


def cluster(*brokers: Broker, topics: Sequence[Topic] = ()) -> Image:
    return Image(
        revision=50,
        brokers={broker.id: broker for broker in brokers},
        topics={topic.name: topic for topic in topics},
        topics_by_id={topic.id: topic for topic in topics},
        topics_revision=33,
    )


THREE = cluster(ready(1), ready(2), ready(3))


def plan(new: NewTopic, image: Image = THREE, start: int = 0) -> Topic:
    return decide.plan_topic(image, new, TOPIC_ID, DEFAULTS, start)


def ensure_sound(transactions: Sequence[Transaction]) -> None:
    for transaction in transactions:
        assert len(transaction.compares) + len(transaction.writes) <= MAX_TXN_OPERATIONS
        assert Compare(values.CONTROLLER, "create_revision", TERM) in transaction.compares
        keys = [write.key for write in transaction.writes]
        assert len(set(keys)) == len(keys)


def test_defaults_fill_what_was_not_said() -> None:
    topic = plan(NewTopic("t"))
    assert len(topic.partitions) == 4
    for partition in topic.partitions:
        assert len(partition.replicas) == 2 and partition.min_isr == 2
        assert [m.id for m in partition.isr] == list(partition.replicas)
        assert partition.leader == partition.replicas[0]
        assert all(m.epoch == 10 + m.id for m in partition.isr)
        assert partition.leader_epoch == partition.partition_epoch == 0
    configured = plan(NewTopic("t", 1, 3, configs={"min.insync.replicas": "3"}))
    assert configured.partitions[0].min_isr == 3


def test_where_a_topic_lives_is_written_down_when_it_is_made() -> None:
    memory = DEFAULTS._replace(storage="memory")
    assert plan(NewTopic("t")).configs == {}
    made = decide.plan_topic(THREE, NewTopic("t"), TOPIC_ID, memory, 0)
    assert made.configs == {"runnel.storage": "memory"}
    chosen = NewTopic("t", configs={"runnel.storage": "disk"})
    assert decide.plan_topic(THREE, chosen, TOPIC_ID, memory, 0).configs == chosen.configs


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (NewTopic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("t", 0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", -2), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", MAX_PARTITIONS_PER_TOPIC + 1), ErrorCode.POLICY_VIOLATION),
        (NewTopic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", configs={"retention.ms": "x"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", configs={"no.such": "x"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", 1, -1, [Assignment(0, [1])]), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", -1, 1, [Assignment(0, [1])]), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", -1, -1, [Assignment(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", -1, -1, [Assignment(0, [1, 1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", -1, -1, [Assignment(0, [9])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", -1, -1, [Assignment(1, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (
            NewTopic("t", -1, -1, [Assignment(0, [1]), Assignment(0, [2])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            NewTopic("t", -1, -1, [Assignment(0, [1]), Assignment(1, [1, 2])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
    ],
)
def test_a_wrong_topic_gets_kafkas_code(new: NewTopic, code: ErrorCode) -> None:
    with pytest.raises(RunnelError) as raised:
        plan(new)
    assert raised.value.code is code


def test_a_manual_assignment_is_taken_as_it_is() -> None:
    fenced = Broker(3, 13)
    image = cluster(ready(1), ready(2), fenced)
    new = NewTopic("t", assignments=[Assignment(1, [2, 1]), Assignment(0, [3, 2])])
    topic = plan(new, image)
    assert [p.replicas for p in topic.partitions] == [(3, 2), (2, 1)]
    assert [p.leader for p in topic.partitions] == [2, 2], "a fenced broker does not lead"
    with pytest.raises(RunnelError, match="are fenced"):
        plan(NewTopic("t", assignments=[Assignment(0, [3])]), image)


def test_the_name_of_a_topic_is_written_last_and_deleted_first() -> None:
    for count in (1, 2, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 1000):
        topic = plan(NewTopic("t", count, 1, configs={"retention.ms": "1"}))
        transactions = decide.create_topic(THREE, TERM, topic)
        ensure_sound(transactions)
        writes = [write for transaction in transactions for write in transaction.writes]
        keys = [write.key for write in writes]
        assert keys[-2:] == ["topic/t", "topics"] and len(keys) == len(set(keys)) == count + 3
        unchanged = Compare(values.TOPICS, "mod_revision", 33)
        assert all(unchanged in transaction.compares for transaction in transactions)
        assert Compare("topic/t", "version", 0) in transactions[-1].compares
        existing = topic._replace(mod_revision=44, configs_revision=44)
        (deletion,) = decide.delete_topic(TERM, existing)
        ensure_sound([deletion])
        assert deletion.writes[0] == Delete("topic/t")
        assert Compare("topic/t", "mod_revision", 44) in deletion.compares
        left = Image(unnamed={TOPIC_ID: existing._replace(name="")})
        swept = decide.sweep(left, TERM)
        ensure_sound(swept)
        assert sum(isinstance(w, Delete) for t in swept for w in t.writes) == count + 1
    assert decide.sweep(THREE, TERM) == []


def test_a_topic_grows_in_ascending_order_and_only_while_it_is_the_same() -> None:
    topic = plan(NewTopic("t", 2, 2, configs={"min.insync.replicas": "2"}))
    topic = topic._replace(mod_revision=44)
    image = cluster(ready(1), ready(2), ready(3), topics=[topic])
    added = decide.plan_partitions(image, NewPartitions("t", 302), DEFAULTS, start=5)
    assert [partition.index for partition in added] == list(range(2, 302))
    assert {(len(partition.replicas), partition.min_isr) for partition in added} == {(2, 2)}
    transactions = decide.add_partitions(TERM, topic, added)
    ensure_sound(transactions)
    written = [write.key for transaction in transactions for write in transaction.writes]
    assert written == [values.partition_key(TOPIC_ID, index) for index in range(2, 302)]
    for transaction in transactions:
        # A topic of that name that was made since has another revision.
        assert Compare(values.topic_key("t"), "mod_revision", 44) in transaction.compares
        for write in transaction.writes:
            assert Compare(write.key, "version", 0) in transaction.compares


def test_features_keep_what_a_newer_version_wrote_beside_them() -> None:
    image = Image(revision=5, features={"a": 1}, features_epoch=4, features_extra={"new": 1})
    (put,) = decide.update_features(image, TERM, {"b": 2}).writes
    assert isinstance(put, Put)
    stored = values.decode_features(put.value)
    assert (stored.levels, stored.extra["new"]) == ({"a": 1, "b": 2}, 1)


def test_a_thousand_partitions_restart_in_a_few_transactions() -> None:
    topic = plan(NewTopic("t", 1000, 1), cluster(ready(1)))
    topic = topic._replace(partitions=tuple(p._replace(mod_revision=7) for p in topic.partitions))
    restarted = Broker(1, 60, live_epoch=60)
    image = cluster(restarted, topics=[topic])
    transactions = decide.unfence(image, TERM, restarted)
    ensure_sound(transactions)
    assert len(transactions) == 17
    assert transactions[-1].writes == [Put(values.ready_key(1), b"60")]
    puts = [write for transaction in transactions[:-1] for write in transaction.writes]
    assert len(puts) == 1000
    compared = {c.key: c for t in transactions for c in t.compares if c.key.startswith("part/")}
    assert all(compared[write.key].expected == 7 for write in puts)
    alive = Compare(values.live_key(1), "value", b"60")
    assert all(alive in transaction.compares for transaction in transactions)


def test_lossless_lives_are_counted_from_the_last_lossy_one() -> None:
    info = BrokerInfo(1, (), boot_id="b")

    def since(seen: Broker, info: BrokerInfo) -> int:
        (put,) = decide.begin_epoch(seen, info, "i").writes
        assert isinstance(put, Put)
        return values.decode_broker_epoch(put.key, put.value).lossless_since

    assert since(Broker(1), info) == 0
    seen = Broker(1, epoch=40, boot_id="b", lossless_since=30)
    assert since(seen, info) == 30
    assert since(seen, info._replace(write_failed=True)) == 41
    assert since(seen, info._replace(boot_id="c")) == 41
    assert since(seen, info._replace(boot_id="c", clean_epoch=40)) == 30
    assert since(seen._replace(boot_id=""), info._replace(boot_id="")) == 41


def test_producer_ids_go_on_where_they_ended() -> None:
    transaction, block = decide.allocate_producer_ids(THREE, ready(1))
    assert (block.start, len(block)) == (0, 1000)
    assert transaction.compares == [Compare(values.PRODUCER_IDS, "mod_revision", 0)]
    (put,) = transaction.writes
    assert isinstance(put, Put)
    taken = values.decode_producer_ids(put.value)
    image = Image(producer_ids=taken, producer_ids_revision=8)
    transaction, block = decide.allocate_producer_ids(image, ready(2))
    assert (block.start, block.stop) == (1000, 2000)
    assert transaction.compares == [Compare(values.PRODUCER_IDS, "mod_revision", 8)]
    full = Image(producer_ids=taken._replace(next_id=2**63 - 10))
    with pytest.raises(RunnelError, match="used up"):
        decide.allocate_producer_ids(full, ready(1))


@pytest.mark.parametrize("start", range(7))
def test_replicas_are_spread_evenly(start: int) -> None:
    brokers = [ready(n) for n in range(5)]
    placed = place(brokers, 20, 3, start)
    assert all(len(set(replicas)) == 3 for replicas in placed)
    for broker_id in range(5):
        assert sum(replicas[0] == broker_id for replicas in placed) == 4
        assert 10 <= sum(broker_id in replicas for replicas in placed) <= 14
    assert len({frozenset(replicas) for replicas in placed}) > 5, "rounds differ"


def test_replicas_are_in_different_racks() -> None:
    racks = {n: f"r{n % 3}" for n in range(6)}
    brokers = [ready(n, rack) for n, rack in racks.items()]
    for replicas in place(brokers, 30, 3, 4):
        assert len({racks[broker_id] for broker_id in replicas}) == 3
