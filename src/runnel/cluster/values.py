"""What the metadata store holds: the keys, the records behind them, and their JSON.

Every value carries a `version`. A reader keeps the fields that it does not know (`extra`) and
writes them back, so that an old broker never strips what a new one added. A change that old
software must not live with raises FEATURE_LEVEL instead, and old software refuses such a store.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote, unquote

from runnel.config.listeners import Listener
from runnel.errors import ErrorCode, RunnelError
from runnel.types import TopicId

VERSION: Final = 1
FEATURE_LEVEL: Final = 1
NO_LEADER: Final = -1

CLUSTER: Final = "cluster"
FEATURES: Final = "features"
CONTROLLER: Final = "controller"
PRODUCER_IDS: Final = "pid_next"
# Written by every creation and deletion of a topic. A name that is free, taken, and free again
# looks the same to a compare on the name; this key's revision does not, so a transaction that is
# applied late cannot bring a deleted topic back.
TOPICS: Final = "topics"

ConfigKind = Literal["topic", "broker", "group", "client-metrics"]
_DEFAULT: Final = "default"

Extra = Mapping[str, object]
NO_EXTRA: Final[Extra] = MappingProxyType({})

_ENCODER = json.JSONEncoder(separators=(",", ":"), sort_keys=True)


class Cluster(NamedTuple):
    cluster_id: str
    feature_level: int
    extra: Extra = NO_EXTRA


class BrokerEpoch(NamedTuple):
    """One life of a broker process; its epoch is the revision that wrote this.

    What the broker held in any epoch from `lossless_since` on, it still holds (R17). Carried from
    life to life: a clean restart does not heal an earlier one that lost the tail of a log.
    """

    incarnation: str
    boot_id: str
    lossless_since: int
    extra: Extra = NO_EXTRA


class Registration(NamedTuple):
    listeners: tuple[Listener, ...]
    rack: str | None
    extra: Extra = NO_EXTRA


class Controller(NamedTuple):
    broker_id: int
    broker_epoch: int
    extra: Extra = NO_EXTRA


class TopicName(NamedTuple):
    topic_id: TopicId
    extra: Extra = NO_EXTRA


class Member(NamedTuple):
    """A replica together with the broker epoch in which it proved itself (KIP-903)."""

    id: int
    epoch: int


class Partition(NamedTuple):
    topic_id: TopicId
    index: int  # type: ignore[assignment]  # Kafka's word, worth hiding tuple.index
    leader: int
    leader_epoch: int
    isr: tuple[Member, ...]
    elr: tuple[Member, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    min_isr: int
    last_known_leader: int
    recovering: bool
    partition_epoch: int
    mod_revision: int = 0  # of its key; every change compares it
    extra: Extra = NO_EXTRA

    @property
    def effective_min_isr(self) -> int:
        return min(self.min_isr, len(self.replicas))

    @property
    def isr_ids(self) -> list[int]:
        return [member.id for member in self.isr]

    def is_led_by(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether that life of that broker may act as leader."""
        return self.leader == broker_id and Member(broker_id, broker_epoch) in self.isr


class Configs(NamedTuple):
    values: Mapping[str, str]
    extra: Extra = NO_EXTRA


class ConfigOwner(NamedTuple):
    """Whose settings; the broker without a name is every broker's default."""

    kind: ConfigKind
    name: str


class ClientQuota(NamedTuple):
    """What one entity may use, by the name of the quota."""

    values: Mapping[str, float]
    mod_revision: int = 0  # of its key; every change compares it
    extra: Extra = NO_EXTRA


class Features(NamedTuple):
    levels: Mapping[str, int]
    extra: Extra = NO_EXTRA


class ProducerIds(NamedTuple):
    """The first producer id nobody has, and who took the block before it."""

    next_id: int
    broker_id: int
    broker_epoch: int
    extra: Extra = NO_EXTRA


def epoch_key(broker_id: int) -> str:
    return f"epoch/{broker_id}"


def registration_key(broker_id: int) -> str:
    return f"reg/{broker_id}"


def live_key(broker_id: int) -> str:
    return f"live/{broker_id}"


def ready_key(broker_id: int) -> str:
    return f"ready/{broker_id}"


def adopted_key(broker_id: int) -> str:
    return f"adopted/{broker_id}"


def topic_key(name: str) -> str:
    return f"topic/{name}"


def partition_key(topic_id: TopicId, index: int) -> str:
    return f"part/{topic_id.hex()}/{index:010}"


def topic_configs_key(topic_id: TopicId) -> str:
    return f"config/topic/{topic_id.hex()}"


def configs_key(owner: ConfigOwner) -> str:
    """For all but topics, whose settings follow their id."""
    assert owner.kind != "topic", owner
    # The names of groups and subscriptions are anybody's text, a key is ASCII without slashes.
    return f"config/{owner.kind}/{quote(owner.name, safe='') or _DEFAULT}"


def config_owner(kind: str, quoted: str) -> ConfigOwner | None:
    """None for a kind that only a newer version knows."""
    match kind:
        case "broker":
            return ConfigOwner(kind, "" if quoted == _DEFAULT else quoted)
        case "group" | "client-metrics":
            return ConfigOwner(kind, unquote(quoted))
        case _:
            return None


