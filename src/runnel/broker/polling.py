"""Looks for the next request instead of sleeping, while one client or two send one at a time.

A client that waits for each reply sends its next request some tens of microseconds later, and a
consumer that has what it waited for comes back as soon. To fall asleep and be woken again costs
more than that on most machines, and on virtual ones several times as much; whoever slept also finds
the processor's caches full of somebody else's. So while small requests of at most two connections
(a producer and its consumer) follow each other this closely, the loop asks the kernel again and
again for a moment after each. It begins only after several in a row, and one that is late counts
as much as a few that were not: an idle broker, one with many clients, and one with clients that
batch or pipeline never spin.
"""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Final

from runnel.broker.system import usable_cpus

SMALL_BYTES_MAX: Final = 2048
TRUSTED: Final = 8  # so many in a row
TRUST_MAX: Final = 16
LOST_BY_ONE: Final = 4
# A client that was woken on this very processor would else wait until the looking is over.
_let_others_run: Final[Callable[[], None]] = getattr(os, "sched_yield", lambda: None)


class BusyPolling:
    """Owned by the listeners; every transport tells it what came. Off if `for_us` is 0."""

    __slots__ = (
        "_at_s",
        "_fd",
        "_for_s",
        "_is_polling",
        "_loop",
        "_other_fd",
        "_trust",
        "_was_handled",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, for_us: int) -> None:
        self._loop = loop
        self._for_s = for_us / 1e6 if usable_cpus() > 1 else 0.0  # else nobody runs unless we sleep
        self._fd = -1
        self._other_fd = -1
        self._at_s = 0.0  # since when it waits: the last one came, or was handled
        self._was_handled = True
        self._trust = 0
        self._is_polling = False

    def received(self, fd: int, byte_count: int) -> None:
        """Before it is handled: how long that takes is not the client's delay."""
        now_s = time.monotonic()
        if fd != self._fd and fd != self._other_fd:
            self._other_fd, self._fd = self._fd, fd
            self._trust = 0
        elif byte_count > SMALL_BYTES_MAX or now_s - self._at_s > self._for_s:
            self._trust = max(self._trust - LOST_BY_ONE, 0)
        elif self._trust < TRUST_MAX:
            self._trust += 1
        if self._trust >= TRUSTED and not self._is_polling:
            self._is_polling = True
            self._loop.call_soon(self._poll)
        self._at_s = now_s
        self._was_handled = False

    def _poll(self) -> None:
        """With a callback that is due the loop does not sleep when it asks for events."""
        now_s = time.monotonic()
        if not self._was_handled:
            self._was_handled = True
            self._at_s = now_s
        if self._trust >= TRUSTED and now_s - self._at_s <= self._for_s:
            _let_others_run()
            self._loop.call_soon(self._poll)
        else:
            self._is_polling = False
