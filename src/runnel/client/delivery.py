"""What becomes of one sent message.

A producer may have a hundred thousand of these, so each is a few slots, is itself the callback that
librdkafka calls, and waiting for one makes no lock: whoever waits drives the producer. Nothing that
a delivery keeps leads back to it for long, so a wheel has it compiled without garbage collection
(`tools/client_types.py`): an exception is made when somebody asks, because one that was raised
keeps the frames it went through.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Protocol

from runnel.client.failures import ClientError, DeliveryError, explained
from runnel.client.librdkafka import LOG
from runnel.client.offsets import UNKNOWN_OFFSET

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka import Message as RawMessage


class Sender(Protocol):
    """The producer, as a delivery sees it."""

    end: "KafkaError | None"  # what has ended this producer, and everything on its way

    def wait_for(self, delivery: "Delivery", timeout_s: float | None) -> None:
        """Return when it is done; raise ClientTimeoutError if it is not in time."""

    def arrival_of(self, delivery: "Delivery") -> Coroutine[Any, Any, None]:
        """The same, for asyncio."""

    def failed(self, error: ClientError) -> int:
        """A message was not delivered; the number of this failure."""

    def failure_seen(self, number: int) -> None:
        """Somebody has been told of this failure."""


class Delivery:
    """Made by `send`. Reading `offset` or `partition` waits for the broker's answer.

        delivery = producer.send("orders", "3 apples")
        print(delivery.partition, delivery.offset)

    With asyncio it is awaited: `(await delivery).offset`. What failed raises DeliveryError, here
    or, if nobody looks, from the producer's `flush`.
    """

    __slots__ = ("_error", "_failure", "_listeners", "_offset", "_partition", "_sender", "topic")

    def __init__(self, sender: Sender, topic: str) -> None:
        self._sender = sender
        self.topic = topic
        self._offset: int | None = None  # None until it is settled
        self._partition = -1
        self._error: KafkaError | None = None
        self._failure = 0  # its number, if it failed
        self._listeners: list[Callable[[Delivery], None]] | None = None

    def __call__(self, error: "KafkaError | None", message: "RawMessage") -> None:
        """librdkafka calls this once, from within a call of the producer."""
        if error is None:
            self._partition = message.partition()  # type: ignore[assignment]  # it was sent
            offset = message.offset()
            self._offset = UNKNOWN_OFFSET if offset is None or offset < 0 else offset
        else:
            self._fail(error)
        if self._listeners is not None:
            listeners, self._listeners = self._listeners, None
            for listener in listeners:
                self._tell(listener)

    def _tell(self, listener: "Callable[[Delivery], None]") -> None:
        """What it raises is for the log: it would come out of whichever call of the producer is
        polling, and keep the other listeners, and `close`, from what they have to do.
        """
        try:
            listener(self)
        except Exception:  # noqa: BLE001  # whatever a listener raises
            LOG.exception("on_delivery of a message for %s failed", self.topic)

    def _fail(self, error: "KafkaError") -> None:
        self._error = self._sender.end or error
        self._offset = UNKNOWN_OFFSET
        self._failure = self._sender.failed(self._explained(self._error))

    def _explained(self, error: "KafkaError") -> ClientError:
        return explained(error, f"a message for {self.topic} was not delivered", DeliveryError)

    def call_when_done(self, listener: "Callable[[Delivery], None]") -> None:
        """In the thread that drives the producer; at once if it is done."""
        if self._offset is not None:
            self._tell(listener)
        elif self._listeners is None:
            self._listeners = [listener]
        else:
            self._listeners.append(listener)

    def forget(self, listener: "Callable[[Delivery], None]") -> None:
        """Not to call it after all."""
        if self._listeners is not None and listener in self._listeners:
            self._listeners.remove(listener)

    @property
    def is_settled(self) -> bool:
        """Whether librdkafka has said what became of it. Asks nobody."""
        return self._offset is not None

    @property
    def done(self) -> bool:
        """Whether it was delivered or has failed. Does not wait."""
        if self._offset is None:
            try:
                self._sender.wait_for(self, 0.0)
            except TimeoutError:
                return False
        return True

    @property
    def error(self) -> ClientError | None:
        """Why it was not delivered, once that is known. Does not wait."""
        if self._error is None:
            return None
        self._sender.failure_seen(self._failure)
        return self._explained(self._error)

    def result(self, timeout_s: float | None = None) -> "Delivery":
        """This delivery, when the broker has acknowledged it.

        Raises DeliveryError if it failed, ClientTimeoutError if nothing is known after `timeout_s`;
        without one, the producer's `delivery_timeout_ms` ends the wait.
        """
        if self._offset is None:
            self._sender.wait_for(self, timeout_s)
        self._raise_if_failed()
        return self

    def __await__(self) -> Generator[Any, Any, "Delivery"]:
        if self._offset is None:
            yield from self._sender.arrival_of(self).__await__()
        self._raise_if_failed()
        return self

    def _raise_if_failed(self) -> None:
        if (error := self.error) is not None:
            raise error

    @property
    def partition(self) -> int:
        self.result()
        return self._partition

    @property
    def offset(self) -> int:
        """Where the message is; -1 with acks=0, where nobody says."""
        self.result()
        assert self._offset is not None, "a result has an offset"
        return self._offset

    def __repr__(self) -> str:
        if self._offset is None:
            return f"<Delivery to {self.topic}: on its way>"
        if self._error is not None:
            return f"<Delivery to {self.topic}: failed: {self._error.str()}>"
        return f"<Delivery to {self.topic}-{self._partition}: offset {self._offset}>"
