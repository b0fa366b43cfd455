"""Tells the exporter how partitions, groups and transactions stand, off the path of any request.

Once a second: partitions that were written to, then the next of all others, a limited number in
turn. So a small broker is told of whole each second, and one with ten thousand partitions in some
ten seconds, what is written to always first. It is done a few rows at a time, with the loop's other
work in between.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from runnel.broker.coordinator_gauges import GroupGauges, TransactionGauges
from runnel.broker.coordinators import Coordinators
from runnel.broker.flusher import Flusher
from runnel.broker.log_dirs import LogDirs
from runnel.broker.partition_gauges import DirGauges, PartitionGauges
from runnel.broker.partitions import Partitions
from runnel.broker.shared_rows import SharedNames
from runnel.broker.ticks import next_tick
from runnel.broker.waiting import Waiting
from runnel.exporter.layout import Slot
from runnel.metrics import Metrics
from runnel.ports import Workers

if TYPE_CHECKING:  # a start without groups or transactions need not pay for them
    from runnel.coordinator.groups.machine import GroupMachine
    from runnel.coordinator.transactions.machine import TransactionMachine

_log = logging.getLogger(__name__)
TICK_S: Final = 1.0
REST_S: Final = 60.0  # after a failure
SWEPT_PER_TICK: Final = 1000  # while partitions come or go
SWEPT_WHEN_SETTLED: Final = 100  # what moves is told at once: the rest is retention, and can wait
AT_ONCE: Final = 25  # some microseconds each
DISKS_EVERY_S: Final = 10.0  # they are asked how full they are


class Gauges:
    """Owned by a broker that has an exporter, and started with it."""

    def __init__(
        self,
        metrics: Metrics,
        partitions: Partitions,
        flusher: Flusher,
        log_dirs: LogDirs,
        groups: "Coordinators[GroupMachine]",
        transactions: "Coordinators[TransactionMachine]",
        waiting: Waiting,
        workers: Workers,
    ) -> None:
        assert metrics.shared is not None
        self._metrics = metrics
        self._flusher = flusher
        self._log_dirs = log_dirs
        self._waiting = waiting
        self._workers = workers
        names = SharedNames(metrics.shared, metrics)
        self._partitions = PartitionGauges(metrics, names, partitions)
        self._groups = GroupGauges(metrics, names, groups)
        self._transactions = TransactionGauges(metrics, transactions)
        self._dirs = DirGauges(metrics, names)
        self._partition_sweep = _Sweep(self._partitions.sweep)
        self._coordinator_sweep = _Sweep(self._of_coordinators)

    async def run(self) -> None:
        """As long as the broker. A disk that does not answer holds up nothing else."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look_at_disks())
            while True:
                try:
                    await self.refresh()
                except Exception:  # noqa: BLE001  # our own bug: no client is to pay for it
                    _log.exception("the exporter is not told of everything")
                    await asyncio.sleep(REST_S)
                await next_tick(TICK_S)

    async def _look_at_disks(self) -> None:
        while True:
            self._dirs.refresh(await self._workers.run(self._log_dirs.spaces))
            await next_tick(DISKS_EVERY_S)

    async def refresh(self) -> None:
        """One tick: what moved, then a part of all the rest."""
        moved = self._flusher.moved | self._flusher.touched
        self._flusher.moved.clear()
        await _in_steps(self._partitions.refresh_each(moved))
        settled = self._partitions.is_settled
        count = SWEPT_WHEN_SETTLED if settled else SWEPT_PER_TICK
        await _in_steps(self._partition_sweep.next(count))
        await _in_steps(self._coordinator_sweep.next(SWEPT_PER_TICK))
        await self._partitions.look_for_oldest(self._workers)
        self._metrics.slots[Slot.REQUESTS_PARKED_NOW] = self._waiting.parked_count()

    def _of_coordinators(self) -> Iterator[None]:
        yield from self._groups.sweep()
        yield from self._transactions.sweep()


class _Sweep:
    """Round after round over all there is, a part of one at each tick."""

    def __init__(self, begin: Callable[[], Iterator[None]]) -> None:
        self._begin = begin
        self._round = begin()

    def next(self, count: int) -> Iterator[None]:
        """At the end of a round, or after a failure, the next tick begins another."""
        for _ in range(count):
            try:
                next(self._round)
            except StopIteration:
                self._round = self._begin()
                return
            yield


async def _in_steps(work: Iterator[None]) -> None:
    for count, _ in enumerate(work, 1):
        if count % AT_ONCE == 0:
            await asyncio.sleep(0)
