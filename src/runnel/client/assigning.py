"""Which partitions librdkafka reads, and from where: given by a group, or by hand.

It is asked for nothing that it would lose; see `assignment`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from runnel.client.assignment import Assignment
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
from runnel.client.librdkafka import KafkaException, opened, unavailable
from runnel.client.offsets import Offsets, Partition, TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

Place = confluent_kafka.TopicPartition
_ANY_TOPIC = "__consumer_offsets"  # need not be there; asked about one, a broker is connected to
METADATA_TIMEOUT_S = 10.0

Partitions = list[TopicPartition]
RebalanceListener = Callable[[Partitions], None]


class Assigning:
    """Not for use by itself: see `Consumer`."""

    def __init__(self, config: ConsumerConfig | None = None) -> None:
        self.config = config or ConsumerConfig()
        self._raw: confluent_kafka.Consumer | None = None
        self._is_closed = False
        self._handout = Handout()
        self._assignment = Assignment()
        self._is_manual = False
        self._is_subscribed = False
        self._last_trouble = ""
        self._failure: ClientError | None = None  # to be raised when the messages before are read
        self._raised: Exception | None = None  # by a listener; the same
        self._is_listener = False  # whether one is running

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

        def assigned(_: confluent_kafka.Consumer, places: list[Place]) -> None:
            self._add(_partitions(places))
            try:
                self._tell(on_assign, places)
            finally:  # after it, so that librdkafka starts where it has sought
                self._hand_over()

        def revoked(_: confluent_kafka.Consumer, places: list[Place]) -> None:
            try:
                self._tell(on_revoke, places)
            finally:  # they are another member's, whatever the listener did
                self._forget(_partitions(places))

        def lost(_: confluent_kafka.Consumer, places: list[Place]) -> None:
            self._forget(_partitions(places))
            self._tell(on_lost, places)

        self._must_not_mix(is_manual=False)
        self.raw.subscribe(list(topics), on_assign=assigned, on_revoke=revoked, on_lost=lost)

    def _tell(self, listener: RebalanceListener | None, places: list[Place]) -> None:
        """What it raises is kept for whoever reads next or closes: raised through librdkafka's
        call it would take the messages along that this call has fetched.
        """
        if listener is None:
            return
        self._is_listener = True
        try:
            listener(_partitions(places))
        except Exception as error:  # noqa: BLE001  # whatever a listener raises
            self._raised = self._raised or error
        finally:
            self._is_listener = False

    def _raise_kept(self) -> None:
        """What a listener raised, once."""
        if self._raised is not None:
            raised, self._raised = self._raised, None
            raise raised

    def _end_raw(self) -> None:
        """Leave the group and give all partitions back: `on_revoke` may still commit."""
        try:
            if self._raw is not None:
                self._raw.close()
        finally:
            self._raw = None
            self._forget(list(self._assignment.partitions))

    def _must_not_be_listener(self, what: str) -> None:
        """librdkafka cannot end while it waits for a listener to return."""
        if self._is_listener:
            raise in_listener(what)

    def assign(self, partitions: Sequence[Partition]) -> None:
        """By hand, without a group's say; more than once adds. `fetch` gives them to librdkafka."""
        self._must_not_mix(is_manual=True)
        self._add(partitions)

    def _add(self, partitions: Sequence[Partition]) -> None:
        self._assignment.add(partitions)
        self._handout.topics.update(topic for topic, _ in partitions)

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

    def _forget(self, partitions: Iterable[Partition]) -> None:
        gone = list(partitions)
        self._assignment.forget(gone)
        self._handout.drop(gone)

    # What librdkafka is told of them

    def _hand_over(self) -> None:
        """Give librdkafka the partitions that wait for it, each with where it starts."""
        starts = self._assignment.hand_over()
        places = [
            Place(*partition, self._first_offset() if start is None else start)
            for partition, start in starts.items()
        ]
        are_more = self._is_manual and len(places) < len(self._assignment.partitions)
        if places and (are_more or self._is_incremental):
            self.raw.incremental_assign(places)
        elif places:
            self.raw.assign(places)

    def _first_offset(self) -> int:
        """With a group what it has committed, otherwise what the settings say."""
        if self.config.group_id is not None:
            return confluent_kafka.OFFSET_INVALID
        if self.config.auto_offset_reset is OffsetResetPolicy.LATEST:
            return confluent_kafka.OFFSET_END
        return confluent_kafka.OFFSET_BEGINNING

    @property
    def _is_incremental(self) -> bool:
        """Whether the group's partitions come and go one by one, not all at once."""
        strategy = self.config.partition_assignment_strategy
        return not self._is_manual and (
            self.config.group_protocol == "consumer" or strategy.startswith("cooperative")
        )

    def _seek(self, places: Offsets) -> None:
        for (topic, partition), offset in places.items():
            self._handout.read[topic, partition] = offset
            if (topic, partition) in self._assignment.halted:
                self._begin_again((topic, partition), offset)
            elif not self._assignment.put_off((topic, partition), offset):
                try:
                    self.raw.seek(Place(topic, partition, offset))
                except KafkaException as exception:
                    what = f"{topic}-{partition} was not sought"
                    raise explained(error_of(exception), what) from None

    def _begin_again(self, partition: Partition, offset: int) -> None:
        """Assign a partition anew that librdkafka has given up, and will not seek therefore."""
        place = Place(*partition, offset)
        if self._is_incremental or self._is_manual:
            self.raw.incremental_unassign([Place(*partition)])
            self.raw.incremental_assign([place])
            self._assignment.begin_again([partition])
        else:
            others = self._going_on()
            self.raw.assign([*others, place])
            self._assignment.begin_again([partition, *_partitions(others)])

    def _going_on(self) -> list[Place]:
        """What librdkafka reads, each with where it has come to."""
        books, read = self._assignment, self._handout.positions()
        going = books.partitions.keys() - books.waiting.keys() - books.halted
        places = self.raw.position([Place(*partition) for partition in going])
        for place in places:
            partition = (place.topic, place.partition)
            if place.offset >= 0:
                continue
            sought = read.get(partition)  # and nothing came of it since
            if sought is None or books.put_off(partition, sought):
                sought = confluent_kafka.OFFSET_INVALID
            place.offset = sought
        return places


def in_listener(what: str) -> ClientError:
    return ClientError(f"{what} it outside of a listener: the group waits for that to return")


def _partitions(places: Sequence[Place]) -> Partitions:
    return [TopicPartition(place.topic, place.partition) for place in places]
