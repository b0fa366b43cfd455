"""Reading from librdkafka: what both consumers, blocking and asyncio, are made of.

librdkafka fetches ahead in threads of its own, up to `queue_bytes`; here its queue is emptied, by
the batch. What it reports instead of messages is either raised, if it will not go away by itself,
or logged and waited for.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from runnel.client.configuration import ConsumerConfig, OffsetResetPolicy
from runnel.client.dependency import confluent_kafka
from runnel.client.failures import (
    ClientError,
    ConfigurationError,
    ConsumeError,
    error_of,
    explained,
)
from runnel.client.handout import Handout
from runnel.client.librdkafka import LOG, WAIT_SLICE_S, KafkaException, opened, unavailable
from runnel.client.message import Deserializers, Message, received
from runnel.client.offsets import Partition, TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka import Message as RawMessage

Place = confluent_kafka.TopicPartition
_ANY_TOPIC = "__consumer_offsets"  # need not be there; asked about one, a broker is connected to
_PARTITION_EOF = confluent_kafka.KafkaError._PARTITION_EOF
METADATA_TIMEOUT_S = 10.0
# A consumer that gets one of these gets it again, until somebody changes something.
_FINAL = {
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "INCONSISTENT_GROUP_PROTOCOL",
    "UNSUPPORTED_ASSIGNOR",
    "INVALID_GROUP_ID",
    "GROUP_MAX_SIZE_REACHED",
    "FENCED_INSTANCE_ID",
    "_AUTO_OFFSET_RESET",
    "_AUTHENTICATION",
    "_FATAL",
}

Partitions = list[TopicPartition]
RebalanceListener = Callable[[Partitions], None]


class Inbox:
    """Not for use by itself: see `Consumer`."""

    def __init__(self, config: ConsumerConfig | None = None) -> None:
        self.config = config or ConsumerConfig()
        self._raw: confluent_kafka.Consumer | None = None
        self._is_closed = False
        self._handout = Handout()
        given = Deserializers(self.config.key_deserializer, self.config.value_deserializer)
        self._deserializers = None if given == (None, None) else given
        self._assigned: dict[Partition, None] = {}  # in the order in which they came
        self._start_at: dict[Partition, int] = {}  # sought before they were assigned
        self._end_seen: dict[Partition, int] = {}  # where librdkafka has come to the end
        self._halted: set[Partition] = set()  # librdkafka has no offset to go on from
        self._is_manual = False
        self._is_subscribed = False
        self._last_trouble = ""
        self._failure: ClientError | None = None  # to be raised when the messages before are read

    @property
    def raw(self) -> "confluent_kafka.Consumer":
        """The consumer of confluent-kafka, for what this library does not have."""
        if self._raw is None:
            self._raw = self._opened()
        return self._raw

    def _opened(self) -> "confluent_kafka.Consumer":
        if self._is_closed:
            raise ClientError("this consumer was closed; make another")
        return opened(confluent_kafka.Consumer, self.config, self._on_error)

    def reach(self) -> None:
        """Wait for a first answer of a broker."""
        timeout_s = self.config.start_timeout_ms / 1000
        raw = self.raw
        try:
            raw.list_topics(_ANY_TOPIC, timeout=timeout_s)
        except KafkaException:
            raise unavailable(self.config, timeout_s, self._last_trouble) from None

    def _on_error(self, error: "KafkaError") -> None:
        self._last_trouble = error.str()
        if error.fatal():
            self._failure = explained(error, "the consumer cannot go on", ConsumeError)

    # Which partitions

    def subscribe_to(
        self,
        topics: Sequence[str],
        on_assign: RebalanceListener | None,
        on_revoke: RebalanceListener | None,
        on_lost: RebalanceListener | None,
    ) -> None:
        """As a member of the group."""

        def assigned(raw: confluent_kafka.Consumer, places: list[Place]) -> None:
            self._begin(raw, places)
            if on_assign is not None:
                on_assign(_partitions(places))

        def revoked(_: confluent_kafka.Consumer, places: list[Place]) -> None:
            if on_revoke is not None:
                on_revoke(_partitions(places))
            self._forget(_partitions(places))

        def lost(_: confluent_kafka.Consumer, places: list[Place]) -> None:
            self._forget(_partitions(places))
            if on_lost is not None:
                on_lost(_partitions(places))

        self._must_not_mix(is_manual=False)
        self.raw.subscribe(list(topics), on_assign=assigned, on_revoke=revoked, on_lost=lost)

    def _begin(self, raw: "confluent_kafka.Consumer", places: list[Place]) -> None:
        """Where somebody has sought before, start there; librdkafka does all others."""
        sought = False
        for place in places:
            partition = (place.topic, place.partition)
            self._assigned[partition] = None
            if partition in self._start_at:
                place.offset = self._start_at.pop(partition)
                sought = True
        if sought and self._is_incremental:
            raw.incremental_assign(places)
        elif sought:
            raw.assign(places)

    def begin_again(self, partition: Partition, offset: int) -> None:
        """Assign a partition anew that librdkafka has given up, and will not seek therefore."""
        self._halted.discard(partition)
        place = Place(*partition, offset)
        if self._is_incremental or self._is_manual:
            self.raw.incremental_unassign([Place(*partition)])
            self.raw.incremental_assign([place])
        else:
            going = self._assigned.keys() - self._halted - {partition}
            others = self.raw.position([Place(*other) for other in going])
            for other in others:
                if other.offset < 0:  # nothing came of it since it was sought
                    sought = self._handout.read.get((other.topic, other.partition))
                    other.offset = confluent_kafka.OFFSET_INVALID if sought is None else sought
            self.raw.assign([*others, place])

    @property
    def _is_incremental(self) -> bool:
        strategy = self.config.partition_assignment_strategy
        return self.config.group_protocol == "consumer" or strategy.startswith("cooperative")

    def _forget(self, partitions: Partitions) -> None:
        for partition in partitions:
            self._assigned.pop(partition, None)
            self._end_seen.pop(partition, None)
            self._halted.discard(partition)
        self._handout.drop(partitions)

    def assign(self, partitions: Sequence[Partition]) -> None:
        """By hand, without a group's say; more than once adds."""
        self._must_not_mix(is_manual=True)
        fresh = [partition for partition in partitions if partition not in self._assigned]
        places = [
            Place(topic, index, self._start_at.pop((topic, index), self._first_offset()))
            for topic, index in fresh
        ]
        if self._assigned:
            self.raw.incremental_assign(places)
        else:
            self.raw.assign(places)
        self._assigned.update(dict.fromkeys(fresh))

    def _first_offset(self) -> int:
        """With a group what it has committed, otherwise what the settings say."""
        if self.config.group_id is not None:
            return confluent_kafka.OFFSET_INVALID
        if self.config.auto_offset_reset is OffsetResetPolicy.LATEST:
            return confluent_kafka.OFFSET_END
        return confluent_kafka.OFFSET_BEGINNING

    def _must_not_mix(self, *, is_manual: bool) -> None:
        if self._is_subscribed and self._is_manual != is_manual:
            raise ConfigurationError(
                "a consumer either gets its partitions from its group or names them: "
                "call unsubscribe first"
            )
        self._is_subscribed, self._is_manual = True, is_manual

    def partitions_of(self, topics: Sequence[str]) -> list[Partition]:
        found: list[Partition] = []
        for topic in topics:
            try:
                metadata = self.raw.list_topics(topic, timeout=METADATA_TIMEOUT_S).topics[topic]
            except KafkaException as error:
                raise explained(error_of(error), f"{topic} could not be looked up") from None
            if metadata.error is not None:
                raise explained(metadata.error, f"{topic} cannot be read", ConsumeError)
            found += [(topic, index) for index in sorted(metadata.partitions)]
        return found

    # Messages

    @property
    def is_drained(self) -> bool:
        """Whether all that was fetched was handed out."""
        return self._handout.is_empty

    @property
    def has_begun(self) -> bool:
        """Whether a partition was assigned and a first answer came: a message, or the end."""
        return bool(self._end_seen or self._handout.read or not self._handout.is_empty)

    def put(self, batch: list[Message]) -> None:
        """What `fetch` gave, to be handed out."""
        self._handout.put(batch)

    def take(self, limit: int) -> list[Message]:
        """Hand out; what was handed out before counts as handled."""
        return self._handout.take(limit)

    def all_is_handled(self) -> None:
        """Nothing that was handed out is in hand any more."""
        self._handout.all_is_handled()

    def fetch(self, limit: int, timeout_s: float) -> list[Message]:
        """At least one message, unless none comes in time; then what is there, up to `limit`."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if not self._is_subscribed:
            raise ConfigurationError("nothing is subscribed: call subscribe(topics) first")
        raw = self.raw
        messages = self._messages(raw.consume(limit, 0))
        deadline = time.monotonic() + timeout_s
        while not messages and (left_s := deadline - time.monotonic()) > 0:
            if first := raw.consume(1, min(WAIT_SLICE_S, left_s)):
                more = raw.consume(max(limit - 1, 1), 0)
                messages = self._messages([*filter(self._is_ours, first), *more])
        return messages

    def _is_ours(self, raw: "RawMessage") -> bool:
        """Not what came before its partition was taken away: another member reads it."""
        return raw.error() is not None or (raw.topic(), raw.partition()) in self._assigned

    def _messages(self, batch: "list[RawMessage]") -> list[Message]:
        messages = received(batch, self._deserializers)
        if messages is None:
            self._judge(batch)
            good = [raw for raw in batch if raw.error() is None]
            messages = received(good, self._deserializers) or []
        if not messages and self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return messages

    def _judge(self, batch: "list[RawMessage]") -> None:
        for raw in batch:
            if (error := raw.error()) is None:
                continue
            if error.code() == _PARTITION_EOF:
                self._end_seen[raw.topic(), raw.partition()] = raw.offset()  # type: ignore[index, assignment]  # it has all three
                continue
            if error.name() == "_AUTO_OFFSET_RESET":
                self._halted.add((raw.topic(), raw.partition()))  # type: ignore[arg-type]  # it has both
            what = f"{raw.topic()} cannot be read" if raw.topic() else "nothing can be read"
            failure = explained(error, what, ConsumeError)
            if error.name() in _FINAL or error.fatal():
                self._failure = self._failure or failure
            else:
                LOG.warning("%s; waiting", failure)


def _partitions(places: Sequence[Place]) -> Partitions:
    return [TopicPartition(place.topic, place.partition) for place in places]
