"""Makes appended bytes durable off the loop, and tells partitions how far.

One round runs at a time. Whatever is appended in `ack` durability while a round runs waits for
the next one and shares it: group commit without a timer. A failed fsync is never retried: the
kernel may have dropped the pages it could not write, so the log goes offline with the reason.
"""

import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from time import monotonic_ns
from typing import Final

from runnel.broker.log_fields import about
from runnel.broker.partition import Partition
from runnel.broker.ticks import tick_in_s
from runnel.broker.uninterrupted import uninterrupted
from runnel.exporter.layout import FLUSH_TIME
from runnel.metrics import Metrics, Slot
from runnel.ports import Workers
from runnel.storage.flush import Flush

_log = logging.getLogger(__name__)
RETRY_MS: Final = 1
FLUSHED_AT_ONCE: Final = 64


class Flusher:
    """Owned by the broker, started and stopped with it."""

    __slots__ = ("_metrics", "_requested", "_timed", "_wanted", "_workers", "moved", "touched")

    def __init__(self, workers: Workers, metrics: Metrics) -> None:
        self._workers = workers
        self._metrics = metrics
        self.touched: dict[Partition, None] = {}  # written to since the last tick
        self.moved: dict[Partition, None] = {}  # the same, until whoever tells of them empties it
        self._wanted: dict[Partition, None] = {}
        self._timed: dict[Partition, asyncio.TimerHandle] = {}
        self._requested = asyncio.Event()

    def request(self, partition: Partition) -> None:
        """The partition has bytes that somebody waits for. Cheap: it is on the produce path."""
        self._wanted[partition] = None
        self._requested.set()

    def request_within(self, partition: Partition, delay_ms: int) -> None:
        """For `flush.messages` and `flush.ms`: once for all that is appended until then."""
        if delay_ms == 0:
            self.request(partition)
        elif partition not in self._timed:
            self._timed[partition] = asyncio.get_running_loop().call_later(
                delay_ms / 1000, self._time_is_up, partition
            )

    def _time_is_up(self, partition: Partition) -> None:
        del self._timed[partition]
        self.request(partition)

    def forget(self, partition: Partition) -> None:
        """It was deleted."""
        self.touched.pop(partition, None)
        self.moved.pop(partition, None)
        self._wanted.pop(partition, None)
        timer = self._timed.pop(partition, None)
        if timer is not None:
            timer.cancel()

    async def run_on_request(self) -> None:
        """The group commit of `ack` durability."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            wanted, self._wanted = self._wanted, {}
            refused = await uninterrupted(self._flush(wanted, sync_active=True))
            if refused:  # the tick has it in hand: come again when that is over
                await asyncio.sleep(RETRY_MS / 1000)
                for partition in refused:
                    self.request(partition)

    async def run_every(self, interval_ms: int) -> None:
        """The tick of `interval` durability, which also brings index entries to the disk."""
        loop = asyncio.get_running_loop()
        while True:
            wait_s = tick_in_s(loop, interval_ms / 1000)
            await asyncio.sleep(min(wait_s, interval_ms / 1000))  # what is promised is no more
            touched = list(self.touched)
            self.moved.update(self.touched)
            self.touched.clear()
            for partition in await uninterrupted(self._flush(touched, sync_active=None)):
                self.touched[partition] = None

    async def _flush(
        self, partitions: Iterable[Partition], *, sync_active: bool | None
    ) -> list[Partition]:
        """Flush these, some at a time, because each holds its files open meanwhile.

        Returns those that must come again: another flush was busy with them, or there were no
        descriptors.
        """
        again: list[Partition] = []
        rest = list(partitions)
        for start in range(0, len(rest), FLUSHED_AT_ONCE):
            begun: list[tuple[Partition, Flush]] = []
            for partition in rest[start : start + FLUSHED_AT_ONCE]:
                flush = partition.log.begin_flush(sync_active=sync_active)
                if flush is not None:
                    begun.append((partition, flush))
                elif partition.log.is_flushing:
                    again.append(partition)
            if begun:
                took_us = await self._workers.run(partial(_run_all, begun))
                self._metrics.observe_us(FLUSH_TIME, took_us)
                again += self._end(begun)
        return again

    def _end(self, begun: list[tuple[Partition, Flush]]) -> list[Partition]:
        self._metrics.add(Slot.FLUSHES, len(begun))
        for partition, flush in begun:
            partition.log.end_flush(flush)
            if flush.error is not None:
                self._metrics.add(Slot.FLUSHES_FAILED)
                where = about(partition.topic_partition)
                _log.error("flush failed: %s", partition.log.offline, extra=where)
            partition.flushed()
        return [partition for partition, flush in begun if flush.postponed]


def _run_all(begun: list[tuple[Partition, Flush]]) -> int:
    """How long it took, in microseconds."""
    began_ns = monotonic_ns()
    for _, flush in begun:
        flush.run()
    return (monotonic_ns() - began_ns) // 1000
