"""The coordinators that run on this broker: one shard per partition of an internal topic it leads.

The internal topic comes into being with the first request for a coordinator. A shard is opened
when this broker begins to lead its partition, loaded (`journal_loading.py`), and closed when
leadership ends. Until it is loaded its clients are told to come again. If it cannot be loaded, it
is tried again for as long as this broker leads it, at growing intervals: a disk may recover.
"""

import asyncio
import logging
import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple

from runnel.broker.journal import PartitionJournal, partition_of
from runnel.broker.journal_loading import load
from runnel.broker.partition import Partition
from runnel.broker.settling import is_decided
from runnel.broker.topics import Topics
from runnel.broker.waiting import Parked, Waiting
from runnel.cluster.topics import NewTopic
from runnel.coordinator.runtime import Deferred, M, Shard
from runnel.coordinator.timers import NEVER_MS, Timer, Timers
from runnel.errors import ErrorCode, RunnelError, WireError
from runnel.ports import Clock, Workers

_log = logging.getLogger(__name__)
SETTLE_TIMEOUT_MS: Final = 60_000
RETRY_FIRST_MS: Final = 1_000  # after a journal could not be loaded
RETRY_MAX_MS: Final = 60_000
WORTH_TELLING_MS: Final = 1_000  # fifty small ones at every start are not


