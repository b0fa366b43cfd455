"""The image follows the store step by step, shares what did not change, keeps the unknown."""

import json
import random

import pytest

from runnel.cluster import values
from runnel.cluster.image import Image, load
from runnel.cluster.values import ConfigOwner, Member, Partition
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Change, Changes, Delete, Entry, Put, Snapshot

TOPIC_ID = bytes(range(16))
DEFAULT = ConfigOwner("broker", "")


def partition(index: int = 0, topic_id: bytes = TOPIC_ID) -> Partition:
    return Partition(
        topic_id, index, 1, 3, (Member(1, 10),), (Member(2, 5),), (1, 2), (), (), 2, -1, False, 4
    )


class Store:
    """Just enough of a store to make changes from writes."""

    def __init__(self) -> None:
        self.image = Image()
        self.entries: dict[str, Entry] = {}
        self.revision = 0

    def write(self, *writes: Put | Delete) -> Image:
        self.revision += 1
        changes = []
        for write in writes:
            old = self.entries.pop(write.key, None)
            entry = None
            if isinstance(write, Put):
                created, version = (old.create_revision, old.version) if old else (self.revision, 0)
                entry = Entry(write.key, write.value, created, self.revision, version + 1)
                self.entries[write.key] = entry
            changes.append(Change(write.key, entry, self.revision))
        self.image = self.image.apply(Changes(self.revision, changes))
        return self.image

    def reloaded(self) -> Image:
        return load(Snapshot(self.revision, [self.entries[key] for key in sorted(self.entries)]))


def put_partition(record: Partition) -> Put:
    return Put(values.partition_key(record.topic_id, record.index), values.encode_partition(record))


def put_topic(name: str, topic_id: bytes = TOPIC_ID) -> Put:
    return Put(values.topic_key(name), values.encode_topic(values.TopicName(topic_id)))


def test_a_topic_is_seen_whole_or_not_at_all() -> None:
    store = Store()
    image = store.write(put_partition(partition(1)), put_partition(partition(0)))
    assert not image.topics and list(image.unnamed) == [TOPIC_ID]
    configs = values.encode_configs(values.Configs({"retention.ms": "5"}))
    store.write(Put(values.topic_configs_key(TOPIC_ID), configs))
    image = store.write(put_topic("t"))
    assert not image.unnamed
    topic = image.topics["t"]
    assert topic is image.topics_by_id[TOPIC_ID]
    assert [p.index for p in topic.partitions] == [0, 1]
    assert topic.configs == {"retention.ms": "5"}
    assert topic.partitions[0] == partition(0)._replace(mod_revision=1)
    assert image.partition("t", 1) is topic.partitions[1]
    assert image.partition("t", 2) is None and image.partition("t", -1) is None
    image = store.write(Delete(values.topic_key("t")), Delete(values.partition_key(TOPIC_ID, 0)))
    assert not image.topics and not image.topics_by_id
    assert [p.index for p in image.unnamed[TOPIC_ID].partitions] == [1]
    image = store.write(
        Delete(values.partition_key(TOPIC_ID, 1)), Delete(values.topic_configs_key(TOPIC_ID))
    )
    assert not image.unnamed


def test_an_image_never_changes() -> None:
    store = Store()
    before = store.write(put_partition(partition()), put_topic("t"))
    after = store.write(put_partition(partition()._replace(leader_epoch=9)))
    assert before.topics["t"].partitions[0].leader_epoch == 3
    assert after.topics["t"].partitions[0].leader_epoch == 9
    assert after.topics["t"].partitions[0].mod_revision == 2
    only_broker = store.write(Put(values.live_key(1), b"7"))
    assert only_broker.topics is after.topics, "what did not change is shared"


