"""Log compaction: which log is next, who rewrites it, and the moment the result takes its place.

The dirtiest log that is due comes first. Its closed segments are rewritten somewhere else, group by
group (`Rewriter`: a process of its own, or a worker); the loop only plans, and renames the files of
each group once they are complete. Whatever became of the log meanwhile is found out before that:
a group whose segments retention took is let go, and nothing at all is put into a log that was
truncated, moved, deleted or has failed. A log that cannot be read is left alone until the next
start, with a line that says where it is damaged.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Container, Sequence
from functools import partial
from typing import Final, NamedTuple

from runnel.broker.log_fields import about
from runnel.broker.partition import Partition
from runnel.broker.partitions import Partitions
from runnel.broker.rewriter import Rewriter, next_of
from runnel.config.cleaning import CleanerSettings
from runnel.errors import ErrorCode, RunnelError
from runnel.metrics import Metrics, Slot
from runnel.ports import Clock, Disk, Workers
from runnel.storage.cleaning_plan import (
    Cleanable,
    CleaningPlan,
    Limits,
    Planned,
    cleanable,
    plan_in_steps,
)
from runnel.storage.log import Log
from runnel.storage.log_cleaning import cleaned_paths
from runnel.types import TopicPartition

_log = logging.getLogger(__name__)
MB: Final = 1 << 20
LOOKED_AT_ONCE: Final = 64  # logs, before others get a turn of the loop


class Done(NamedTuple):
    """What one compaction came to."""

    read_bytes: int = 0
    written_bytes: int = 0


class Uncleanable(NamedTuple):
    """A log that cannot be read in full."""

    log: Log
    why: str


class Cleaner:
    """Owned by the broker, started and stopped with it."""

    def __init__(
        self,
        settings: CleanerSettings,
        clock: Clock,
        chance: random.Random,
        workers: Workers,
        partitions: Partitions,
        disks: tuple[tuple[Disk, Rewriter], tuple[Disk, Rewriter]],  # files, memory
        write_checkpoints: Callable[[], Awaitable[None]],
        moving: Container[TopicPartition],  # to other folders, just now
        metrics: Metrics,
    ) -> None:
        self.uncleanable: dict[TopicPartition, Uncleanable] = {}
        self._settings = settings
        self._clock = clock
        self._random = chance
        self._workers = workers
        self._partitions = partitions
        self._on_disk, self._in_memory = disks
        self._write_checkpoints = write_checkpoints
        self._moving = moving
        self._metrics = metrics
        self._cleaning: set[TopicPartition] = set()
        self._changed = asyncio.Event()

    @property
    def settings(self) -> CleanerSettings:
        return self._settings

    @settings.setter
    def settings(self, settings: CleanerSettings) -> None:
        if settings != self._settings:
            self._settings = settings
            self._changed.set()

    def is_cleaning(self, partition: TopicPartition) -> bool:
        return partition in self._cleaning

    async def run(self) -> None:
        """As long as the broker: so many logs at a time as there are threads."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                settings = self._settings
                found = None
                if settings.enable and len(self._cleaning) < settings.threads:
                    found = await self._dirtiest()
                if found is not None:
                    partition, work = found
                    self._cleaning.add(partition.topic_partition)
                    tasks.create_task(self._clean(partition, work))
                    continue
                if not self._cleaning:
                    self._on_disk[1].rest()
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), max(settings.backoff_ms, 1) / 1000)

    # Choosing

    async def _dirtiest(self) -> tuple[Partition, Cleanable] | None:
        now_ms = self._clock.wall_ms()
        self._forget_deleted()
        best: tuple[Partition, Cleanable] | None = None
        dirty_ratio = 0.0
        looked_at = 0
        for partition in list(self._partitions):
            looked_at += 1
            if looked_at % LOOKED_AT_ONCE == 0:
                await asyncio.sleep(0)
            log = partition.log
            name = partition.topic_partition
            if (
                not log.config.is_compacted
                or log.offline is not None
                or name in self._cleaning
                or name in self._moving
                or self._is_uncleanable(name, log)
            ):
                continue
            try:
                log.maybe_roll(now_ms)
                found = cleanable(log, partition.last_stable_offset, now_ms)
            except RunnelError as error:
                self._note_failure(log, error)
                continue
            except OSError as error:
                _log.error("%s: %s", name, error, extra=about(name))
                continue
            dirty_ratio = max(dirty_ratio, found.dirty_ratio)
            if found.is_due and (best is None or found.dirty_ratio > best[1].dirty_ratio):
                best = partition, found
        slots = self._metrics.slots
        slots[Slot.CLEANER_DIRTY_PERCENT_MAX] = round(100 * dirty_ratio)
        slots[Slot.CLEANER_LAST_LOOK_MS] = now_ms
        if best is not None and not self._is_wanted(best[0], best[1].log):
            return None  # it was deleted or moved while others had their turn
        return best

    # Cleaning

    async def _clean(self, partition: Partition, found: Cleanable) -> None:
        name, log = partition.topic_partition, found.log
        advanced = False
        try:
            started_ms = self._clock.monotonic_ms()
            before = log.first_dirty_offset
            done = await self._rewrite(partition, found)
            advanced = log.first_dirty_offset > before
            if done.read_bytes:
                _log.info(
                    "cleaned %s: %.1f MB -> %.1f MB in %.1f s, up to offset %d",
                    name,
                    done.read_bytes / MB,
                    done.written_bytes / MB,
                    (self._clock.monotonic_ms() - started_ms) / 1000,
                    log.first_dirty_offset,
                    extra=about(name),
                )
        except RunnelError as error:
            if self._is_wanted(partition, log):
                self._note_failure(log, error)
        except OSError as error:
            if self._is_wanted(partition, log):
                _log.error(
                    "%s was not cleaned, to be tried again: %s", name, error, extra=about(name)
                )
        except Exception as error:  # noqa: BLE001  # our own bug: the broker must not pay with its life
            _log.exception("%s", name, extra=about(name))
            self._leave_alone(log, repr(error))
        finally:
            self._cleaning.discard(name)
            if advanced:  # otherwise only time can change anything
                self._changed.set()

    async def _rewrite(self, partition: Partition, found: Cleanable) -> Done:
        """Raises OSError and RunnelError. What is in place by then stays there, and is right."""
        log = found.log
        # Gaps between offsets are taken for loss past the recovery point (`recovery.py`).
        await self._write_checkpoints()
        if not self._is_wanted(partition, log):
            return Done()
        planned = await self._plan(partition, found)
        if planned is None:
            return Done()
        work, groups = planned
        disk, rewriter = self._in_memory if log.config.storage == "memory" else self._on_disk
        generation = log.generation
        waiting = iter(groups)
        mapped_offset, done = work.first_dirty_offset, Done()
        is_whole, is_abandoned = True, False
        results = rewriter.rewrite(work)
        try:
            while True:
                cleaned = await next_of(results, lambda: self._is_wanted(partition, log))
                if not self._is_wanted(partition, log) or log.generation != generation:
                    _log.info(
                        "%s changed while it was cleaned: given up",
                        log.partition,
                        extra=about(log.partition),
                    )
                    return done
                if cleaned is None:
                    break
                old = next(waiting)
                assert old[0].base_offset == cleaned.base_offset
                mapped_offset = cleaned.mapped_offset
                if log.may_replace(old):
                    log.replace_segments(old, cleaned.size_bytes)
                    done = Done(
                        done.read_bytes + cleaned.read_bytes,
                        done.written_bytes + cleaned.size_bytes,
                    )
                    self._metrics.add(Slot.CLEANER_READ_BYTES, cleaned.read_bytes)
                    self._metrics.add(Slot.CLEANER_WRITTEN_BYTES, cleaned.size_bytes)
                    continue
                is_whole = False
                # At once: a start that finds them finishes no replacement after them (`folder.py`).
                useless = cleaned_paths(log.folder, cleaned.base_offset)
                await self._workers.run(partial(_remove, disk, useless))
        except GeneratorExit:  # as after a crash: there is no loop in which to wait for anything
            is_abandoned = True
            raise
        finally:
            if not is_abandoned:
                await results.aclose()
                await self._workers.run(partial(_remove_cleaned, disk, work))
        if self._is_wanted(partition, log):
            await self._workers.run(lambda: disk.sync_dir(log.folder))
            self._note_cleaned(log, mapped_offset, is_whole and log.generation == generation)
            await self._write_checkpoints()
        return done

    async def _plan(self, partition: Partition, found: Cleanable) -> Planned | None:
        """None if there is nothing left to do, as far as anybody can tell: the next look will."""
        log = found.log
        now = cleanable(log, partition.last_stable_offset, self._clock.wall_ms())
        found = now._replace(end_offset=min(now.end_offset, found.end_offset))
        if log.segments[0].base_offset >= found.end_offset:
            return None  # retention has taken all of it meanwhile
        seed, generation = self._random.randbytes(16), log.generation
        steps = plan_in_steps(found, self._clock.wall_ms(), seed, self._limits())
        while True:
            try:
                next(steps)
            except StopIteration as end:
                planned: Planned = end.value
                return planned if log.segments[0] is planned.groups[0][0] else None
            await asyncio.sleep(0)
            if not self._is_wanted(partition, log) or log.generation != generation:
                return None

    def _note_cleaned(self, log: Log, mapped_offset: int, is_whole: bool) -> None:
        """What was not replaced may hold values whose tombstones must not go before them, and what
        was truncated meanwhile is dirty when it is written again."""
        if is_whole:
            log.first_dirty_offset = mapped_offset
        self._metrics.add(Slot.CLEANER_RUNS)

    def _limits(self) -> Limits:
        settings = self._settings
        threads = max(settings.threads, 1)
        return Limits(
            settings.dedupe_buffer_bytes // threads,
            settings.effective_load_factor,
            settings.io_buffer_bytes // threads,
            settings.io_max_bytes_per_second / threads,
        )

    def _is_wanted(self, partition: Partition, log: Log) -> bool:
        """Not of a log on its way to another folder: a value that is copied must not be followed by
        the place where its tombstone was.
        """
        return (
            self._partitions.find(*partition.topic_partition) is partition
            and partition.log is log
            and log.offline is None
            and partition.topic_partition not in self._moving
        )

    def _forget_deleted(self) -> None:
        for name in [n for n in self.uncleanable if self._partitions.find(*n) is None]:
            del self.uncleanable[name]
            self._metrics.slots[Slot.CLEANER_UNCLEANABLE] = len(self.uncleanable)

    def _is_uncleanable(self, partition: TopicPartition, log: Log) -> bool:
        found = self.uncleanable.get(partition)
        return found is not None and found.log is log  # not a namesake that was deleted

    def _note_failure(self, log: Log, error: RunnelError) -> None:
        """What the disk refuses passes, or takes the log offline; what is damaged stays so."""
        if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
            _log.error(
                "%s was not cleaned, to be tried again: %s",
                log.partition,
                error,
                extra=about(log.partition),
            )
        else:
            self._leave_alone(log, str(error))

    def _leave_alone(self, log: Log, why: str) -> None:
        _log.error(
            "%s cannot be cleaned, and is left as it is: %s",
            log.partition,
            why,
            extra=about(log.partition),
        )
        self.uncleanable[log.partition] = Uncleanable(log, why)
        self._metrics.slots[Slot.CLEANER_UNCLEANABLE] = len(self.uncleanable)


def _remove_cleaned(disk: Disk, plan: CleaningPlan) -> None:
    for group in plan.groups:
        _remove(disk, cleaned_paths(plan.folder, group[0].base_offset))


def _remove(disk: Disk, paths: Sequence[str]) -> None:
    """What was not put in place. A start would remove it too."""
    for path in paths:
        with contextlib.suppress(OSError):
            disk.remove(path)
