"""Looks for the next request instead of sleeping, while one client or two send one at a time.

A client that waits for each reply sends its next request some tens of microseconds later, and a
consumer that has what it waited for comes back as soon. To fall asleep and be woken again costs
more than that on most machines, and on virtual ones several times as much; whoever slept also finds
the processor's caches full of somebody else's. So while small requests of at most two connections
(a producer and its consumer) follow each other this closely, their sockets are looked at again and
again for a moment after each. It begins only after several in a row, and one that is late counts
as much as a few that were not: an idle broker, one with many clients, and one with clients that
batch or pipeline never spin.

The two sockets are asked by themselves, many times in each turn of the loop, because a turn takes
several times as long and finds the same. Everybody else is served once a turn, as always.
"""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Final

from runnel.broker.system import cpu_quota, usable_cpus
from runnel.broker.vigil import Vigil
from runnel.native import calls

SMALL_BYTES_MAX: Final = 2048
TRUSTED: Final = 8  # so many in a row
TRUST_MAX: Final = 16
LOST_BY_ONE: Final = 4
CPUS_MIN: Final = 2.0
LOOKS_A_TURN: Final = 16  # together some ten microseconds
# A client that was woken on this very processor would else wait until the looking is over.
_let_others_run: Final[Callable[[], None]] = getattr(os, "sched_yield", lambda: None)
_look: Final = calls.look


class Pollable:
    """The reading side of a connection's transport."""

    __slots__ = ("fd", "is_local", "is_reading")

    fd: int
    is_local: bool  # its peer is on this machine
    is_reading: bool

    def on_readable(self) -> None:
        """There is something to read, or its peer is gone."""
        raise NotImplementedError


class BusyPolling:
    """Owned by the listeners; every transport tells it what came. Off if `for_us` is 0."""

    __slots__ = (
        "_at_s",
        "_for_s",
        "_is_polling",
        "_loop",
        "_other",
        "_trust",
        "_vigil",
        "_was_handled",
        "_who",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, for_us: int, *, is_awake: bool) -> None:
        self._loop = loop
        self._for_s = for_us / 1e6 if may_spin() else 0.0
        self._vigil = Vigil(loop) if is_awake and self._for_s else None
        self._who: Pollable | None = None
        self._other: Pollable | None = None
        self._at_s = 0.0  # since when it waits: the last one came, or was handled
        self._was_handled = True
        self._trust = 0
        self._is_polling = False

    def received(self, who: Pollable, byte_count: int) -> None:
        """Before it is handled: how long that takes is not the client's delay."""
        now_s = time.monotonic()
        if who is not self._who and who is not self._other:
            self._other, self._who = self._who, who
            self._trust = 0
        elif byte_count > SMALL_BYTES_MAX or now_s - self._at_s > self._for_s:
            self._trust = max(self._trust - LOST_BY_ONE, 0)
        elif self._trust < TRUST_MAX:
            self._trust += 1
        if self._trust >= TRUSTED and not self._is_polling:
            self._is_polling = True
            if self._vigil is not None and who.is_local:
                self._vigil.begin()
            self._loop.call_soon(self._poll)
        self._at_s = now_s
        self._was_handled = False

    def sends_much(self, who: Pollable) -> None:
        """It is sent slices of files, which takes longer than it is worth to look."""
        if who is self._who or who is self._other:
            self._trust = 0

    def forget(self, who: Pollable) -> None:
        """It is closed."""
        if who is self._who:
            self._who = None
        elif who is self._other:
            self._other = None

    def close(self) -> None:
        """With the broker, after its connections."""
        self._trust = 0  # so that what is due once more does nothing
        if self._vigil is not None:
            self._vigil.close()

    def _poll(self) -> None:
        """With a callback that is due the loop does not sleep when it asks for events."""
        now_s = time.monotonic()
        if not self._was_handled:
            self._was_handled = True
            self._at_s = now_s
        if self._trust >= TRUSTED and now_s - self._at_s <= self._for_s:
            _let_others_run()
            try:
                self._look_at_both()
            finally:  # also if reading failed; and not before it, or what it wants done soon waits
                self._loop.call_soon(self._poll)
        else:
            self._is_polling = False
            if self._vigil is not None:
                self._vigil.end()

    def _look_at_both(self) -> None:
        who, other = self._who, self._other
        found = _look(_fd_of(who), _fd_of(other), LOOKS_A_TURN)
        if found & 1 and who is not None:
            who.on_readable()
        if found & 2 and other is not None:
            other.on_readable()


def _fd_of(who: Pollable | None) -> int:
    """-1, which is not looked at, if it shall not be read."""
    return who.fd if who is not None and who.is_reading else -1


def may_spin() -> bool:
    """On one processor nobody runs unless we sleep; of a quota, looking would use up a half."""
    return usable_cpus() > 1 and cpu_quota() >= CPUS_MIN
