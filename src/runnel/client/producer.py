"""The blocking producer."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from runnel.client.delivery import Delivery
from runnel.client.failures import ClientTimeoutError, QueueFullError
from runnel.client.librdkafka import WAIT_SLICE_S
from runnel.client.message import Headers, Message
from runnel.client.outbox import Outbox
from runnel.client.transacting import Transactions

if TYPE_CHECKING:
    from runnel.client.consumer import Consumer
    from runnel.client.offsets import Offsets

POLL_MIN_S, POLL_MAX_S = 0.001, 0.05  # between looks at a blocking producer from asyncio


class Producer(Outbox):
    """Sends messages; may be used by several threads.

        with Producer(ProducerConfig("localhost:9092")) as producer:
            producer.send("orders", "3 apples", key="alice")

    Messages go out in batches, in the background, and each keeps its order within its partition.
    The end of the block waits for all of them and raises DeliveryError if one could not be
    delivered.
    """

    _transactions: Transactions | None = None

    def start(self) -> Self:
        """Wait for a first answer of a broker; `with` does it. Raises BrokerUnavailableError.

        With a `transactional_id` it also ends what an earlier producer of that id left open.
        """
        self._reach()
        if self.config.transactional_id is not None and self._transactions is None:
            transactions = Transactions(self)
            transactions.initialise()
            self._transactions = transactions
        return self

    def send(
        self,
        topic: str,
        value: Any = None,  # noqa: ANN401  # bytes, text, None or what the serializer takes
        key: Any = None,  # noqa: ANN401  # bytes, text, None or what the serializer takes
        headers: Headers | None = None,
        timestamp: int | datetime | None = None,
        partition: int | None = None,
        *,
        on_delivery: Callable[[Delivery], None] | None = None,
    ) -> Delivery:
        """Queue one message; returns at once unless the queue is full.

        `timestamp` is a moment or milliseconds since 1970, by default now. Without a `partition`
        the key decides. `on_delivery` is called by a later call of this producer, with the
        delivery; what it raises is logged. Raises QueueFullError if the queue stays full for
        `max_block_ms`.
        """
        delivery = Delivery(self, topic)
        if on_delivery is not None:
            delivery.call_when_done(on_delivery)
        try:
            self._put(topic, value, key, headers, timestamp, partition, delivery)
        except BufferError:
            self._put_when_there_is_room(topic, value, key, headers, timestamp, partition, delivery)
        return delivery

    def _put_when_there_is_room(self, *arguments: Any) -> None:  # noqa: ANN401  # of `_put`
        deadline = time.monotonic() + self.config.max_block_ms / 1000
        while True:
            self.serve(min(WAIT_SLICE_S, max(deadline - time.monotonic(), 0)))
            try:
                return self._put(*arguments)
            except BufferError:
                if time.monotonic() >= deadline:
                    raise queue_full(self) from None

    def send_message(self, message: Message) -> Delivery:
        """Send a message as it is: topic, key, value, headers and, if it has them, the others.

        librdkafka cannot send a timestamp of 0, the first moment of 1970: such a message gets now.
        """
        return self.send(
            message.topic,
            message.value,
            message.key,
            message.raw_headers or None,
            message.timestamp if message.timestamp > 0 else None,
            message.partition if message.partition >= 0 else None,
        )

    def send_batch(
        self, topic: str, values: Iterable[Any], *, timeout_s: float | None = None
    ) -> list[int]:
        """Send many values, or messages for that topic, and wait: their offsets, in order.

        Raises the first DeliveryError, when all others have been waited for.
        """
        deliveries = [
            self.send_message(value.with_topic(topic))
            if isinstance(value, Message)
            else self.send(topic, value)
            for value in values
        ]
        self._drain(timeout_s)
        return [delivery.result(0).offset for delivery in deliveries]

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until everything was delivered.

        Raises DeliveryError if something failed that nobody has asked about, ClientTimeoutError if
        messages are left after `timeout_s`, by default `delivery_timeout_ms`.
        """
        self._drain(timeout_s)
        self._raise_unseen_failures()

    def _drain(self, timeout_s: float | None) -> None:
        timeout_s = self._delivery_timeout_s() if timeout_s is None else timeout_s
        deadline = time.monotonic() + timeout_s
        while left := self.flushed(min(WAIT_SLICE_S, max(deadline - time.monotonic(), 0))):
            if time.monotonic() >= deadline:
                raise ClientTimeoutError(
                    f"{left} messages are still on their way after {timeout_s:g} s"
                )

    def _delivery_timeout_s(self) -> float:
        """librdkafka settles everything by then; a second more, so that it says why."""
        return self.config.delivery_timeout_ms / 1000 + 1

    def close(self, timeout_s: float | None = None) -> None:
        """Flush, and give up what cannot be delivered in time. Closing twice is allowed."""
        self._is_closed = True
        if self._raw is None:
            return
        try:
            if self._transactions is not None:
                self._transactions.abort_if_open()
            self.flush(timeout_s)
        finally:
            raw, self._raw = self._raw, None
            if len(raw):
                raw.purge()
                raw.flush(1.0)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Waiting for one delivery

    def wait_for(self, delivery: Delivery, timeout_s: float | None) -> None:
        timeout_s = self._delivery_timeout_s() if timeout_s is None else timeout_s
        deadline = time.monotonic() + timeout_s
        while self._raw is not None:
            self.serve(min(WAIT_SLICE_S, max(deadline - time.monotonic(), 0)))
            if delivery.is_settled:
                return
            if time.monotonic() >= deadline:
                raise ClientTimeoutError(
                    f"a message for {delivery.topic} was not acknowledged within {timeout_s:g} s"
                )
        raise ClientTimeoutError("the producer was closed before the message was acknowledged")

    async def arrival_of(self, delivery: Delivery) -> None:
        wait_s = POLL_MIN_S
        while not delivery.done:
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 1.5, POLL_MAX_S)

    # Transactions

    @contextmanager
    def transaction(self, consumer: "Consumer | None" = None) -> Iterator[Self]:
        """All that is sent in this block appears at once, or not at all if the block raises.

        With a `consumer`, what it handed out before and in the block counts as read exactly if the
        transaction is committed; if not, it reads that again:

            with producer.transaction(consumer):
                for message in consumer.poll():
                    producer.send("out", work(message))
        """
        transactions = self._begun()
        try:
            yield self
            if consumer is not None:
                transactions.send_offsets(consumer)
            transactions.commit()
        except BaseException:
            transactions.abort_if_open()
            if consumer is not None:
                consumer.seek_to_committed()
            raise
        if consumer is not None:
            consumer.offsets_were_committed()

    def _begun(self) -> Transactions:
        self.begin_transaction()
        assert self._transactions is not None, "begun by it"
        return self._transactions

    def begin_transaction(self) -> None:
        """For those who do not want `transaction()`."""
        if self._transactions is None:
            self.start()
        Transactions.of(self._transactions).begin()

    def send_offsets(self, consumer: "Consumer", offsets: "Offsets | None" = None) -> None:
        """Commit with the transaction what the consumer handed out, or the given offsets."""
        Transactions.of(self._transactions).send_offsets(consumer, offsets)

    def commit_transaction(self) -> None:
        """Raises TransactionError if it had to be aborted: nothing of it is visible."""
        Transactions.of(self._transactions).commit()

    def abort_transaction(self) -> None:
        """Nothing of it becomes visible."""
        Transactions.of(self._transactions).abort()


def queue_full(outbox: Outbox) -> QueueFullError:
    config = outbox.config
    return QueueFullError(
        f"{outbox.queued} messages are waiting to be delivered, and none was within "
        f"{config.max_block_ms} ms; send more slowly, raise queue_messages "
        f"({config.queue_messages}) or queue_bytes ({config.queue_bytes}), or see whether the "
        "broker runs",
        retriable=True,
    )
