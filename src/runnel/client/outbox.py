"""The queue of a producer: what both producers, blocking and asyncio, are made of.

librdkafka keeps the messages, sends them in batches from threads of its own, and remembers what
became of them until it is polled. There is no thread of ours: whoever sends or waits polls, because
a Python thread beside a busy sender would wait for the interpreter lock before every single report.
"""

from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import TYPE_CHECKING, Any

from runnel.client.configuration import ProducerConfig
from runnel.client.delivery import Delivery
from runnel.client.dependency import confluent_kafka
from runnel.client.failures import (
    ClientError,
    DeliveryError,
    SerializationError,
    error_of,
    explained,
)
from runnel.client.information import client_info
from runnel.client.librdkafka import KafkaException, opened, unavailable
from runnel.client.message import Headers, raw_headers
from runnel.client.serializers import to_bytes

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

SENDS_PER_POLL = 16  # a poll costs as much as a fifth of a send
FAILURES_KEPT = 1000


class Outbox:
    """Not for use by itself: `Producer` and `AsyncProducer` add how to wait."""

    def __init__(self, config: ProducerConfig | None = None) -> None:
        self.config = config or ProducerConfig()
        self._raw: confluent_kafka.Producer | None = None
        self._is_closed = False
        self.end: KafkaError | None = None
        self.end_is_told = False  # and that nothing of the last transaction came of it
        self._key_serializer = self.config.key_serializer
        self._value_serializer = self.config.value_serializer
        self._sends_until_poll = SENDS_PER_POLL
        self._last_trouble = ""  # what librdkafka said last about its connections
        self._failures: dict[int, ClientError] = {}  # by number; nobody has been told about these
        self._failure_count = 0  # of those, and of more that are not kept
        self._last_failure = 0

    def wait_for(self, delivery: Delivery, timeout_s: float | None) -> None:
        raise NotImplementedError

    def arrival_of(self, delivery: Delivery) -> Coroutine[Any, Any, None]:
        raise NotImplementedError

    # Life

    @property
    def raw(self) -> "confluent_kafka.Producer":
        """The producer of confluent-kafka, for what this library does not have."""
        if self._raw is None:
            self._open()
            assert self._raw is not None, "opened just now"
        return self._raw

    def _open(self) -> None:
        """Connects to nobody yet."""
        if self._is_closed:
            raise ClientError("this producer was closed; make another")
        self._raw = opened(confluent_kafka.Producer, self.config, self._on_error)

    def _reach(self) -> None:
        """Wait for a first answer of a broker, and fence older producers of the same id."""
        timeout_s = self.config.start_timeout_ms / 1000
        raw = self.raw
        try:
            cluster_id = raw.cluster_id(timeout_s)
        except KafkaException:
            cluster_id = None
        if not cluster_id:
            self.serve(0)  # what it has to say about its connections
            raise unavailable(self.config, timeout_s, self._last_trouble)

    def _on_error(self, error: "KafkaError") -> None:
        self._last_trouble = error.str()
        if error.fatal():
            self.end = error

    def serve(self, timeout_s: float) -> int:
        """Let librdkafka report what it has; how much that was.

        What it raises is the end of this producer: it fails all deliveries, and those tell why.
        """
        if self._raw is None:
            return 0
        try:
            return self._raw.poll(timeout_s)
        except KafkaException as error:
            self._on_error(error_of(error))
            return 1

    def flushed(self, timeout_s: float) -> int:
        """Let librdkafka send at once what it has; how many messages are left after that."""
        if self._raw is None:
            return 0
        try:
            return self._raw.flush(timeout_s)
        except KafkaException as error:
            self._on_error(error_of(error))
            return len(self._raw)

    def client_info(self) -> dict[str, str]:
        """Versions, and who this client is."""
        return {
            **client_info(),
            "client.id": self.config.client_id,
            "bootstrap.servers": self.config.servers,
        }

    @property
    def queued(self) -> int:
        """How many messages are on their way; at most `queue_messages`."""
        return 0 if self._raw is None else len(self._raw)

    # Sending

    def _put(
        self,
        topic: str,
        value: object,
        key: object,
        headers: Headers | None,
        timestamp: int | datetime | None,
        partition: int | None,
        delivery: Delivery,
    ) -> None:
        """Into librdkafka's queue. Raises BufferError if that is full."""
        if self._value_serializer is not None:
            value = to_bytes(self._value_serializer, value, f"a value for {topic}")
        if self._key_serializer is not None:
            key = to_bytes(self._key_serializer, key, f"a key for {topic}")
        produce: Callable[..., None] = (self._raw or self.raw).produce
        place = -1 if partition is None else partition
        try:
            if headers is None and timestamp is None:
                produce(topic, value, key, place, delivery)
            else:
                more: dict[str, object] = {}
                if headers is not None:
                    more["headers"] = raw_headers(headers)
                if timestamp is not None:
                    more["timestamp"] = _milliseconds(timestamp)
                produce(topic, value, key, place, delivery, **more)
        except KafkaException as error:
            raise explained(
                self.end or error_of(error), f"a message for {topic} was not sent", DeliveryError
            ) from None
        except TypeError as error:
            raise SerializationError(
                f"keys, values and headers are bytes, text or None, topics are text and timestamps "
                f"whole milliseconds ({error}); for other keys and values "
                "set value_serializer or key_serializer, such as JsonSerializer()"
            ) from None
        self._sends_until_poll -= 1
        if self._sends_until_poll <= 0:
            self._sends_until_poll = SENDS_PER_POLL
            self.serve(0)

    # Failures

    def failed(self, error: ClientError) -> int:
        self._failure_count += 1
        self._last_failure += 1
        if len(self._failures) < FAILURES_KEPT:
            self._failures[self._last_failure] = error
        return self._last_failure

    def failure_seen(self, number: int) -> None:
        if self._failures.pop(number, None) is not None:
            self._failure_count -= 1

    def forget_failures(self) -> None:
        """Of a transaction that was aborted: it has failed as a whole."""
        self._failures.clear()
        self._failure_count = 0

    def _raise_unseen_failures(self) -> None:
        """Nothing is lost without a word, also if nobody looks at deliveries."""
        count, failures = self._failure_count, list(self._failures.values())
        self._failure_count = 0
        self._failures.clear()
        if count and failures and not self.end_is_told:
            first = failures[0]
            noun = "message was" if count == 1 else "messages were"
            raise DeliveryError(
                f"{count} {noun} not delivered; the first: {first}",
                code=first.code,
                retriable=first.retriable,
            )


def _milliseconds(timestamp: int | datetime) -> int:
    if isinstance(timestamp, datetime):
        timestamp = int(timestamp.timestamp() * 1000)
    if timestamp == 0:  # to librdkafka it is none, and it would take its own clock's
        raise SerializationError("a timestamp of 0 cannot be sent: give 1 or more, or None for now")
    return timestamp
