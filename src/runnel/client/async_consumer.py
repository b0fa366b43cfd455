"""The consumer for asyncio.

It is the blocking consumer, with one thread that waits for the next batch: the loop is woken once
per batch. A wait that was cancelled loses nothing: what the thread still brings is handed out next.
Other tasks may seek, pause or commit while one reads; they take turns with the waits of that one.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from runnel.client.assigning import in_listener
from runnel.client.configuration import ConsumerConfig
from runnel.client.consumer import (
    END_SLICE_S,
    POLL_TIMEOUT_S,
    UNTIL_END_TIMEOUT_S,
    Consumer,
    end_not_reached,
)
from runnel.client.failures import ClientError
from runnel.client.listening import AsyncRebalanceListener, Listening
from runnel.client.message import Message
from runnel.client.offsets import Offsets, Partition, TopicPartition

P = ParamSpec("P")
T = TypeVar("T")

SLICE_S = 0.2  # of one wait in the thread, which nobody can cut short


class AsyncConsumer:
    """Reads messages in an event loop.

        async with AsyncConsumer(ConsumerConfig("localhost:9092", group_id="billing")) as consumer:
            await consumer.subscribe("orders")
            async for message in consumer:
                print(message.offset, message.value)

    Its methods have the names and arguments of `Consumer`'s, and are awaited. One task reads: a
    message counts as handled when the next is asked for, which is nothing two could share.
    """

    def __init__(self, config: ConsumerConfig | None = None) -> None:
        self.blocking = Consumer(config)  # not to be used while this one is
        self.config = self.blocking.config
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="runnel-consumer")
        self._coming: asyncio.Future[list[Message]] | None = None
        self._turn = asyncio.Lock()  # who has it may move the places of the consumer
        self._listening = Listening()
        self._is_read = False
        self._is_closed = False
        self._is_stopping = False

    async def _call(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._listening.is_listener:
            return await self._listening.call(lambda: call(*args, **kwargs))
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: call(*args, **kwargs))

    async def start(self) -> Self:
        """Wait for a first answer of a broker. Raises BrokerUnavailableError."""
        await self._call(self.blocking.start)
        return self

    async def subscribe(
        self,
        topics: str | Sequence[str],
        partitions: int | Sequence[int] | None = None,
        *,
        on_assign: AsyncRebalanceListener | None = None,
        on_revoke: AsyncRebalanceListener | None = None,
        on_lost: AsyncRebalanceListener | None = None,
    ) -> None:
        """As of `Consumer`; the listeners are functions, called in the thread that waits, or
        coroutines, which may await this consumer: `seek`, `committed`, `commit`.
        """
        await self._call(
            self.blocking.subscribe,
            topics,
            partitions,
            on_assign=self._listening.in_loop(on_assign),
            on_revoke=self._listening.in_loop(on_revoke),
            on_lost=self._listening.in_loop(on_lost),
        )

    async def unsubscribe(self) -> None:
        await self._moved(self.blocking.unsubscribe)

    def assignment(self) -> list[TopicPartition]:
        return self.blocking.assignment()

    # Reading

    async def poll(
        self, timeout_s: float = POLL_TIMEOUT_S, max_records: int | None = None
    ) -> list[Message]:
        """The next messages, `max_poll_records` at most; none if none came in time."""
        limit = self.config.max_poll_records if max_records is None else max_records
        if self.blocking.is_drained or self._turn.locked():
            await self._refill(limit, timeout_s)
        return self.blocking.take(limit)

    async def consume_one(self, timeout_s: float = POLL_TIMEOUT_S) -> Message | None:
        """The next message, or None if none came in time."""
        if self.blocking.is_drained or self._turn.locked():
            await self._refill(self.config.max_poll_records, timeout_s)
        return self.blocking.take_one()

    async def _refill(self, limit: int, timeout_s: float) -> None:
        """Until there is something to hand out, time is up or somebody closes the consumer."""
        if self._is_closed:
            raise ClientError("this consumer was closed; make another")
        if self._is_read:
            raise ClientError(
                "two tasks read from one consumer: give each a consumer of its own, or let one "
                "read and hand messages to the others by an asyncio.Queue"
            )
        self._is_read = True
        try:
            await self._wait_for_some(limit, timeout_s)
        finally:
            self._is_read = False

    async def _wait_for_some(self, limit: int, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while True:
            async with self._turn:
                if self._is_closed or not self.blocking.is_drained:
                    return
                self.blocking.store_handled()
                if self._coming is None:
                    wait_s = max(min(SLICE_S, deadline - loop.time()), 0)
                    self._coming = loop.run_in_executor(
                        self._threads, self.blocking.fetch, limit, wait_s
                    )
                await asyncio.wait([self._coming])  # cancelled or not, it goes on
                coming, self._coming = self._coming, None
                self.blocking.put(coming.result())
            if not self.blocking.is_drained or loop.time() >= deadline:
                return

    async def messages(self, idle_timeout_s: float | None = None) -> AsyncIterator[Message]:
        """One message after the other, until `stop`, or until none came for `idle_timeout_s`."""
        self._is_stopping = False
        loop = asyncio.get_running_loop()
        last = loop.time()
        joined_by = last + self.config.session_timeout_ms / 1000
        while not self._is_stopping:
            message = await self.consume_one(
                SLICE_S if idle_timeout_s is None else min(SLICE_S, idle_timeout_s)
            )
            if message is not None:
                yield message
                last = loop.time()
            elif not self.blocking.has_begun and loop.time() < joined_by:
                last = loop.time()
            elif idle_timeout_s is not None and loop.time() - last >= idle_timeout_s:
                return

    async def until_end(self, timeout_s: float = UNTIL_END_TIMEOUT_S) -> AsyncIterator[Message]:
        """As of `Consumer`: all messages up to the ends as they are now, then stop."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        ends: dict[Partition, int] | None = None
        while True:
            if ends is None and self.assignment():
                ends = await self._call(self.blocking.ends_ahead)
            if self._turn.locked():  # somebody moves places: where they are is known after that
                await self._refill(self.config.max_poll_records, END_SLICE_S)
            is_drained = self.blocking.is_drained
            if is_drained and ends is not None:
                ends = self.blocking.still_ahead(ends)
            if ends is not None and not ends:
                return
            if is_drained:
                if loop.time() > deadline:
                    raise end_not_reached(ends, timeout_s)
                await self._refill(self.config.max_poll_records, END_SLICE_S)
            elif ends is not None:
                message = self.blocking.take_one()
                assert message is not None, "it is not drained"
                yield message
                partition = (message.topic, message.partition)
                if message.next_offset >= ends.get(partition, message.next_offset + 1):
                    del ends[partition]

    def __aiter__(self) -> AsyncIterator[Message]:
        return self.messages()

    async def start_consuming(
        self, callback: Callable[[Message], Any], *, idle_timeout_s: float | None = None
    ) -> None:
        """Call or await it with each message, until it gives False or somebody calls `stop`."""
        async for message in self.messages(idle_timeout_s):
            answer = callback(message)
            if inspect.isawaitable(answer):
                answer = await answer
            if answer is False:
                break
        self.blocking.all_is_handled()

    def stop(self) -> None:
        """End a running iteration or `start_consuming` soon."""
        self._is_stopping = True

    # Places

    async def commit(self, offsets: Offsets | Message | None = None) -> None:
        """As of `Consumer`."""
        await self._moved(self.blocking.commit, offsets)

    async def committed(
        self, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, int]:
        return await self._call(self.blocking.committed, partitions)

    async def seek(self, topic: str, partition: int, offset: int | str) -> None:
        await self._moved(self.blocking.seek, topic, partition, offset)

    async def seek_to_time(self, timestamp_ms: int) -> None:
        await self._moved(self.blocking.seek_to_time, timestamp_ms)

    async def seek_to_committed(self) -> None:
        await self._moved(self.blocking.seek_to_committed)

    async def pause(self, partitions: Iterable[Partition] | None = None) -> None:
        await self._moved(self.blocking.pause, partitions)

    async def resume(self, partitions: Iterable[Partition] | None = None) -> None:
        await self._call(self.blocking.resume, partitions)

    async def position(self, topic: str, partition: int) -> int:
        return await self._call(self.blocking.position, topic, partition)

    async def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        return await self._call(self.blocking.offsets, topic, partition)

    async def lag(self) -> dict[Partition, int]:
        return await self._call(self.blocking.lag)

    async def _moved(self, call: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """While nothing is fetched or handed out.

        What a cancelled wait left to the thread is taken over before anything moves; if that
        failed, it is for the next who reads.
        """
        if self._listening.is_listener:
            return await self._call(call, *args, **kwargs)
        async with self._turn:
            if self._coming is not None:
                await asyncio.wait([self._coming])
                if self._coming.exception() is None:
                    coming, self._coming = self._coming, None
                    self.blocking.put(coming.result())
            await self._call(call, *args, **kwargs)

    # The end

    async def close(self) -> None:
        """As of `Consumer`."""
        self._must_not_be_listener()
        self.blocking.all_is_handled()
        await self._close()

    def _must_not_be_listener(self) -> None:
        """It would wait for the turn of the very task that waits for it."""
        if self._listening.is_listener:
            raise in_listener("close")

    async def _close(self) -> None:
        self._must_not_be_listener()
        self._is_stopping = True
        async with self._turn:
            self._is_closed = True
            try:
                if self._coming is not None:
                    await asyncio.wait([self._coming])
                    self._coming.exception()  # nobody is left who could be told
                    self._coming = None
                await self._call(self.blocking.leave)
            finally:
                self._threads.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        try:
            return await self.start()
        except BaseException:
            await self._close()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
        else:
            await self._close()
