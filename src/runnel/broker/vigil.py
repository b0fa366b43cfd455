"""Keeps the machine's processors awake while the loop looks for a client's requests.

Who waits for a reply leaves a processor with nothing to do, which falls asleep at once; to wake it
takes longer than the broker works for a small request, on a virtual machine most of all. Linux lets
those who may ask for it (root, or who owns the file) keep processors awake for as long as they hold
a file open. It costs what the loop's own looking costs, once more for each processor, so it is not
asked for where there are many (ADR 57).
"""

import asyncio
import logging
import os
from typing import Final

LATENCY_FILE: Final = "/dev/cpu_dma_latency"
LASTS_S: Final = 0.5  # each beginning and each end wakes every processor, so it is not for moments
CPUS_MAX: Final = 8  # of the machine, not those that we may use: all of them stay awake
_AT_ONCE: Final = bytes(4)  # microseconds that waking may take, as the machine writes integers
_log = logging.getLogger(__name__)


class Vigil:
    """Owned by who looks, on the loop's thread."""

    __slots__ = ("_ending", "_fd", "_is_possible", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_possible = _all_cpus() <= CPUS_MAX
        self._fd = -1
        self._ending: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        elif self._fd < 0 and self._is_possible:
            self._open()

    def _open(self) -> None:
        try:
            self._fd = os.open(LATENCY_FILE, os.O_WRONLY | os.O_CLOEXEC)
            os.write(self._fd, _AT_ONCE)
        except OSError as error:  # there is none, or it is not for us
            self._is_possible = False
            self._close()
            _log.debug("processors may fall asleep: %s", error)

    def end(self) -> None:
        """Not at once: the next request may be a millisecond late."""
        if self._fd >= 0 and self._ending is None:
            self._ending = self._loop.call_later(LASTS_S, self._end_now)

    def _end_now(self) -> None:
        self._ending = None
        self._close()

    def close(self) -> None:
        """At once, and for good: nobody is on the loop any more who would end it."""
        self._is_possible = False
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        self._close()

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _all_cpus() -> int:
    return os.cpu_count() or 1
