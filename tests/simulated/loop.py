"""asyncio on virtual time: nobody sleeps, and the same seed always goes the same way.

Rules:
  - time moves only when nothing is left to do now, and then to the next timer at once;
  - a loop without anything to do and without a timer is stuck for good: that is an error;
  - code that belongs to a `Process` stops between two steps when the process is killed, and no
    cleanup of it runs, as after kill -9. What belongs to it is known by its context variables.
"""

import asyncio
import contextlib
import contextvars
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from random import Random
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")

START_WALL_MS = 1_700_000_000_000
START_SECONDS = 1000.0


class StalledError(Exception):
    """Everybody waits for somebody else."""


class Process:
    """One life of a program on the loop. Its tasks, timers and callbacks die with it."""

    def __init__(self, loop: "SimLoop", name: str) -> None:
        self.name = name
        self.is_alive = True
        self.context = contextvars.copy_context()
        self.context.run(_PROCESS.set, self)
        self._loop = loop
        self.tasks: list[asyncio.Task[Any]] = []

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return self._loop.create_task(work, context=self.context)

    def kill(self) -> None:
        self.is_alive = False
        self._loop.killed.append(self)

    def run_if_alive(self, callback: Callable[..., object], *args: object) -> None:
        if self.is_alive:
            callback(*args)

    def bury(self) -> None:
        """After the loop has ended: unwind what was frozen, whatever it says about it."""
        for task in self.tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined] # there is no setter
                with contextlib.suppress(BaseException):
                    task.get_coro().close()
        self.tasks.clear()


_PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


class _Jump:
    """Stands where a selector would: waiting is nothing but moving the time."""

    def __init__(self) -> None:
        self.now = START_SECONDS

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise StalledError("the loop is stuck: no callback is due and no timer is set")
        self.now += timeout
        return []

    def close(self) -> None: ...


class SimLoop(asyncio.BaseEventLoop):
    """No descriptor, no thread, no real clock."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Jump()
        self.outside = contextvars.Context()  # of no process: what it schedules outlives them all
        self.killed: list[Process] = []
        self.unhandled: list[str] = []
        self.set_exception_handler(_note_unhandled)

    def time(self) -> float:
        return self._selector.now

    def call_soon(
        self,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        if self.is_closed():  # a coroutine of a dead process is thrown away after the end
            return asyncio.Handle(callback, args, self, context)
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(process.run_if_alive, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        return super().call_at(when, process.run_if_alive, callback, *args, context=context)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        task = super().create_task(coro, name=name, context=context)
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        if process is not None:
            process.tasks.append(task)
        return task

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        """Nobody sleeps, so nobody needs to be woken."""


def _note_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An exception that nobody awaited: the run that made it has failed."""
    assert isinstance(loop, SimLoop)
    loop.unhandled.append(f"{context['message']}: {context.get('exception')!r}")


def run(main: Callable[[SimLoop], Coroutine[Any, Any, T]]) -> T:
    """Run one coroutine on a loop of its own, to its end or to a standstill."""
    loop = SimLoop()
    try:
        result = loop.run_until_complete(main(loop))
        if loop.unhandled:
            raise AssertionError("; ".join(loop.unhandled))
        return result
    finally:
        _cancel_rest(loop)
        loop.close()
        for process in loop.killed:
            process.bury()


def _cancel_rest(loop: SimLoop) -> None:
    frozen = {id(task) for process in loop.killed for task in process.tasks}
    rest = [task for task in asyncio.all_tasks(loop) if id(task) not in frozen]
    for task in rest:
        task.cancel()
    if rest:
        loop.run_until_complete(asyncio.wait(rest, timeout=60))


class SimClock:
    """Wall time is virtual time plus whatever somebody has set the clock by."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.jumped_ms = 0

    def wall_ms(self) -> int:
        return START_WALL_MS + self.jumped_ms + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return round(self._loop.time() * 1000)


class SimWorkers:
    """Work is done in one piece at some moment between the call and the return."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.slowness = 1.0  # raised while the disk is slow

    def map(self, work: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
        return map(work, items)

    async def run(self, work: Callable[[], T]) -> T:
        await asyncio.sleep(self._delay())
        result = work()
        await asyncio.sleep(self._delay())
        return result

    def _delay(self) -> float:
        return self.slowness * self._chance.choice((0.0, 0.0002, 0.001, 0.004))
