"""A message: one that was read, or one that is to be sent.

What was read stays in librdkafka's object until it is asked for, so that a reader pays for what it
looks at. The `id` of a message is where it is, `topic-partition-offset`: there is exactly one such
message in a cluster, every reader sees the same, and no producer has to add anything. A message
that was not read has none: partition and offset are -1 and its id is empty.

Everything that is ever read passes here one by one, so a wheel has this file compiled; what only
the compiler has to know is added by `tools/client_types.py` (docs/adr/0039).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runnel.client.dependency import confluent_kafka
from runnel.client.failures import SerializationError
from runnel.client.offsets import UNKNOWN_OFFSET, Partition, TopicPartition
from runnel.client.serializers import JsonSerializer, Serializer, from_bytes

if TYPE_CHECKING:
    from confluent_kafka import Message as RawMessage

RawHeaders = list[tuple[str, bytes | None]]
Headers = Mapping[str, str | bytes | None] | Iterable[tuple[str, str | bytes | None]]
NO_TIMESTAMP: Final = -1
_ITEMS: Final = (
    "id",
    "topic",
    "partition",
    "offset",
    "key",
    "value",
    "headers",
    "timestamp",
)
_UNREAD: Final = object()  # no deserializer has seen it yet
_error_of: Any = confluent_kafka.Message.error
_topic_of: Any = confluent_kafka.Message.topic
_partition_of: Any = confluent_kafka.Message.partition
_offset_of: Any = confluent_kafka.Message.offset
_key_of: Any = confluent_kafka.Message.key
_value_of: Any = confluent_kafka.Message.value


class _Made(NamedTuple):
    """Where a message goes that was not read, or came from before it was changed."""

    topic: str
    partition: int
    offset: int
    headers: RawHeaders
    timestamp: int


class Message:
    """One message. Its fields are attributes and items: `message.key` is `message["key"]`.

        message = Message("orders", value="3 apples").with_key("alice").with_header("tenant", "a")
        producer.send_message(message)

    A message is not changed by anyone: `with_key` and its like give another one. `key` and `value`
    are what the consumer's deserializers made of them, otherwise bytes; one that cannot be
    deserialized raises SerializationError here, when it is looked at, and not from `poll`.
    """

    __slots__ = ("_deserializers", "_key", "_raw", "_value")

    def __init__(
        self,
        topic: str,
        value: Any = None,  # noqa: ANN401  # what the serializer takes
        key: Any = None,  # noqa: ANN401  # what the serializer takes
        headers: Headers | None = None,
        *,
        timestamp: int = NO_TIMESTAMP,
        partition: int = -1,
        offset: int = UNKNOWN_OFFSET,
    ) -> None:
        self._raw: Any = _Made(topic, partition, offset, raw_headers(headers), timestamp)
        self._deserializers: Deserializers | None = None
        self._key: Any = key
        self._value: Any = value

    @property
    def id(self) -> str:
        """`topic-partition-offset`, or empty for a message that was not read."""
        if self.offset < 0:
            return ""
        return f"{self.topic}-{self.partition}-{self.offset}"

    @property
    def topic(self) -> str:
        return self._raw.topic  # type: ignore[no-any-return]  # of a _Made

    @property
    def partition(self) -> int:
        return self._raw.partition  # type: ignore[no-any-return]  # of a _Made

    @property
    def offset(self) -> int:
        return self._raw.offset  # type: ignore[no-any-return]  # of a _Made

    @property
    def next_offset(self) -> int:
        """What to commit once this message is handled: see `runnel.client.offsets`."""
        return self.offset + 1

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def key(self) -> Any:  # noqa: ANN401  # what the deserializer gives, otherwise bytes
        return self._key

    @property
    def value(self) -> Any:  # noqa: ANN401  # what the deserializer gives, otherwise bytes
        return self._value

    @property
    def raw_key(self) -> bytes | None:
        """Before any deserializer; of a message that is to be sent, only if it is bytes or text."""
        return _raw(self._key)

    @property
    def raw_value(self) -> bytes | None:
        """Before any deserializer; of a message that is to be sent, only if it is bytes or text."""
        return _raw(self._value)

    @property
    def raw_headers(self) -> RawHeaders:
        """All headers in their order, repeated ones too."""
        return raw_headers(self._raw.headers)

    @property
    def headers(self) -> dict[str, bytes | None]:
        """By name; of a repeated one the last."""
        return dict(self.raw_headers)

    def header(self, name: str, default: str | None = None) -> str | None:
        """The last header of this name, as text."""
        value = self.headers.get(name)
        return default if value is None else value.decode(errors="replace")

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970, or -1."""
        return self._raw.timestamp  # type: ignore[no-any-return]  # of a _Made

    @property
    def time(self) -> datetime | None:
        """The timestamp as a moment in UTC; None if there is none.

        Raises SerializationError for one after the year 9999, which a datetime cannot hold.
        """
        timestamp = self.timestamp
        if timestamp < 0:
            return None
        try:
            return datetime.fromtimestamp(timestamp / 1000, UTC)
        except (ValueError, OverflowError, OSError) as error:
            raise SerializationError(
                f"the timestamp {timestamp} of {self.id or self.topic} is no datetime: {error}"
            ) from None

    @property
    def text(self) -> str:
        """The value as text, whatever the deserializer; empty if there is none."""
        try:
            return (self.raw_value or b"").decode()
        except UnicodeDecodeError as error:
            raise SerializationError(f"the value of {self.id} is no text: {error}") from None

    def json(self) -> Any:  # noqa: ANN401  # any JSON
        """The value as JSON, whatever the deserializer."""
        return from_bytes(JsonSerializer(), self.raw_value or b"", f"the value of {self.id}")

    # As a mapping

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  # by name
        if name not in _ITEMS:
            raise KeyError(f"a message has no {name!r}; it has {', '.join(_ITEMS)}")
        return getattr(self, name)

    def keys(self) -> tuple[str, ...]:
        """So that `dict(message)` works."""
        return _ITEMS

    # Others like it

    def with_key(self, key: Any) -> "Message":  # noqa: ANN401  # what the serializer takes
        return self._copy(key=key)

    def with_value(self, value: Any) -> "Message":  # noqa: ANN401  # what the serializer takes
        return self._copy(value=value)

    def with_header(self, name: str, value: str | bytes | None) -> "Message":
        """With this header instead of all others of that name."""
        others = [pair for pair in self.raw_headers if pair[0] != name]
        return self._copy(headers=[*others, (name, value)])

    def with_headers(self, headers: Headers) -> "Message":
        """With these headers instead of all that it has."""
        return self._copy(headers=headers)

    def with_topic(self, topic: str) -> "Message":
        """For another topic: partition and offset are unknown there."""
        return self._copy(topic=topic, partition=-1, offset=UNKNOWN_OFFSET)

    def _copy(self, **changes: Any) -> "Message":  # noqa: ANN401  # arguments of the constructor
        mine: dict[str, Any] = {
            "topic": self.topic,
            "headers": self.raw_headers,
            "timestamp": self.timestamp,
            "partition": self.partition,
            "offset": self.offset,
        }
        for name in ("key", "value"):
            if name not in changes:
                mine[name] = getattr(self, name)
        return Message(**{**mine, **changes})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return self._compared() == other._compared()

    def _compared(self) -> tuple[object, ...]:
        place = (self.topic, self.partition, self.offset, self.timestamp)
        return (*place, self.key, self.value, self.raw_headers)

    def __hash__(self) -> int:
        return hash((self.topic, self.partition, self.offset))

    def __repr__(self) -> str:
        place = self.id or self.topic
        return f"<Message {place} key={_short(self.raw_key)} value={_short(self.raw_value)}>"


