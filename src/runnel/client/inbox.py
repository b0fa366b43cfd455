"""Reading from librdkafka: what both consumers, blocking and asyncio, are made of.

librdkafka fetches ahead in threads of its own, up to `queue_bytes`; here its queue is emptied, by
the batch. What it reports instead of messages is either raised, if it will not go away by itself,
or logged and waited for.
"""

import time
from typing import TYPE_CHECKING

from runnel.client.assigning import Assigning
from runnel.client.configuration import ConsumerConfig
from runnel.client.dependency import confluent_kafka
from runnel.client.failures import ClientError, ConfigurationError, ConsumeError, explained
from runnel.client.librdkafka import LOG, WAIT_SLICE_S
from runnel.client.message import Deserializers, Message, received

if TYPE_CHECKING:
    from confluent_kafka import Message as RawMessage

    from runnel.client.offsets import Partition

_PARTITION_EOF = confluent_kafka.KafkaError._PARTITION_EOF
_NO_OFFSET = confluent_kafka.KafkaError._AUTO_OFFSET_RESET
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


class Inbox(Assigning):
    """Not for use by itself: see `Consumer`."""

    def __init__(self, config: ConsumerConfig | None = None) -> None:
        super().__init__(config)
        given = Deserializers(self.config.key_deserializer, self.config.value_deserializer)
        self._deserializers = None if given == (None, None) else given

    @property
    def is_drained(self) -> bool:
        """Whether all that was fetched was handed out."""
        return self._handout.is_empty

    @property
    def has_begun(self) -> bool:
        """Whether a partition was assigned and a first answer came: a message, or the end."""
        return self._assignment.has_begun

    def put(self, batch: list[Message]) -> None:
        """What `fetch` gave, to be handed out."""
        self._handout.put(batch)

    def all_is_handled(self) -> None:
        """Nothing that was handed out is in hand any more."""
        self._handout.all_is_handled()

    def fetch(self, limit: int, timeout_s: float) -> list[Message]:
        """At least one message, unless none comes in time; then what is there, up to `limit`."""
        self._raise_due()
        if not self._is_subscribed:
            raise ConfigurationError("nothing is subscribed: call subscribe(topics) first")
        raw = self.raw
        if self._assignment.waiting:
            self._hand_over()
        messages = self._messages(raw.consume(limit, 0))
        deadline = time.monotonic() + timeout_s
        while not messages and (left_s := deadline - time.monotonic()) > 0:
            if first := raw.consume(1, min(WAIT_SLICE_S, left_s)):
                try:
                    more = raw.consume(max(limit - 1, 1), 0)
                except BaseException:  # Ctrl-C, or a callback among the settings
                    self.put(self._messages([*filter(self._is_ours, first)]))
                    raise
                messages = self._messages([*filter(self._is_ours, first), *more])
            else:
                self._raise_due()
        return messages

    def _raise_due(self) -> None:
        """What a listener raised, or what is final, when all messages before were handed out."""
        self._raise_kept()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _is_ours(self, raw: "RawMessage") -> bool:
        """Not what came before its partition was taken away: another member reads it."""
        return raw.error() is not None or _partition_of(raw) in self._assignment.partitions

    def _messages(self, batch: "list[RawMessage]") -> list[Message]:
        messages = received(batch, self._deserializers)
        if self._assignment.beginning and (due := self._due(batch, messages)):
            batch = self._sought(batch, due)
            messages = received(batch, self._deserializers)
        if messages is None:
            self._judge(batch)
            good = [raw for raw in batch if raw.error() is None]
            messages = received(good, self._deserializers) or []
        if not messages:
            self._raise_due()
        return messages

    def _due(
        self, batch: "list[RawMessage]", messages: list[Message] | None
    ) -> "dict[Partition, int]":
        """The seeks that were put off until now; a reader's first batches all pass here."""
        if messages is not None:
            return self._assignment.begin(self._handout.positions_after(messages))
        return self._assignment.begin(_partition_of(raw) for raw in batch if _is_answer(raw))

    def _sought(self, batch: "list[RawMessage]", due: "dict[Partition, int]") -> "list[RawMessage]":
        """Seek; what came from elsewhere is not handed out."""
        self._assignment.halted.update(_partition_of(raw) for raw in batch if _is_halt(raw))
        try:
            self._seek(due)
        except ClientError as failure:  # the other messages are not lost by it
            self._failure = self._failure or failure
        return [raw for raw in batch if not (_is_answer(raw) and _partition_of(raw) in due)]

    def _judge(self, batch: "list[RawMessage]") -> None:
        for raw in batch:
            if (error := raw.error()) is None:
                continue
            if error.code() == _PARTITION_EOF:
                self._assignment.ends[_partition_of(raw)] = raw.offset()  # type: ignore[assignment]  # it has one
                continue
            if _is_halt(raw):
                self._assignment.halted.add(_partition_of(raw))
            what = f"{raw.topic()} cannot be read" if raw.topic() else "nothing can be read"
            failure = explained(error, what, ConsumeError)
            if error.name() in _FINAL or error.fatal():
                self._failure = self._failure or failure
            else:
                LOG.warning("%s; waiting", failure)


def _partition_of(raw: "RawMessage") -> "Partition":
    return raw.topic(), raw.partition()  # type: ignore[return-value]  # it has both


def _is_answer(raw: "RawMessage") -> bool:
    """Whether librdkafka knew where to read: a message, an end, or that there was no offset."""
    error = raw.error()
    return error is None or error.code() in (_PARTITION_EOF, _NO_OFFSET)


def _is_halt(raw: "RawMessage") -> bool:
    """Whether librdkafka has given the partition up, for want of an offset."""
    error = raw.error()
    return error is not None and error.code() == _NO_OFFSET