def encode_epoch(epoch: int) -> bytes:
    """The value of `live` and `ready`, compared whole and so never JSON."""
    return b"%d" % epoch


def decode_epoch(raw: bytes) -> int:
    return int(raw)


def encode(record: Cluster | BrokerEpoch | Registration | Controller | ProducerIds) -> bytes:
    fields = record._asdict()
    return _encode(fields.pop("extra"), fields)


def encode_topics() -> bytes:
    return _encode(NO_EXTRA, {})


def encode_topic(topic: TopicName) -> bytes:
    return _encode(topic.extra, {"topic_id": topic.topic_id.hex()})


def encode_partition(partition: Partition) -> bytes:
    # The key says the topic and the index, the store the revision.
    fields = {name: getattr(partition, name) for name in Partition._fields[2:-2]}
    return _encode(partition.extra, fields)


def encode_configs(configs: Configs | ClientQuota) -> bytes:
    return _encode(configs.extra, {"values": dict(configs.values)})


def encode_features(features: Features) -> bytes:
    return _encode(features.extra, {"levels": dict(features.levels)})


def _encode(extra: Extra, fields: dict[str, object]) -> bytes:
    version = extra.get("version", VERSION)  # a newer writer's version stays with its fields
    return _ENCODER.encode({**extra, **fields, "version": version}).encode()


class Fields:
    """A decoded value; what was not taken out of it is `extra`."""

    def __init__(self, key: str, raw: bytes) -> None:
        self._key = key
        try:
            self._fields = json.loads(raw)
        except ValueError:
            self._fields = None
        if not isinstance(self._fields, dict):
            raise self._unreadable("it is no JSON object")

    def take(self, name: str) -> Any:  # noqa: ANN401 JSON has no static type
        try:
            return self._fields.pop(name)
        except KeyError:
            raise self._unreadable(f"it has no {name}") from None

    def extra(self) -> Extra:
        # Nearly every value has nothing but our own version left: share one object for those.
        return NO_EXTRA if self._fields == {"version": VERSION} else self._fields

    def _unreadable(self, why: str) -> RunnelError:
        return RunnelError(ErrorCode.UNKNOWN_SERVER_ERROR, f"metadata key {self._key}: {why}")


def decode_cluster(raw: bytes) -> Cluster:
    """Raises RunnelError where a newer feature level is finalized than this software knows."""
    fields = Fields(CLUSTER, raw)
    cluster = Cluster(fields.take("cluster_id"), fields.take("feature_level"), fields.extra())
    if cluster.feature_level > FEATURE_LEVEL:
        raise RunnelError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"the metadata store is at feature level {cluster.feature_level}, this version of "
            f"Runnel knows levels up to {FEATURE_LEVEL}: use a newer version",
        )
    return cluster


def decode_broker_epoch(key: str, raw: bytes) -> BrokerEpoch:
    fields = Fields(key, raw)
    return BrokerEpoch(
        fields.take("incarnation"),
        fields.take("boot_id"),
        fields.take("lossless_since"),
        fields.extra(),
    )


def decode_registration(key: str, raw: bytes) -> Registration:
    fields = Fields(key, raw)
    listeners = tuple(Listener(*parts) for parts in fields.take("listeners"))
    return Registration(listeners, fields.take("rack"), fields.extra())


def decode_controller(raw: bytes) -> Controller:
    fields = Fields(CONTROLLER, raw)
    return Controller(fields.take("broker_id"), fields.take("broker_epoch"), fields.extra())


def decode_topic(key: str, raw: bytes) -> TopicName:
    fields = Fields(key, raw)
    return TopicName(bytes.fromhex(fields.take("topic_id")), fields.extra())


def decode_partition(
    key: str, topic_id: TopicId, index: int, raw: bytes, mod_revision: int
) -> Partition:
    fields = Fields(key, raw)
    take = fields.take
    return Partition(
        topic_id=topic_id,
        index=index,
        leader=take("leader"),
        leader_epoch=take("leader_epoch"),
        isr=tuple([Member(*pair) for pair in take("isr")]),
        elr=tuple([Member(*pair) for pair in take("elr")]),
        replicas=tuple(take("replicas")),
        adding=tuple(take("adding")),
        removing=tuple(take("removing")),
        min_isr=take("min_isr"),
        last_known_leader=take("last_known_leader"),
        recovering=take("recovering"),
        partition_epoch=take("partition_epoch"),
        mod_revision=mod_revision,
        extra=fields.extra(),
    )


def decode_configs(key: str, raw: bytes) -> Configs:
    fields = Fields(key, raw)
    return Configs(MappingProxyType(fields.take("values")), fields.extra())


def decode_quota(key: str, raw: bytes, mod_revision: int) -> ClientQuota:
    fields = Fields(key, raw)
    return ClientQuota(MappingProxyType(fields.take("values")), mod_revision, fields.extra())


def decode_features(raw: bytes) -> Features:
    fields = Fields(FEATURES, raw)
    return Features(MappingProxyType(fields.take("levels")), fields.extra())


def decode_producer_ids(raw: bytes) -> ProducerIds:
    fields = Fields(PRODUCER_IDS, raw)
    return ProducerIds(
        fields.take("next_id"),
        fields.take("broker_id"),
        fields.take("broker_epoch"),
        fields.extra(),
    )
