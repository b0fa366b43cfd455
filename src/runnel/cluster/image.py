"""The immutable snapshot of all metadata that the broker serves from and decisions are made on.

`apply` makes the next image from one revision's changes and shares everything else with the last,
so holding an image costs nothing and a reader never sees half a transaction. A topic is visible
once its name is written, which happens after its partitions; what has partitions but no name
(`unnamed`: being created, or being deleted) exists for the controller alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from runnel.cluster import values
from runnel.cluster.client_quotas import Entity, parse_entity
from runnel.cluster.values import NO_EXTRA, ClientQuota, ConfigOwner, Extra, Member, Partition
from runnel.config.listeners import Listener
from runnel.ports import Change, Changes, Entry, Snapshot
from runnel.types import TopicId

NO_CONFIGS: Mapping[str, str] = {}


class Broker(NamedTuple):
    id: int
    epoch: int = 0  # 0: no epoch was ever written
    incarnation: str = ""
    boot_id: str = ""
    lossless_since: int = 0
    listeners: tuple[Listener, ...] = ()
    rack: str | None = None
    live_epoch: int = 0
    ready_epoch: int = 0

    @property
    def live(self) -> bool:
        return self.epoch != 0 and self.live_epoch == self.epoch

    @property
    def ready(self) -> bool:
        """Live and unfenced by the controller: it may lead, and join an ISR."""
        return self.live and self.ready_epoch == self.epoch

    @property
    def member(self) -> Member:
        return Member(self.id, self.epoch)


class Topic(NamedTuple):
    id: TopicId
    name: str = ""  # empty while the topic is unnamed
    partitions: tuple[Partition, ...] = ()
    configs: Mapping[str, str] = NO_CONFIGS
    mod_revision: int = 0
    configs_revision: int = 0
    extra: Extra = NO_EXTRA
    configs_extra: Extra = NO_EXTRA


class ConfigSet(NamedTuple):
    """What one owner was given over the wire; a topic's settings are with the topic."""

    values: Mapping[str, str] = NO_CONFIGS
    mod_revision: int = 0
    extra: Extra = NO_EXTRA


NO_CONFIG_SET = ConfigSet()


class ControllerTerm(NamedTuple):
    broker_id: int
    broker_epoch: int
    create_revision: int  # the controller epoch


@dataclass(frozen=True, slots=True)
class Image:
    revision: int = 0
    cluster: values.Cluster | None = None
    controller: ControllerTerm | None = None
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    topics_by_id: Mapping[TopicId, Topic] = field(default_factory=dict)
    unnamed: Mapping[TopicId, Topic] = field(default_factory=dict)
    topics_revision: int = 0  # of the last creation or deletion
    configs: Mapping[ConfigOwner, ConfigSet] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    features_epoch: int = 0
    features_extra: Extra = field(default_factory=dict)
    producer_ids: values.ProducerIds | None = None
    producer_ids_revision: int = 0
    client_quotas: Mapping[Entity, ClientQuota] = field(default_factory=dict)

    @property
    def cluster_id(self) -> str:
        return self.cluster.cluster_id if self.cluster else ""

    def partition(self, topic: str, index: int) -> Partition | None:
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def configs_of(self, owner: ConfigOwner) -> Mapping[str, str]:
        return self.configs.get(owner, NO_CONFIG_SET).values

    def ready_brokers(self) -> list[Broker]:
        return [broker for _, broker in sorted(self.brokers.items()) if broker.ready]

    def apply(self, changes: Changes) -> "Image":
        """Raises RunnelError where a value cannot be read or a newer version owns the store."""
        assert changes.revision > self.revision, (changes.revision, self.revision)
        draft = _Draft(self)
        for change in changes.changes:
            draft.take(change)
        return draft.finish(changes.revision)


def load(snapshot: Snapshot) -> Image:
    changes = [Change(entry.key, entry, entry.mod_revision) for entry in snapshot.entries]
    return Image(revision=-1).apply(Changes(snapshot.revision, changes))


