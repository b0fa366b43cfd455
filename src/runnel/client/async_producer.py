"""The producer for asyncio.

Everything happens in the loop's own thread: sending is a call that does not block, and while
messages are on their way a timer of the loop looks for what librdkafka has to report, every
millisecond at first, more seldom while nothing comes. So there is no thread that would take the
interpreter lock from the loop, and one look settles all deliveries that have arrived. Only calls
that wait inside librdkafka, `start` and those of transactions, are made in a thread.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from runnel.client.configuration import ProducerConfig
from runnel.client.delivery import Delivery
from runnel.client.failures import ClientError, ClientTimeoutError
from runnel.client.message import Headers, Message
from runnel.client.outbox import Outbox
from runnel.client.producer import queue_full
from runnel.client.transacting import Transactions

if TYPE_CHECKING:
    from runnel.client.async_consumer import AsyncConsumer

TICK_MIN_S, TICK_MAX_S, TICK_GROWTH = 0.001, 0.05, 1.5


class AsyncProducer(Outbox):
    """Sends messages from one event loop.

        async with AsyncProducer(ProducerConfig("localhost:9092")) as producer:
            delivery = await producer.send("orders", "3 apples")  # it is in the queue
            print((await delivery).offset)  # the broker has it

    The end of the block waits for all messages and raises DeliveryError if one could not be
    delivered.
    """

    def __init__(self, config: ProducerConfig | None = None) -> None:
        super().__init__(config)
        self._transactions: Transactions | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tick_s = TICK_MIN_S
        self._in_thread = False  # a call in a thread may settle deliveries meanwhile

    async def start(self) -> Self:
        """As of `Producer`."""
        await asyncio.to_thread(self._reach)
        if self.config.transactional_id is not None and self._transactions is None:
            transactions = Transactions(self)
            await asyncio.to_thread(transactions.initialise)
            self._transactions = transactions
        return self

    # Sending

    async def send(
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
        """Queue one message; waits only while the queue is full. Await what it returns.

        Raises QueueFullError if the queue stays full for `max_block_ms`.
        """
        delivery = Delivery(self, topic)
        if on_delivery is not None:
            delivery.call_when_done(self._in_loop(on_delivery))
        try:
            self._put(topic, value, key, headers, timestamp, partition, delivery)
        except BufferError:
            await self._put_when_there_is_room(
                topic, value, key, headers, timestamp, partition, delivery
            )
        if self._timer is None:
            self._look_later(TICK_MIN_S)
        return delivery

    async def _put_when_there_is_room(self, *arguments: Any) -> None:  # noqa: ANN401  # of `_put`
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.config.max_block_ms / 1000
        while True:
            await asyncio.sleep(TICK_MIN_S)
            self.serve(0)
            try:
                return self._put(*arguments)
            except BufferError:
                if loop.time() >= deadline:
                    raise queue_full(self) from None

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,  # noqa: ANN401  # bytes, text, None or what the serializer takes
        key: Any = None,  # noqa: ANN401  # bytes, text, None or what the serializer takes
        headers: Headers | None = None,
        timestamp: int | datetime | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Send one message and wait for its acknowledgement."""
        return await (await self.send(topic, value, key, headers, timestamp, partition))

    async def send_message(self, message: Message) -> Delivery:
        """As of `Producer`: topic, key, value, headers and, if it has them, the others."""
        return await self.send(
            message.topic,
            message.value,
            message.key,
            message.raw_headers or None,
            message.timestamp if message.timestamp > 0 else None,
            message.partition if message.partition >= 0 else None,
        )

    async def send_batch(
        self, topic: str, values: Iterable[Any], *, timeout_s: float | None = None
    ) -> list[int]:
        """Send many values, or messages for that topic, and wait: their offsets, in order."""
        deliveries = [
            await self.send_message(value.with_topic(topic))
            if isinstance(value, Message)
            else await self.send(topic, value)
            for value in values
        ]
        await self._drain(timeout_s)
        return [(await delivery).offset for delivery in deliveries]

    # Reports of librdkafka

    def _look_later(self, wait_s: float) -> None:
        self._tick_s = wait_s
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._raw is None:
            return
        served = 0
        try:
            if not self._in_thread:
                served = self.serve(0)
        finally:  # or nobody would look again
            if len(self._raw):
                slower_s = min(self._tick_s * TICK_GROWTH, TICK_MAX_S)
                self._look_later(TICK_MIN_S if served else slower_s)

    def wait_for(self, delivery: Delivery, timeout_s: float | None) -> None:
        """A loop must not be blocked: only what is known already can be had without `await`."""
        if not self._in_thread:
            self.serve(0)
        if not delivery.is_settled:
            if timeout_s == 0.0:
                raise ClientTimeoutError("not acknowledged yet")
            raise ClientError("a delivery of AsyncProducer is awaited first: `await delivery`")

    async def arrival_of(self, delivery: Delivery) -> None:
        arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake(_: Delivery) -> None:
            if not arrived.done():
                arrived.set_result(None)

        listener = self._in_loop(wake)
        delivery.call_when_done(listener)
        try:
            async with asyncio.timeout(self.config.delivery_timeout_ms / 1000 + 1):
                await arrived
        except TimeoutError:
            raise ClientTimeoutError(
                f"a message for {delivery.topic} was not acknowledged within delivery_timeout_ms"
            ) from None
        finally:
            delivery.forget(listener)

    def _in_loop(self, listener: Callable[[Delivery], None]) -> Callable[[Delivery], None]:
        """To be called in the loop, also if a call in a thread settles the delivery."""
        loop = asyncio.get_running_loop()

        def told(delivery: Delivery) -> None:
            if self._in_thread:
                loop.call_soon_threadsafe(listener, delivery)
            else:
                listener(delivery)

        return told

    # The end

    async def flush(self, timeout_s: float | None = None) -> None:
        """As of `Producer`."""
        await self._drain(timeout_s)
        self._raise_unseen_failures()

    async def _drain(self, timeout_s: float | None) -> None:
        if self._raw is None:
            return
        if timeout_s is None:
            timeout_s = self.config.delivery_timeout_ms / 1000 + 1
        loop = asyncio.get_running_loop()
        deadline, wait_s = loop.time() + timeout_s, TICK_MIN_S
        while left := self.queued:
            if loop.time() >= deadline:
                raise ClientTimeoutError(
                    f"{left} messages are still on their way after {timeout_s:g} s"
                )
            served = self.flushed(0) < left
            wait_s = TICK_MIN_S if served else min(wait_s * TICK_GROWTH, TICK_MAX_S)
            await asyncio.sleep(wait_s)

    async def close(self, timeout_s: float | None = None) -> None:
        """Flush, and give up what cannot be delivered in time. Closing twice is allowed."""
        self._is_closed = True
        if self._raw is None:
            return
        try:
            if self._transactions is not None:
                await self._threaded(self._transactions.abort_if_open)
            await self.flush(timeout_s)
        finally:
            raw, self._raw = self._raw, None
            if self._timer is not None:
                self._timer.cancel()
            if len(raw):
                raw.purge()
                raw.flush(1.0)
            await asyncio.to_thread(_end, [raw])

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # Transactions

    @asynccontextmanager
    async def transaction(self, consumer: "AsyncConsumer | None" = None) -> AsyncIterator[Self]:
        """As of `Producer`."""
        await self.begin_transaction()
        transactions = Transactions.of(self._transactions)
        try:
            yield self
            if consumer is not None:
                await self._threaded(transactions.send_offsets, consumer.blocking)
            await self.commit_transaction()
        except BaseException:
            await self._threaded(transactions.abort_if_open)
            if consumer is not None:
                await asyncio.shield(consumer.seek_to_committed())
            raise
        if consumer is not None:
            consumer.blocking.offsets_were_committed()

    async def begin_transaction(self) -> None:
        if self._transactions is None:
            await self.start()
        Transactions.of(self._transactions).begin()

    async def commit_transaction(self) -> None:
        """Raises TransactionError if it had to be aborted: nothing of it is visible."""
        transactions = Transactions.of(self._transactions)
        await self._drain(None)
        await self._threaded(transactions.commit)

    async def abort_transaction(self) -> None:
        await self._threaded(Transactions.of(self._transactions).abort)

    async def _threaded(self, call: Callable[..., None], *arguments: object) -> None:
        """In a thread, to its end: who is cancelled meanwhile hears of it only then.

        librdkafka does one thing of a transaction at a time, and whether it was committed has to
        be known before anybody goes on; `transaction_timeout_ms` bounds it.
        """
        self._in_thread = True
        cancelled: asyncio.CancelledError | None = None
        running = asyncio.get_running_loop().run_in_executor(None, call, *arguments)
        while not running.done():
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError as error:
                cancelled = error
        self._in_thread = False
        if cancelled is not None:
            running.exception()  # the caller gives up, and aborts what is left open
            raise cancelled
        running.result()


def _end(raw: list[object]) -> None:
    """The last reference to a librdkafka producer ends its threads, which takes a moment."""
    raw.clear()
