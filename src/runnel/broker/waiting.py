"""Requests whose answer is not due yet: parked on partitions, released by movement or a deadline.

A partition that moves (its high watermark, flushed offset or leadership) says so with `moved`.
Waking is put off to the end of the loop's current round, so that fifty appends of one request
make a parked fetch plan once and not fifty times. If few wait, they are woken sooner: right after
the append of one partition, or before the replies of those who moved something leave. A record
then reaches its consumer before its producer hears of it, which costs the one little and spares the
other a system call and a round. Whoever wakes plans anew: nothing that was read before the wait is
sent after it.

Deadlines are rounded up to ticks, at most a sixth of the wait, and share a timer: a hundred idle
consumers then come back in a few rounds of the loop, and cost a fraction of a hundred wake-ups.
Every second is made of whole ticks, so that they meet what else recurs (`ticks.py`).
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from runnel.ports import File
from runnel.types import FileSlice, Waitable

R = TypeVar("R")
TICKS_MIN: Final = 6  # of a wait
FEW: Final = 2
FRESH_BYTES_MAX: Final = 16 * 1024  # as much is copied into a reply, too


class Parked(Generic[R]):
    """An answer not yet due.

    `attempt(False)` gives the answer if it is due now, else None; `attempt(True)`, at the
    deadline, must give one.
    """

    __slots__ = ("attempt", "is_produce", "on", "timeout_ms")

    def __init__(
        self,
        on: list[Waitable],
        timeout_ms: int,
        attempt: Callable[[bool], R | None],
        *,
        is_produce: bool = False,
    ) -> None:
        self.on = on
        self.timeout_ms = timeout_ms
        self.attempt = attempt
        self.is_produce = is_produce


class Wakeable:
    """What stands in the lists of those who wait: a parked request, or a watch for several."""

    __slots__ = ()

    def try_now(self) -> None:
        """What it waits for has moved."""
        raise NotImplementedError


class Waiter(Wakeable):
    """One parked request. Leaves every list it stands in when it is answered or cancelled."""

    __slots__ = ("_answer", "_deadline", "_parked", "_waiting")

    def __init__(self, waiting: "Waiting", parked: Parked[R], answer: Callable[[R], None]) -> None:
        self._waiting = waiting
        self._parked: Parked[Any] = parked
        self._answer: Callable[[Any], None] = answer
        self._deadline: dict[Waiter, None] | None = None  # all who expire with it

    def start(self, deadline: "dict[Waiter, None]") -> None:
        for waitable in self._parked.on:
            waitable.waiters[self] = None
        if self._parked.is_produce:
            self._waiting.parked_produces[self] = None
        self._deadline = deadline
        deadline[self] = None

    def try_now(self) -> None:
        if self._deadline is not None:
            self._finish_with(self._parked.attempt(False))

    def expire(self) -> None:
        if self._deadline is not None:
            self._finish_with(self._parked.attempt(True))

    def _finish_with(self, response: object | None) -> None:
        if response is not None:
            self.cancel()
            self._answer(response)

    def cancel(self) -> None:
        if self._deadline is None:
            return
        self._deadline.pop(self, None)
        self._deadline = None
        for waitable in self._parked.on:
            if self in waitable.waiters:  # not `pop`: an idle consumer leaves ten lists at a time
                del waitable.waiters[self]
        if self._parked.is_produce:
            self._waiting.produce_left(self)


class Fresh:
    """The small batch that somebody waits for, until it was told of: then nobody has to read it.

    One, and not for long: a file may be cut and written to again.
    """

    __slots__ = ("_data", "_file", "_position")

    def __init__(self) -> None:
        self._file: File | None = None
        self._position = 0
        self._data = b""

    def keep(self, file: File, end: int, records: memoryview) -> None:
        """Records that were just written, before the position `end`."""
        size = len(records)
        if size <= FRESH_BYTES_MAX:
            self._file = file
            self._position = end - size
            self._data = bytes(records)

    def of(self, found: FileSlice) -> bytes | None:
        """The bytes of this slice, if it is what was kept."""
        if (
            found.file is self._file
            and found.position == self._position
            and found.size == len(self._data)
        ):
            return self._data
        return None

    def forget(self) -> None:
        self._file = None
        self._data = b""


class Waiting:
    """Owned by the broker; one per event loop."""

    __slots__ = (
        "_deadlines",
        "_drained",
        "_is_waking",
        "_loop",
        "_moved",
        "_will_wake",
        "fresh",
        "is_asked_soon",
        "parked_produces",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._moved: dict[Waitable, None] = {}
        self._will_wake = False  # in the next round
        self._is_waking = False
        self.is_asked_soon = False  # whoever moves something calls `wake_few` in any case
        self._deadlines: dict[int, dict[Waiter, None]] = {}  # by the loop's time in ms
        self.parked_produces: dict[Waiter, None] = {}
        self.fresh = Fresh()
        self._drained: asyncio.Event | None = None

    def park(self, parked: Parked[R], answer: Callable[[R], None]) -> Callable[[], None]:
        """Returns how to cancel."""
        waiter = Waiter(self, parked, answer)
        waiter.start(self._deadline_in(parked.timeout_ms))
        return waiter.cancel

    def _deadline_in(self, timeout_ms: int) -> dict[Waiter, None]:
        """Who waits for the first tick that is no earlier. Their timer runs even if all leave."""
        ticks_per_s = min(-(-TICKS_MIN * 1000 // max(timeout_ms, 1)), 1000)
        least_ms = int(self._loop.time() * 1000) + timeout_ms + 1
        due_ms = -(-least_ms * ticks_per_s // 1000) * 1000 // ticks_per_s
        deadline = self._deadlines.get(due_ms)
        if deadline is None:
            deadline = self._deadlines[due_ms] = {}
            self._loop.call_at(due_ms / 1000, self._expire, due_ms)
        return deadline

    def _expire(self, due_ms: int) -> None:
        for waiter in list(self._deadlines.pop(due_ms)):
            waiter.expire()

    def moved(self, waitable: Waitable) -> None:
        """Only to be called if the waitable has waiters: it is on the produce path."""
        self._moved[waitable] = None
        if not self.is_asked_soon:
            self._wake_soon()

    def _wake_soon(self) -> None:
        if not self._will_wake:
            self._will_wake = True
            self._loop.call_soon(self._wake_all)

    def wake_few(self) -> None:
        """Before replies leave. Not if it was a waking that made them: that would go on and on."""
        self.is_asked_soon = False
        if not self._moved:
            return
        waiting = 0
        for waitable in self._moved:
            waiting += len(waitable.waiters)
        if self._is_waking or waiting > FEW:
            self._wake_soon()
        else:
            self._wake()

    def _wake_all(self) -> None:
        self._will_wake = False
        self._wake()

    def _wake(self) -> None:
        moved, self._moved = self._moved, {}
        due: dict[Wakeable, None] = {}
        for waitable in moved:
            due.update(waitable.waiters)
        self._is_waking = True
        try:
            for waiter in due:
                waiter.try_now()
        finally:
            self._is_waking = False
            self.fresh.forget()

    def parked_count(self) -> int:
        return sum(map(len, self._deadlines.values()))

    async def drain(self, timeout_ms: int) -> None:
        """Until no produce waits for its acknowledgement; a fetch may be cut off at any time."""
        if self.parked_produces:
            self._drained = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_ms / 1000):
                    await self._drained.wait()

    def produce_left(self, waiter: Waiter) -> None:
        """It was answered, or its connection is gone."""
        self.parked_produces.pop(waiter, None)
        if self._drained is not None and not self.parked_produces:
            self._drained.set()