class _Draft:
    """The next image while one revision is taken in; copies a map only when it is changed."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._singles: dict[str, object] = {}
        self._brokers: dict[int, Broker] = {}
        self._configs: dict[ConfigOwner, ConfigSet | None] = {}
        self._topics: dict[TopicId, Topic] = {}
        self._partitions: dict[TopicId, dict[int, Partition]] = {}
        self._quotas: dict[Entity, ClientQuota | None] = {}

    def take(self, change: Change) -> None:
        family, _, rest = change.key.partition("/")
        entry = change.entry
        match family:
            case "part":
                self._take_partition(change.key, rest, entry)
            case "topic":
                self._take_topic(change.key, rest, entry)
            case "config":
                self._take_configs(change.key, rest, entry)
            case "epoch" | "reg" | "live" | "ready":
                self._take_broker(family, change.key, int(rest), entry)
            case values.CLUSTER | values.CONTROLLER | values.FEATURES | values.PRODUCER_IDS:
                self._take_single(family, entry)
            case "quota":
                self._take_quota(change.key, rest, entry)
            case values.TOPICS:
                self._singles["topics_revision"] = entry.mod_revision if entry else 0
            case _:
                pass  # a newer version's key, which the feature level lets us live beside

    def _take_partition(self, key: str, rest: str, entry: Entry | None) -> None:
        hexadecimal, _, digits = rest.partition("/")
        topic_id, index = bytes.fromhex(hexadecimal), int(digits)
        partitions = self._partitions.get(topic_id)
        if partitions is None:
            old = self._topic(topic_id).partitions
            partitions = self._partitions[topic_id] = {p.index: p for p in old}
        if entry is None:
            partitions.pop(index, None)
        else:
            partitions[index] = values.decode_partition(
                key, topic_id, index, entry.value, entry.mod_revision
            )

    def _take_topic(self, key: str, name: str, entry: Entry | None) -> None:
        if entry is None:
            old = self._image.topics.get(name)
            if old is not None:
                self._topics[old.id] = self._topic(old.id)._replace(name="", mod_revision=0)
            return
        value = values.decode_topic(key, entry.value)
        self._topics[value.topic_id] = self._topic(value.topic_id)._replace(
            name=name, mod_revision=entry.mod_revision, extra=value.extra
        )

    def _take_configs(self, key: str, rest: str, entry: Entry | None) -> None:
        kind, _, name = rest.partition("/")
        configs = values.decode_configs(key, entry.value) if entry else values.Configs(NO_CONFIGS)
        if kind == "topic":
            topic_id = bytes.fromhex(name)
            self._topics[topic_id] = self._topic(topic_id)._replace(
                configs=configs.values,
                configs_revision=entry.mod_revision if entry else 0,
                configs_extra=configs.extra,
            )
        elif owner := values.config_owner(kind, name):
            self._configs[owner] = (
                ConfigSet(configs.values, entry.mod_revision, configs.extra) if entry else None
            )

    def _take_quota(self, key: str, rest: str, entry: Entry | None) -> None:
        self._quotas[parse_entity(rest)] = (
            values.decode_quota(key, entry.value, entry.mod_revision) if entry else None
        )

    def _take_broker(self, family: str, key: str, broker_id: int, entry: Entry | None) -> None:
        broker = self._brokers.get(broker_id) or self._image.brokers.get(broker_id)
        broker = broker or Broker(broker_id)
        match family:
            case "epoch" if entry:
                value = values.decode_broker_epoch(key, entry.value)
                broker = broker._replace(
                    epoch=entry.mod_revision,
                    incarnation=value.incarnation,
                    boot_id=value.boot_id,
                    lossless_since=value.lossless_since,
                )
            case "reg" if entry:
                registration = values.decode_registration(key, entry.value)
                broker = broker._replace(listeners=registration.listeners, rack=registration.rack)
            case "epoch":  # unregistered: the next life of this id is a first one
                broker = broker._replace(epoch=0, incarnation="", boot_id="", lossless_since=0)
            case "reg":
                broker = broker._replace(listeners=(), rack=None)
            case "live":
                broker = broker._replace(
                    live_epoch=values.decode_epoch(entry.value) if entry else 0
                )
            case "ready":
                ready = values.decode_epoch(entry.value) if entry else 0
                broker = broker._replace(ready_epoch=ready)
        self._brokers[broker_id] = broker

    def _take_single(self, family: str, entry: Entry | None) -> None:
        match family:
            case values.CLUSTER:
                self._singles["cluster"] = values.decode_cluster(entry.value) if entry else None
            case values.CONTROLLER:
                term = None
                if entry:
                    holder = values.decode_controller(entry.value)
                    term = ControllerTerm(*holder[:2], entry.create_revision)
                self._singles["controller"] = term
            case values.FEATURES:
                features = values.decode_features(entry.value) if entry else values.Features({})
                self._singles["features"] = features.levels
                self._singles["features_extra"] = features.extra
                self._singles["features_epoch"] = entry.mod_revision if entry else 0
            case values.PRODUCER_IDS:
                self._singles["producer_ids"] = (
                    values.decode_producer_ids(entry.value) if entry else None
                )
                self._singles["producer_ids_revision"] = entry.mod_revision if entry else 0

    def _topic(self, topic_id: TopicId) -> Topic:
        return (
            self._topics.get(topic_id)
            or self._image.topics_by_id.get(topic_id)
            or self._image.unnamed.get(topic_id)
            or Topic(topic_id)
        )

    def finish(self, revision: int) -> Image:
        changed: dict[str, object] = {**self._singles, "revision": revision}
        if self._brokers:
            known = {**self._image.brokers, **self._brokers}
            changed["brokers"] = {key: b for key, b in known.items() if b != Broker(key)}
        if self._configs:
            merged = {**self._image.configs, **self._configs}
            changed["configs"] = {k: v for k, v in merged.items() if v is not None}
        if self._quotas:
            quotas = {**self._image.client_quotas, **self._quotas}
            changed["client_quotas"] = {k: v for k, v in quotas.items() if v is not None}
        if self._topics or self._partitions:
            self._finish_topics(changed)
        # Not `dataclasses.replace`: it is three times as slow, and this runs on every change.
        image = self._image
        return Image(*[changed.get(name, getattr(image, name)) for name in Image.__slots__])  # type: ignore[arg-type]  # the names are the fields'

    def _finish_topics(self, changed: dict[str, object]) -> None:
        topics, by_id = dict(self._image.topics), dict(self._image.topics_by_id)
        unnamed = dict(self._image.unnamed)
        affected = list(dict.fromkeys([*self._topics, *self._partitions]))
        for topic_id in affected:
            old = by_id.pop(topic_id, None)
            if old is not None and topics[old.name].id == topic_id:
                del topics[old.name]
            unnamed.pop(topic_id, None)
        for topic_id in affected:
            topic = self._topic(topic_id)
            if topic_id in self._partitions:
                held = self._partitions[topic_id]
                topic = topic._replace(partitions=tuple([held[index] for index in sorted(held)]))
            if topic.name:
                assert _is_whole(topic), f"{topic.name} has gaps between its partitions"
                topics[topic.name] = by_id[topic_id] = topic
            elif topic.partitions or topic.configs_revision:
                unnamed[topic_id] = topic
        changed.update(topics=topics, topics_by_id=by_id, unnamed=unnamed)


def _is_whole(topic: Topic) -> bool:
    return all(partition.index == n for n, partition in enumerate(topic.partitions))
