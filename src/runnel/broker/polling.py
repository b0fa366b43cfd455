"""Looks for the next request instead of sleeping, while one client sends one at a time.

A client that waits for each reply sends its next request some tens of microseconds later. To fall
asleep and be woken again costs more than that on most machines, and on virtual ones several times
as much. So while small requests of one connection follow each other this closely, the loop asks the
kernel again and again for a moment after each. It stops at the first that does not come in time,
and begins only after several in a row: an idle broker, one with many clients, and one with clients
that batch or pipeline never spin.
"""

import asyncio
import time
from typing import Final

from runnel.broker.system import usable_cpus

SMALL_BYTES_MAX: Final = 2048
IN_A_ROW: Final = 8


class BusyPolling:
    """Owned by the listeners; every transport tells it what came. Off if `for_us` is 0."""

    __slots__ = ("_at_s", "_fd", "_for_s", "_is_polling", "_loop", "_row")

    def __init__(self, loop: asyncio.AbstractEventLoop, for_us: int) -> None:
        self._loop = loop
        self._for_s = for_us / 1e6 if usable_cpus() > 1 else 0.0  # else nobody runs unless we sleep
        self._fd = -1
        self._at_s = 0.0
        self._row = 0
        self._is_polling = False

    def received(self, fd: int, byte_count: int) -> None:
        now_s = time.monotonic()
        if fd != self._fd or byte_count > SMALL_BYTES_MAX or now_s - self._at_s > self._for_s:
            self._fd = fd
            self._row = 0
        else:
            self._row += 1
            if self._row >= IN_A_ROW and not self._is_polling:
                self._is_polling = True
                self._loop.call_soon(self._poll)
        self._at_s = now_s

    def _poll(self) -> None:
        """With a callback that is due the loop does not sleep when it asks for events."""
        if self._row and time.monotonic() - self._at_s <= self._for_s:
            self._loop.call_soon(self._poll)
        else:
            self._is_polling = False
            self._row = 0