def test_brokers_come_and_go() -> None:
    store = Store()
    epoch = values.BrokerEpoch("incarnation", "boot", 0)
    image = store.write(Put(values.epoch_key(5), values.encode(epoch)))
    assert (image.brokers[5].epoch, image.brokers[5].live) == (1, False)
    image = store.write(Put(values.live_key(5), values.encode_epoch(1)))
    assert image.brokers[5].live and not image.brokers[5].ready
    image = store.write(Put(values.ready_key(5), values.encode_epoch(1)))
    assert image.ready_brokers() == [image.brokers[5]]
    image = store.write(Put(values.epoch_key(5), values.encode(epoch)))
    assert not image.brokers[5].live, "the marks of an older life count for nothing"
    image = store.write(
        Delete(values.live_key(5)), Put(values.configs_key(DEFAULT), b'{"values":{"a":"b"}}')
    )
    assert image.configs_of(DEFAULT) == {"a": "b"}
    image = store.write(Delete(values.configs_key(DEFAULT)))
    assert image.configs == {}


@pytest.mark.parametrize("seed", range(20))
def test_following_ends_where_reading_does(seed: int) -> None:
    """Random creations, changes and deletions: the image by watch equals the image by read."""
    chance, store = random.Random(seed), Store()
    alive: dict[str, tuple[bytes, int]] = {}
    for _ in range(100):
        name = f"t{chance.randrange(5)}"
        topic_id, count = alive.get(name, (chance.randbytes(16), chance.randint(1, 12)))
        parts = [partition(n, topic_id) for n in range(count)]
        if name not in alive:
            for record in parts[:-1]:
                store.write(put_partition(record))
            store.write(put_partition(parts[-1]), put_topic(name, topic_id))
            alive[name] = (topic_id, count)
        elif chance.random() < 0.3:
            deletes = [Delete(values.partition_key(topic_id, n)) for n in range(count)]
            chance.shuffle(deletes)
            store.write(Delete(values.topic_key(name)), deletes[0])
            for delete in deletes[1:]:
                store.write(delete)
            del alive[name]
        else:
            store.write(*[put_partition(p._replace(leader_epoch=9)) for p in parts[::2]])
        if chance.random() < 0.2:
            store.write(Put(values.live_key(chance.randrange(3)), b"1"))
    assert store.image == store.reloaded()
    assert set(store.image.topics) == set(alive) and not store.image.unnamed


def test_fields_of_a_newer_version_survive_a_change() -> None:
    raw = json.loads(values.encode_partition(partition()))
    raw |= {"version": 7, "future": {"a": [1]}}
    store = Store()
    key = values.partition_key(TOPIC_ID, 0)
    image = store.write(Put(key, json.dumps(raw).encode()), put_topic("t"))
    changed = image.topics["t"].partitions[0]._replace(leader=2)
    again = json.loads(values.encode_partition(changed))
    assert again == raw | {"leader": 2}
    store.write(Put("of-a-newer-version/x", b"anything"))


def test_a_newer_feature_level_is_refused() -> None:
    cluster = values.encode(values.Cluster("id", values.FEATURE_LEVEL + 1))
    with pytest.raises(RunnelError, match="use a newer version") as raised:
        Store().write(Put(values.CLUSTER, cluster))
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"{}", b"\xff"])
def test_a_value_that_cannot_be_read_is_named(raw: bytes) -> None:
    for key in (values.CLUSTER, values.topic_key("t"), values.partition_key(TOPIC_ID, 0)):
        with pytest.raises(RunnelError, match=key):
            Store().write(Put(key, raw))


def test_ten_thousand_partitions_are_cheap_to_change() -> None:
    """Counted, not timed: one change touches one topic's partitions and no other's."""
    store = Store()
    for number in range(100):
        topic_id = number.to_bytes(16, "big")
        parts = [put_partition(partition(n, topic_id)) for n in range(100)]
        store.write(*parts, put_topic(f"t{number}", topic_id))
    before = store.image
    after = store.write(put_partition(partition(50, (7).to_bytes(16, "big"))))
    moved = [name for name, topic in after.topics.items() if topic is not before.topics[name]]
    assert moved == ["t7"]
    pairs = zip(after.topics["t7"].partitions, before.topics["t7"].partitions, strict=True)
    assert sum(new is not old for new, old in pairs) == 1