class Deserializers(NamedTuple):
    """Of one consumer."""

    key: Serializer | None
    value: Serializer | None


class ReceivedMessage(Message):
    """A message as a consumer hands it out: librdkafka's object, read when it is asked."""

    __slots__ = ()

    def __init__(self, raw: Any, deserializers: Deserializers | None) -> None:  # noqa: ANN401  # as of Message
        self._raw = raw
        self._deserializers = deserializers
        self._key = self._value = _UNREAD

    @property
    def topic(self) -> str:
        return _topic_of(self._raw)  # type: ignore[no-any-return]  # it has one

    @property
    def partition(self) -> int:
        return _partition_of(self._raw)  # type: ignore[no-any-return]  # it has one

    @property
    def offset(self) -> int:
        return _offset_of(self._raw)  # type: ignore[no-any-return]  # it has one

    @property
    def timestamp(self) -> int:
        kind, timestamp = self._raw.timestamp()
        return timestamp if kind else NO_TIMESTAMP

    @property
    def key(self) -> Any:  # noqa: ANN401  # as of Message
        if self._deserializers is None:
            return _key_of(self._raw)
        if self._key is _UNREAD:
            self._key = self._deserialized(_key_of(self._raw), self._deserializers.key, "key")
        return self._key

    @property
    def value(self) -> Any:  # noqa: ANN401  # as of Message
        if self._deserializers is None:
            return _value_of(self._raw)
        if self._value is _UNREAD:
            value = _value_of(self._raw)
            self._value = self._deserialized(value, self._deserializers.value, "value")
        return self._value

    def _deserialized(
        self, data: bytes | None, deserializer: Serializer | None, what: str
    ) -> object:
        if data is None or deserializer is None:
            return data
        return from_bytes(deserializer, data, f"the {what} of {self.id}")

    @property
    def raw_key(self) -> bytes | None:
        return _key_of(self._raw)  # type: ignore[no-any-return]  # bytes or none

    @property
    def raw_value(self) -> bytes | None:
        return _value_of(self._raw)  # type: ignore[no-any-return]  # bytes or none

    @property
    def raw_headers(self) -> RawHeaders:
        return raw_headers(self._raw.headers())


