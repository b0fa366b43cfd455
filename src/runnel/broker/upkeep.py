"""The broker's recurring work: retention, checkpoints, expiry, and the watch on the loop's lag.

Each task is one `async` loop around plain calls; file work goes to a worker. The wall clock is
watched against the monotonic one: after a jump forward, retention by age stands still, because
every record would look a year old at once (S33).
"""

import asyncio
import itertools
import logging
from typing import Final

from runnel.broker.log_fields import about
from runnel.broker.partitions import Partitions
from runnel.broker.ticks import next_tick, tick_in_s
from runnel.broker.uninterrupted import uninterrupted
from runnel.config.settings import Settings
from runnel.errors import RunnelError
from runnel.exporter.layout import LOOP_LAG
from runnel.metrics import Metrics, Slot
from runnel.ports import Clock, Workers
from runnel.storage.store import LogStore

_log = logging.getLogger(__name__)
TRASH_INTERVAL_MS: Final = 1_000
LAG_PROBE_MS: Final = 250
LAG_ALARM_MS: Final = 200
TOLD_EVERY_PROBES: Final = 4


class Upkeep:
    """Owned by the broker; `tasks` gives the coroutines that run as long as it does."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        workers: Workers,
        logs: LogStore,
        partitions: Partitions,
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._workers = workers
        self._logs = logs
        self._partitions = partitions
        self._metrics = metrics
        self._checkpointing = asyncio.Lock()

    async def retain(self) -> None:
        """Delete what `retention.ms` and `retention.bytes` no longer cover, and roll by age."""
        while True:
            await asyncio.sleep(self._settings.log_retention_check_interval_ms / 1000)
            now_ms = self._clock.wall_ms()
            for partition in list(self._partitions):
                try:
                    partition.log.expire_producers(now_ms)
                    partition.log.maybe_roll(now_ms)
                    for deleted in partition.log.retain(now_ms, partition.high_watermark):
                        self._metrics.add(Slot.RETENTION_DELETED_SEGMENTS)
                        self._metrics.add(Slot.RETENTION_DELETED_BYTES, deleted.size_bytes)
                        name = partition.topic_partition
                        _log.info("%s: %s", name, deleted, extra=about(name))
                except RunnelError as error:
                    name = partition.topic_partition
                    _log.error("retention of %s: %s", name, error, extra=about(name))
                await asyncio.sleep(0)  # ten thousand partitions must not be one long step

    async def empty_trash(self) -> None:
        """Remove what was deleted `file.delete.delay.ms` ago; retention looks far less often."""
        while True:
            await next_tick(TRASH_INTERVAL_MS / 1000)
            for purge in self._logs.purge():
                await self._workers.run(purge.run)
                for error in purge.errors:
                    _log.error("what was deleted stays on the disk: %s", error)

    async def checkpoint(self) -> None:
        """Write high watermarks, recovery points and log starts, so that a restart knows them."""
        interval_ms = min(
            self._settings.replica_high_watermark_checkpoint_interval_ms,
            self._settings.log_flush_offset_checkpoint_interval_ms,
            self._settings.log_flush_start_offset_checkpoint_interval_ms,
        )
        written = -1
        while True:
            await next_tick(interval_ms / 1000)
            now = self._partitions.fingerprint()
            if now == written:
                continue
            try:
                await self.write_checkpoints()
                written = now
            except OSError as error:  # the next tick tries again; a crash would scan more
                _log.error("checkpoints cannot be written: %s", error)

    async def write_checkpoints(self) -> None:
        """What is so now is on disk when this returns. Raises OSError."""
        async with self._checkpointing:
            await uninterrupted(self._write_checkpoints())

    async def _write_checkpoints(self) -> None:
        write = self._logs.begin_checkpoints(self._partitions.high_watermarks())
        if write is not None:
            await self._workers.run(write.run)
            self._logs.end_checkpoints(write)

    async def watch_lag(self) -> None:
        """How late the loop runs what is due: the one number that says whether anything blocks.

        That it says anything at all is the broker's heartbeat, told to the exporter with all else.
        """
        slots, loop = self._metrics.slots, asyncio.get_running_loop()
        for probe in itertools.count():
            if probe % TOLD_EVERY_PROBES == 0:
                self._metrics.publish()
            before = slots[Slot.HEARTBEAT_MS] = self._clock.monotonic_ms()
            wait_s = tick_in_s(loop, LAG_PROBE_MS / 1000)
            await asyncio.sleep(wait_s)
            lag_ms = max(self._clock.monotonic_ms() - before - round(wait_s * 1000), 0)
            self._metrics.observe_us(LOOP_LAG, lag_ms * 1000)
            if lag_ms > slots[Slot.LOOP_LAG_MS_MAX]:
                slots[Slot.LOOP_LAG_MS_MAX] = lag_ms
            if lag_ms > LAG_ALARM_MS:
                _log.warning(
                    "the event loop was blocked for %d ms", lag_ms, extra={"lag_ms": lag_ms}
                )
