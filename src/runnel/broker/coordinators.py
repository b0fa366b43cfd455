"""The coordinators that run on this broker: one shard per partition of an internal topic it leads.

The internal topic comes into being with the first request for a coordinator. A shard is opened
when this broker begins to lead its partition, loaded in small steps so that the loop goes on
meanwhile, and closed when leadership ends. Until it is loaded its clients are told to come again.
"""

import asyncio
import logging
import struct
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, Final, Generic

from runnel.broker.journal import PartitionJournal, partition_of
from runnel.broker.partition import Partition
from runnel.broker.topics import Topics
from runnel.broker.waiting import Parked, Waiting
from runnel.cluster.topics import NewTopic
from runnel.coordinator.runtime import Deferred, M, Shard
from runnel.coordinator.timers import NEVER_MS, Timers
from runnel.errors import ErrorCode, RunnelError, WireError
from runnel.native.columns import ControlType
from runnel.native.journal_reading import JournalReader
from runnel.ports import Clock, Workers

_log = logging.getLogger(__name__)
READ_BYTES: Final = 256 * 1024
STEP_MS: Final = 5  # of loading, before others have a turn
STEP_RECORDS: Final = 64  # between looks at the clock
SETTLE_TIMEOUT_MS: Final = 60_000
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
        make: Callable[[Shard[M]], M],
        clock: Clock,
        timers: Timers,
        workers: Workers,
        waiting: Waiting,
    ) -> None:
        self.topic = topic
        self._new_topic = new_topic
        self._make = make
        self._clock = clock
        self._timers = timers
        self._workers = workers
        self._waiting = waiting
        self._shards: dict[int, Shard[M]] = {}
        self._to_load: asyncio.Queue[Shard[M]] = asyncio.Queue()
        self._creating = asyncio.Lock()
        self._partition_count = 0

    def __iter__(self) -> Iterator[Shard[M]]:
        """Those that are loaded, in the order of their numbers."""
        for index in sorted(self._shards):
            if self._shards[index].is_loaded:
                yield self._shards[index]

    # Who answers for what

    def index_of(self, key: str) -> int:
        """The partition that a group or transactional id belongs to. Raises if there is none."""
        if not self._partition_count:
            raise RunnelError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.topic} is not there yet")
        return java_hash(key) % self._partition_count

    def shard_of(self, key: str) -> Shard[M]:
        """Raises NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        if not self._partition_count:
            raise RunnelError(ErrorCode.NOT_COORDINATOR, f"{self.topic} is not there yet")
        return self.shard(self.index_of(key))

    def has(self, index: int) -> bool:
        """Whether its shard is open here, though perhaps not loaded yet."""
        return index in self._shards

    def shard(self, index: int) -> Shard[M]:
        shard = self._shards.get(index)
        if shard is None:
            raise RunnelError(ErrorCode.NOT_COORDINATOR, f"{self.topic}-{index} is led elsewhere")
        if not shard.is_loaded:
            raise RunnelError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.topic}-{index}")
        return shard

    def is_loading(self) -> bool:
        return any(not shard.is_loaded for shard in self._shards.values())

    async def ensure_topic(self, topics: Topics) -> None:
        """Create the internal topic unless it is there. Raises RunnelError."""
        async with self._creating:
            if not self._partition_count:
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
        if partition.is_leader:
            shard = Shard(
                index,
                partition.leader_epoch,
                PartitionJournal(partition, self._clock),
                self._clock,
                self._timers,
                self._answered,
            )
            shard.machine = self._make(shard)
            self._shards[index] = shard
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
        if shard.is_settled(deferred.after_offset):
            self._waiting.moved(deferred)
            return

        def attempt(final: bool) -> bool | None:
            is_over = final or not shard.is_open or shard.is_settled(deferred.after_offset)
            return True if is_over else None

        def wake(_is_over: bool) -> None:
            if shard.is_open:
                self._answered(shard, deferred)  # as long as somebody waits for it
            elif deferred.waiters:
                self._waiting.moved(deferred)

        self._waiting.park(Parked([partition_of(shard)], SETTLE_TIMEOUT_MS, attempt), wake)

    # Loading

    async def run(self) -> None:
        """Runs as long as the broker: loads one shard after the other."""
        while True:
            shard = await self._to_load.get()
            try:
                await self._load(shard)
            except (RunnelError, WireError, OSError) as error:
                self._give_up(shard, str(error))
            except Exception as error:  # noqa: BLE001  # our own bug: the other shards must not pay
                _log.exception("%s-%d", self.topic, shard.index, extra=self._about(shard))
                self._give_up(shard, repr(error))
            self._to_load.task_done()

    def _give_up(self, shard: Shard[M], why: str) -> None:
        """What it holds has no coordinator then, until a new leader or the next start tries."""
        _log.error(
            "%s-%d cannot be loaded: %s", self.topic, shard.index, why, extra=self._about(shard)
        )
        if shard.is_open:
            self._close(shard)

    async def wait_loaded(self) -> None:
        """Until all that are led by now are loaded, or cannot be."""
        await self._to_load.join()

    async def _load(self, shard: Shard[M]) -> None:
        """Replay all of the journal; nothing is written to it meanwhile, as nobody may ask yet."""
        log = partition_of(shard).log
        offset, began_ms = log.log_start_offset, self._clock.monotonic_ms()
        while offset < log.log_end_offset and shard.is_open:
            found = log.slice(offset, READ_BYTES, log.log_end_offset, at_least_one=True)
            if found is None:
                break
            data = await self._workers.run(partial(found.file.read_at, found.position, found.size))
            offset = await self._replay(shard, data, offset)
        if shard.is_open:
            self._loaded(shard)
            took_ms = self._clock.monotonic_ms() - began_ms
            level = logging.INFO if took_ms >= WORTH_TELLING_MS else logging.DEBUG
            extra = {**self._about(shard), "took_ms": took_ms}
            _log.log(
                level, "%s-%d was loaded in %d ms", self.topic, shard.index, took_ms, extra=extra
            )

    def _about(self, shard: Shard[M]) -> dict[str, object]:
        return {"topic": self.topic, "partition": shard.index}

    async def _replay(self, shard: Shard[M], data: bytes, offset: int) -> int:
        """Whole batches, from that offset on; the offset after them."""
        reader = JournalReader(shard.machine.straight)
        next_offset = reader.read(data, offset)
        assert next_offset > offset, (offset, len(data))
        pause_ms = self._clock.monotonic_ms() + STEP_MS
        for count, (key, value, producer_id) in enumerate(reader.steps):
            if isinstance(key, ControlType):
                is_commit = key is ControlType.COMMIT
                shard.machine.end_transaction(producer_id, is_commit=is_commit)
            else:
                shard.replay(key, value, producer_id)
            if not count % STEP_RECORDS and self._clock.monotonic_ms() >= pause_ms:
                await asyncio.sleep(0)
                pause_ms = self._clock.monotonic_ms() + STEP_MS
        return next_offset

    def _loaded(self, shard: Shard[M]) -> None:
        shard.machine.loaded()
        shard.is_loaded = True


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