def received(
    batch: "list[RawMessage]", deserializers: Deserializers | None
) -> list[Message] | None:
    """What a consumer hands out of a batch; None if there is an error among it."""
    messages: list[Message] = []
    for raw in batch:
        if _error_of(raw) is not None:
            return None
        message = ReceivedMessage.__new__(ReceivedMessage)
        message._raw = raw
        message._deserializers = deserializers
        if deserializers is not None:
            message._key = message._value = _UNREAD
        messages.append(message)
    return messages


def positions_after(
    messages: Sequence[Message], *, is_one_topic: bool = False
) -> dict[Partition, int]:
    """For each partition the next offset to read, once these received messages were handled.

    This is done for all that is ever read; what librdkafka hands out comes in runs of a partition,
    so only the last of a run is asked for its offset, and none for its topic if there is but one.
    """
    positions: dict[Partition, int] = {}
    topic, partition, last = "", -1, None
    for message in messages:
        raw = message._raw
        if _partition_of(raw) != partition or not (is_one_topic or _topic_of(raw) == topic):
            if last is not None:
                positions[topic, partition] = _offset_of(last) + 1
            topic, partition = _topic_of(raw), _partition_of(raw)
        last = raw
    if last is not None:
        positions[topic, partition] = _offset_of(last) + 1
    return positions


def raw_headers(headers: Headers | None) -> RawHeaders:
    """Pairs of name and bytes, as they are on the wire."""
    if not headers:
        return []
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in pairs]


def _raw(value: object) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else None


def _short(data: bytes | None, length: int = 40) -> str:
    if data is None or len(data) <= length:
        return repr(data)
    return f"{data[:length]!r}... ({len(data)} bytes)"
