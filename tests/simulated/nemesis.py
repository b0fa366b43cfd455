"""What goes wrong in a run: drawn from the seed, one thing at a time or one upon another."""

import asyncio
from errno import EIO
from random import Random
from typing import Final

from tests.simulated.disk import UNLIMITED, Operation
from tests.simulated.world import World

DAY_MS: Final = 86_400_000
JUMPS_MS: Final = (365 * DAY_MS, 10 * DAY_MS, -DAY_MS, 3_700_000, -3_700_000, 5_000, -5_000)
FULL_SLACK_BYTES: Final = 3000


class Nemesis:
    """Runs as a task for some virtual seconds, then leaves the world whole."""

    def __init__(self, world: World, chance: Random) -> None:
        self._world = world
        self._chance = chance

    async def run(self, seconds: float) -> None:
        loop = self._world.loop
        deadline = loop.time() + seconds
        while loop.time() < deadline:
            await asyncio.sleep(self._chance.uniform(0.5, 5.0))
            await self._world.up()
            await self._strike()
        self._heal()

    async def _strike(self) -> None:
        strike = self._chance.choice(
            (
                self._kill, self._kill, self._lose_power, self._lose_power, self._restart,
                self._cut, self._cut, self._fill_disk, self._fail_io, self._fail_io,
                self._set_clock, self._slow_disk, self._short_writes, self._lose_leases,
            )
        )  # fmt: skip
        name = strike.__name__.strip("_").replace("_", " ")
        self._world.counts[f"nemesis: {name}"] += 1
        self._world.note(f"nemesis: {name}")
        await strike()

    async def _kill(self) -> None:
        await self._crash(power=False)

    async def _lose_power(self) -> None:
        await self._crash(power=True)

    async def _crash(self, *, power: bool) -> None:
        """Sometimes again while the broker comes up."""
        world, chance = self._world, self._chance
        world.clock.jumped_ms = 0  # a machine asks for the time when it starts
        world.crash(power=power)
        while True:
            await asyncio.sleep(chance.uniform(0.0, 0.5))
            if world.life is None:
                world.boot()
            if chance.random() > 0.3:
                break
            await asyncio.sleep(chance.expovariate(1 / 0.05))
            world.counts["crashes while starting"] += 1
            world.crash(power=chance.random() < 0.5)
        await world.up()

    async def _restart(self) -> None:
        self._world.clock.jumped_ms = 0
        await self._world.stop_cleanly()
        await self._world.up()

    async def _after_fault(self) -> None:
        """A log that went offline stays so until somebody starts the broker anew."""
        await asyncio.sleep(self._chance.uniform(0.2, 4.0))
        await self._chance.choice((self._kill, self._lose_power, self._restart))()

    async def _cut(self) -> None:
        self._world.network.cut_some()

    async def _fill_disk(self) -> None:
        disk = self._world.disk
        disk.capacity_bytes = disk.used_bytes() + self._chance.randrange(FULL_SLACK_BYTES)
        await asyncio.sleep(self._chance.uniform(0.2, 3.0))
        disk.capacity_bytes = UNLIMITED
        await self._after_fault()

    async def _fail_io(self) -> None:
        disk, chance = self._world.disk, self._chance
        operation: Operation = chance.choice(
            ("write", "write", "sync", "sync", "rename", "sync_dir", "open")
        )
        disk.fail(operation, EIO, after=chance.randrange(12))
        await self._after_fault()

    async def _set_clock(self) -> None:
        """While it is wrong, retention runs several times and must take nothing by age."""
        self._world.clock.jumped_ms = self._chance.choice(JUMPS_MS)
        await asyncio.sleep(self._chance.uniform(1.0, 5.0))
        if self._chance.random() < 0.7:
            self._world.clock.jumped_ms = 0

    async def _slow_disk(self) -> None:
        """And perhaps no power at its end: what waits for an fsync then was not acknowledged."""
        world = self._world
        world.workers.slowness = 60.0
        await asyncio.sleep(self._chance.uniform(0.5, 3.0))
        if self._chance.random() < 0.5:
            world.clock.jumped_ms = 0
            world.crash(power=True)
        world.workers.slowness = 1.0
        await world.up()

    async def _short_writes(self) -> None:
        self._world.disk.short_write_probability = 0.2
        await asyncio.sleep(self._chance.uniform(0.5, 3.0))
        self._world.disk.short_write_probability = 0.0

    async def _lose_leases(self) -> None:
        self._world.store.lose_all_leases()

    def _heal(self) -> None:
        self._world.disk.heal()
        self._world.network.faults.cut = 0.0
        self._world.network.faults.slow = 0.0
        self._world.network.faults.late = 0.0
        self._world.clock.jumped_ms = 0