class TimerLoop:
    """Runs what is due in all coordinators. One handle of the loop, for the earliest."""

    def __init__(self, timers: Timers, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._timers = timers
        self._clock = clock
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None
        timers.on_earlier = self._set

    def _set(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        next_ms = self._timers.next_ms()
        if next_ms < NEVER_MS:
            delay_ms = max(0, next_ms - self._clock.monotonic_ms())
            self._handle = self._loop.call_later(delay_ms / 1000, self._run)

    def _run(self) -> None:
        self._handle = None
        try:
            self._timers.run_due(self._clock.monotonic_ms())
        finally:
            self._set()

    def stop(self) -> None:
        self._timers.on_earlier = lambda: None
        if self._handle is not None:
            self._handle.cancel()


class Coordinators(Generic[M]):
    """Owned by the broker: all shards of one internal topic."""

    def __init__(
        self,
        topic: str,
        new_topic: Callable[[], NewTopic],
        import_machine: Callable[[], Callable[[Shard[M]], M]],
        clock: Clock,
        timers: Timers,
        workers: Workers,
        waiting: Waiting,
    ) -> None:
        self.topic = topic
        self._new_topic = new_topic
        self._import_machine = import_machine  # and give how to make one
        self._clock = clock
        self._timers = timers
        self._workers = workers
        self._waiting = waiting
        self._shards: dict[int, Shard[M]] = {}
        self._to_load: asyncio.Queue[Shard[M]] = asyncio.Queue()
        self._failures: dict[int, _Failure] = {}  # of those led here; gone when one is loaded
        self._creating = asyncio.Lock()
        self._partition_count = 0

    def __iter__(self) -> Iterator[Shard[M]]:
        """Those that are loaded, in the order of their numbers."""
        for index in sorted(self._shards):
            if self._shards[index].is_loaded:
                self._shards[index].write_gathered()
                yield self._shards[index]

    # Who answers for what

    def index_of(self, key: str) -> int:
        """The partition that a group or transactional id belongs to. Raises if there is none."""
        if not self._partition_count:
            raise RunnelError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.topic} is not there yet")
        return java_hash(key) % self._partition_count

    def shard_of(self, key: str) -> Shard[M]:
        """Raises NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        shard = self.gathering_shard_of(key)
        shard.write_gathered()
        return shard

    def gathering_shard_of(self, key: str) -> Shard[M]:
        """For whoever gathers: what this turn has gathered is not written yet. Raises as well."""
        if not self._partition_count:
            raise RunnelError(ErrorCode.NOT_COORDINATOR, f"{self.topic} is not there yet")
        return self._shard(self.index_of(key))

    def has(self, index: int) -> bool:
        """Whether its shard is open here, though perhaps not loaded yet, or not to be loaded."""
        return index in self._shards or index in self._failures

    def shard(self, index: int) -> Shard[M]:
        """Raises as `shard_of`."""
        shard = self._shard(index)
        shard.write_gathered()
        return shard

    def _shard(self, index: int) -> Shard[M]:
        shard = self._shards.get(index)
        if shard is None:
            failure = self._failures.get(index)
            why = "is led elsewhere" if failure is None else f"cannot be loaded: {failure.why}"
            raise RunnelError(ErrorCode.NOT_COORDINATOR, f"{self.topic}-{index} {why}")
        if not shard.is_loaded:
            raise RunnelError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.topic}-{index}")
        return shard

    def is_loading(self) -> bool:
        return any(not shard.is_loaded for shard in self._shards.values())

    async def ensure_topic(self, topics: Topics) -> None:
        """Create the internal topic unless it is there. Raises RunnelError."""
        async with self._creating:
            if not self._partition_count:
                # In a worker: on the loop all others would wait for it, a tenth of a second.
                await self._workers.run(self._import_machine)
                try:
                    await topics.create(self._new_topic(), validate_only=False)
                except RunnelError as error:
                    if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                        raise

    # Leadership

    def count_changed(self, partition_count: int) -> None:
        """How many partitions the topic has; 0 if there is no such topic."""
        self._partition_count = partition_count

    def role_changed(self, partition: Partition) -> None:
        """This partition of the topic is led here, in a new epoch perhaps, or no longer."""
        index = partition.log.index
        shard = self._shards.get(index)
        if shard is not None:
            if partition.is_leader and shard.epoch == partition.leader_epoch:
                return
            self._close(shard)
        failure = self._failures.get(index)
        if failure is not None:
            if partition.is_leader and failure.epoch == partition.leader_epoch:
                return  # its time comes
            del self._failures[index]
            failure.retry.cancel()
        if partition.is_leader:
            self._open(partition)

    def _open(self, partition: Partition) -> None:
        shard: Shard[M] = Shard(
            partition.log.index,
            partition.leader_epoch,
            PartitionJournal(partition, self._clock),
            self._clock,
            self._timers,
            self._answered,
        )
        shard.machine = self._import_machine()(shard)
        self._shards[shard.index] = shard
        if partition.log.log_end_offset == partition.log.log_start_offset:
            self._loaded(shard)
        else:
            self._to_load.put_nowait(shard)

    def _close(self, shard: Shard[M]) -> None:
        del self._shards[shard.index]
        shard.close()
        for deferred in shard.deferred:
            if deferred.waiters:
                self._waiting.moved(deferred)

    def _answered(self, shard: Shard[Any], deferred: Deferred[Any]) -> None:
        if not deferred.waiters:
            return
        after_offset = deferred.after_offset
        if is_decided(shard, after_offset):
            self._waiting.moved(deferred)
            return

        def attempt(final: bool) -> bool | None:
            return final or is_decided(shard, after_offset) or None

        def wake(_is_over: bool) -> None:
            self._answered(shard, deferred)  # as long as somebody waits for it

        self._waiting.park(Parked([partition_of(shard)], SETTLE_TIMEOUT_MS, attempt), wake)

    # Loading

    async def run(self) -> None:
        """Runs as long as the broker: loads one shard after the other."""
        while True:
            shard = await self._to_load.get()
            began_ms = self._clock.monotonic_ms()
            try:
                await load(shard, self._clock, self._workers)
            except (RunnelError, WireError, OSError) as error:
                self._failed(shard, str(error))
            except Exception as error:  # noqa: BLE001  # our own bug: the other shards must not pay
                _log.exception("%s-%d", self.topic, shard.index, extra=self._about(shard))
                self._failed(shard, repr(error))
            else:
                if shard.is_open:
                    self._loaded(shard)
                    self._tell_loaded(shard, self._clock.monotonic_ms() - began_ms)
            self._to_load.task_done()

    def _failed(self, shard: Shard[M], why: str) -> None:
        """What it holds has no coordinator for the moment. What was replayed of it is dropped."""
        if not shard.is_open:
            return  # whoever leads it now will see for himself
        self._close(shard)
        partition, index = partition_of(shard), shard.index
        before = self._failures.get(index)
        retry_ms = RETRY_FIRST_MS if before is None else min(before.retry_ms * 2, RETRY_MAX_MS)
        retry = Timer(self._timers, lambda: self._open(partition))
        self._failures[index] = _Failure(why, shard.epoch, retry_ms, retry)
        retry.start(self._clock.monotonic_ms() + retry_ms)
        _log.error(
            "%s-%d cannot be loaded: %s; its clients wait, and it is tried again in %d s. If that"
            " does not help, look at the disk and run `runnel storage verify %s`",
            self.topic,
            index,
            why,
            retry_ms // 1000,
            partition.log.folder,
            extra=self._about(shard) | {"reason": why, "retry_ms": retry_ms},
        )

    async def wait_loaded(self) -> None:
        """Until all that are led by now are loaded, or cannot be."""
        await self._to_load.join()

    def _loaded(self, shard: Shard[M]) -> None:
        shard.machine.loaded()
        shard.is_loaded = True
        self._failures.pop(shard.index, None)

    def _tell_loaded(self, shard: Shard[M], took_ms: int) -> None:
        level = logging.INFO if took_ms >= WORTH_TELLING_MS else logging.DEBUG
        extra = {**self._about(shard), "took_ms": took_ms}
        _log.log(level, "%s-%d was loaded in %d ms", self.topic, shard.index, took_ms, extra=extra)

    def _about(self, shard: Shard[M]) -> dict[str, object]:
        return {"topic": self.topic, "partition": shard.index}


class _Failure(NamedTuple):
    """A journal that could not be loaded in this epoch, and when it is tried again."""

    why: str
    epoch: int
    retry_ms: int
    retry: Timer


@lru_cache(maxsize=4096)
def java_hash(text: str) -> int:
    """The absolute String.hashCode(), over UTF-16 code units: places groups as Kafka does."""
    units = text.encode("utf-16-le", "surrogatepass")
    found = 0
    for unit in struct.unpack(f"<{len(units) // 2}H", units):
        found = (found * 31 + unit) & 0xFFFFFFFF
    if found == 1 << 31:
        return 0  # Java's smallest int has no absolute value
    return found if found < 1 << 31 else (1 << 32) - found
