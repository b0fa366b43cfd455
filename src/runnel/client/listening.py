"""Listeners of an asyncio consumer, which may be coroutines and await that consumer.

A listener is called in the thread that fetches, whose task has the turn of the consumer until the
listener is done. A coroutine runs in the loop meanwhile. What it asks of the consumer takes no turn
and is done in that very thread: librdkafka answers no other one until the listener has returned.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import ContextVar
from queue import SimpleQueue
from typing import TypeVar

from runnel.client.assigning import Partitions, RebalanceListener

T = TypeVar("T")
AsyncRebalanceListener = Callable[[Partitions], Awaitable[None] | None]
Work = SimpleQueue[Callable[[], None] | None]  # of the thread, until None comes

_WORK: ContextVar[Work | None] = ContextVar("work", default=None)


class Listening:
    """Of one consumer: at most one of its listeners runs at a time."""

    def __init__(self) -> None:
        self._work: Work | None = None

    @property
    def is_listener(self) -> bool:
        """Whether it is a listener that asks, and not a task that it has left behind."""
        return self._work is not None and _WORK.get() is self._work

    def in_loop(self, listener: AsyncRebalanceListener | None) -> RebalanceListener | None:
        """For the thread that fetches: returns when the listener is done."""
        if listener is None:
            return None
        loop = asyncio.get_running_loop()

        def call(partitions: Partitions) -> None:
            answer = listener(partitions)
            if not inspect.isawaitable(answer):
                return
            work: Work = SimpleQueue()
            done = asyncio.run_coroutine_threadsafe(self._run(answer, work), loop)
            done.add_done_callback(lambda _: work.put(None))
            while (job := work.get()) is not None:
                job()
            done.result()

        return call

    async def _run(self, answer: Awaitable[None], work: Work) -> None:
        self._work = work
        _WORK.set(work)
        try:
            await answer
        finally:
            self._work = None

    async def call(self, call: Callable[[], T]) -> T:
        """By a listener: in the thread that waits for it."""
        assert self._work is not None, "no listener runs"
        done: Future[T] = Future()

        def job() -> None:
            if done.set_running_or_notify_cancel():
                try:
                    done.set_result(call())
                except BaseException as error:  # noqa: BLE001  # it is for who awaits
                    done.set_exception(error)

        self._work.put(job)
        return await asyncio.wrap_future(done)
