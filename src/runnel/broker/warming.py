"""Brings cold slices into the page cache beside the loop, so that no send waits for a disk.

A sender that finds the bytes it is about to send cold asks here, sends nothing meanwhile, and is
told when they are warm. Rules:
  - a sender waits for one slice at a time, of at most `COLD_BYTES_MAX`, so what waits is
    bounded by the connections, and no reader of much is ahead of one of little for long;
  - at most `AT_ONCE` are read at a time, and as many by `read`, so that the threads of a flush
    are never all taken;
  - what was warmed is sent unasked: asking again could go on forever where memory is short;
  - what somebody found in memory is not asked for again within the second: many read the same.

The kernel is asked to read, and looked after every millisecond or two: a thread that waits for the
disk would take the interpreter from the loop in the middle of somebody's produce. Only what has not
come after `LOOKS_MAX` is waited for in a worker, and so are the few bytes of a lookup.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol

from runnel.broker.courtesy import COLD_BYTES_MAX, Courtesy
from runnel.metrics import Metrics, Slot
from runnel.ports import Workers
from runnel.types import FileSlice

AT_ONCE: Final = 2
LOOKS_MAX: Final = 50
FOUND_MAX: Final = 4096


class Sender(Protocol):
    """Compared by identity."""

    def warmed(self, error: OSError | None) -> None:
        """On the loop: the slice is in memory now, or cannot be read."""


class Warming:
    """Owned by the broker; `AT_ONCE` tasks of `run` are started and stopped with it."""

    __slots__ = ("_metrics", "_reading", "_requested", "_wanted", "_workers", "courtesy", "found")

    def __init__(self, workers: Workers, metrics: Metrics, courtesy: Courtesy) -> None:
        self._workers = workers
        self.courtesy = courtesy
        self._metrics = metrics
        self._wanted: dict[Sender, FileSlice] = {}
        self._requested = asyncio.Event()
        self._reading = asyncio.Semaphore(AT_ONCE)
        # Identity of the file, position, size. That another file may come to have the identity of
        # one that is gone, within the second, is a risk of one wait for a disk.
        self.found: set[tuple[int, int, int]] = set()

    def look_again(self) -> None:
        """Once a second: memory is taken away from what nobody uses, though not so soon."""
        self.found.clear()

    def request(self, sender: Sender, cold: FileSlice) -> None:
        """`sender.warmed` is called once, unless it is forgotten before its turn comes."""
        assert sender not in self._wanted
        assert cold.size <= COLD_BYTES_MAX, cold
        self._wanted[sender] = cold
        self._requested.set()

    def forget(self, sender: Sender) -> None:
        """Its connection is gone. What is being read for it goes on, and it is still told."""
        self._wanted.pop(sender, None)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while not self._wanted:
                self._requested.clear()
                await self._requested.wait()
            sender = next(iter(self._wanted))
            cold = self._wanted.pop(sender)
            self._metrics.add(Slot.SLICES_WARMED)
            error = await self._bring(cold)
            loop.call_soon(sender.warmed, error)  # what it does of its own accord is not our end

    async def _bring(self, cold: FileSlice) -> OSError | None:
        file, position, size = cold.file, cold.position, cold.size
        try:
            file.begin_to_warm(position, size, reads_ahead=not self.courtesy.is_due())
            for _ in range(LOOKS_MAX):
                await asyncio.sleep(self.courtesy.piece_every_ms() / 1000)
                if file.is_cached(position, size):
                    return None
        except OSError as error:
            return error
        return await self._workers.run(partial(_warm, cold))

    async def read(self, colds: Sequence[FileSlice]) -> None:
        """Warm what a lookup is about to read. Errors are left to the lookup itself."""
        async with self._reading:
            await self._workers.run(lambda: [_warm(cold) for cold in colds])


def _warm(cold: FileSlice) -> OSError | None:
    try:
        cold.file.warm(cold.position, cold.size)
    except OSError as error:
        return error
    return None
