"""One machine, its disk and its network, and the broker that lives on it, time after time.

The broker is the real one, made by `server.build`; only its ports are ours. A life ends by a clean
stop, by a kill (the page cache stays) or by a power loss (what was not synced goes, in part or
whole); the disk, the metadata store and the clients live on. At a power loss the world writes down
which offsets may be gone by the promise of `runnel.durability`, see `may_lose_from`.
"""

import asyncio
import logging
import traceback
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final

from runnel.broker import server
from runnel.config.settings import load
from runnel.errors import RunnelError
from runnel.types import TopicPartition
from tests.simulated.disk import SimDisk
from tests.simulated.loop import START_SECONDS, Process, SimClock, SimLoop, SimWorkers
from tests.simulated.network import Faults, Network
from tests.simulated.store import FakeStore, StoreFaults
from tests.support.history import History, Outcome, Send

DATA_DIRS: Final = ("/data", "/more")
UP_SECONDS_MAX: Final = 60.0
# An `interval` topic is flushed every second; slow workers may take a second more, twice.
INTERVAL_PROMISE_MS: Final = 4000


@dataclass(frozen=True)
class Topic:
    name: str
    partition_count: int
    configs: dict[str, str] = field(default_factory=dict)
    retention_deletes: bool = False
    created_with: int = 0  # partitions; the administrator adds the others

    @property
    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, index) for index in range(self.partition_count)]

    @property
    def is_in_memory(self) -> bool:
        return self.configs.get("runnel.storage") == "memory"


# Segments of a few KiB: the limit on their index says so, since `segment.bytes` is at least 1 MiB.
SMALL: Final = {"segment.index.bytes": "72", "index.interval.bytes": "400"}
ACK: Final = {"runnel.durability": "ack"}
INTERVAL: Final = {"runnel.durability": "interval"}
SOURCE: Final = Topic("source", 2, {**ACK, **SMALL})
LEDGER: Final = Topic("ledger", 3, {**ACK, **SMALL})
COPY: Final = Topic("copy", 2, {**ACK, **SMALL})
TABLE: Final = Topic(
    "table",
    1,
    {
        **ACK,
        **SMALL,
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "2000",
    },
)
APART: Final = (LEDGER, COPY, TABLE)  # judged by `coordinated_checker` and `table`
TOPICS: Final = (
    Topic("ack", 2, {**ACK, **SMALL}),
    Topic("interval", 2, {**SMALL, **INTERVAL, "message.timestamp.type": "LogAppendTime"}),
    Topic("os", 1, {**SMALL, "runnel.durability": "os"}),
    Topic("squeezed", 1, {**ACK, **SMALL, "compression.type": "zstd"}),
    Topic("hour", 1, {**ACK, "retention.ms": "3600000", "segment.ms": "5000"}),
    Topic("short", 1, {**ACK, **SMALL, "retention.bytes": "6000"}, retention_deletes=True),
    Topic("trimmed", 1, {**SMALL, **INTERVAL, "runnel.validation": "records"}),
    Topic("grown", 4, {**ACK, **SMALL}, created_with=1),
    Topic("memory", 1, {**SMALL, "runnel.storage": "memory"}),
    SOURCE,
)
SETTINGS: Final = {
    "node.id": "1",
    "listeners": "PLAINTEXT://broker:9092",
    "log.dirs": ",".join(DATA_DIRS),
    "auto.create.topics.enable": "false",
    "runnel.durability": "ack",  # of the coordinators' own topics
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "300",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
    "log.index.size.max.bytes": "120",  # so that their segments are small and compacted
    "log.index.interval.bytes": "400",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.min.cleanable.ratio": "0.1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "3000",
    "log.flush.start.offset.checkpoint.interval.ms": "3000",
    "replica.high.watermark.checkpoint.interval.ms": "3000",
}


@dataclass
class Life:
    """One run of the broker's process."""

    process: Process
    began: int  # in the history
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    is_over: bool = False  # it came to its own end, so that nothing is left to crash
    broker: server.Broker | None = None
    main: "asyncio.Task[None] | None" = None


class _Complaints(logging.Handler):
    """Keeps what the broker logs about its own bugs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.tracebacks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.tracebacks.append(logging.Formatter().format(record))


class World:
    """Owned by one run."""

    def __init__(self, loop: SimLoop, seed: int) -> None:
        self.seed = seed
        self.loop = loop
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.trace: list[str] = []
        self.clock = SimClock(loop)
        self.history = History(self.clock.monotonic_ms)
        self.disk = SimDisk(seed)
        self.disk.cold_probability = self.chance_for("cold").choice((0.0, 0.1, 0.4))
        for folder in DATA_DIRS:
            self.disk.make_dir(folder)
        self.disk.sync_dir("/")
        self.workers = SimWorkers(self.chance_for("workers"))
        chance = self.chance_for("faults")
        self.network = Network(
            loop,
            self.chance_for("network"),
            Faults(
                cut=chance.choice((0.0, 0.2, 0.6)),
                slow=0.1,
                latency_ms=chance.uniform(0.3, 8),
                late=chance.choice((0.0, 0.1, 0.3)),
            ),
        )
        self.store = FakeStore(
            self.chance_for("store"), StoreFaults(unknown=0.05, delay_ms=5, compact=0.02)
        )
        self.life: Life | None = None
        self.complaints = _Complaints()
        self._settings, _ = load(SETTINGS, {}, None)
        self._flushed: dict[TopicPartition, int] = {}

    def chance_for(self, whom: str) -> Random:
        """Each part draws from a generator of its own, so that they do not shift each other."""
        return Random(f"{self.seed}/{whom}")

    def note(self, text: str) -> None:
        """A line of the story that a single run prints."""
        self.trace.append(f"{self.loop.time() - START_SECONDS:8.3f}  {text}")

    # The broker's lives

    def boot(self) -> Life:
        """Start a process; whether it comes up is seen by `up`."""
        assert self.life is None
        self.counts["starts"] += 1
        process = Process(self.loop, f"broker {self.counts['starts']}")
        life = self.life = Life(process, self.history.tick())
        self.note(f"{life.process.name} starts")
        life.main = life.process.spawn(self._serve(life))
        # In no process: it must be heard also of a life that ends.
        life.main.add_done_callback(partial(self._ended, life), context=self.loop.outside)
        return life

    async def _serve(self, life: Life) -> None:
        """What `runnel serve` does, without its sockets."""
        number = self.counts["starts"]
        ports = server.Ports(
            clock=self.clock,
            disk=self.disk,
            memory_disk=SimDisk(self.seed + number),
            random=self.chance_for(f"broker {number}"),
            workers=self.workers,
            store=self.store,
            boot_id=f"boot {self.disk.counts['power losses']}",
        )
        async with asyncio.TaskGroup() as tasks:
            broker = await server.build(self._settings, ports)
            await broker.start(tasks, self._settings.advertised_listeners)
            life.broker = broker
            self.network.attach(life.process, broker)
            life.ready.set()
            self.note(f"{life.process.name} serves, {_ends(broker)}")
            await life.stop.wait()
            self.network.refuse()
            await broker.drain()
            self.network.close_all()
            await broker.stop()

    def _ended(self, life: Life, main: "asyncio.Task[None]") -> None:
        """The process came to its end: stopped, or because one of its parts failed."""
        error = None if main.cancelled() else main.exception()
        if error is not None and not _is_expected(error):
            self.failures.append("".join(traceback.format_exception(error)))
        if life is self.life:
            self.note(f"{life.process.name} ended, {error!r}")
            life.is_over = True
            if error is not None:
                self.counts["processes that ended themselves"] += 1
            elif rest := [task for task in life.process.tasks if not task.done()]:
                self.failures.append(f"tasks left after a stop: {rest}")
            self.crash()

    async def up(self) -> None:
        """Wait until a broker serves; one that a fault kept from starting is started again."""
        deadline = self.loop.time() + UP_SECONDS_MAX
        while self.life is None or not self.life.ready.is_set():
            if self.life is None:
                self.boot()
            await asyncio.sleep(0.05)
            if self.loop.time() > deadline:
                raise AssertionError(f"no broker within {UP_SECONDS_MAX} s")

    def crash(self, *, power: bool = False) -> None:
        """No step of the process runs any more; then the disk loses what it may."""
        lost = self._may_lose_from(power=power)
        if self.life is not None:
            if not self.life.is_over:
                self.counts["crashes by power loss" if power else "crashes by kill"] += 1
            self.note(f"{self.life.process.name} is gone" + ", with its power" * power)
            self.life.process.kill()
            self.network.detach()
            self.life = None
        if power:
            self.disk.lose_power()
        else:
            self.disk.kill()
        self.history.lossy_crash(lost)

    async def stop_cleanly(self) -> None:
        """As SIGTERM does."""
        life = self.life
        if life is None:
            return
        life.stop.set()
        deadline = self.loop.time() + UP_SECONDS_MAX
        while life is self.life:
            await asyncio.sleep(0.05)
            if self.loop.time() > deadline:
                raise AssertionError("the broker does not stop")
        self.counts["clean stops"] += 1

    # Promises

    def _may_lose_from(self, *, power: bool) -> dict[TopicPartition, int]:
        """What this end may take: memory always, and at a power loss what no fsync covered."""
        lost = {
            partition: 0 for topic in TOPICS if topic.is_in_memory for partition in topic.partitions
        }
        broker = self.life.broker if self.life is not None else None
        if broker is not None:
            for held in broker.partitions:
                self._flushed[held.topic_partition] = held.log.flushed_offset
        if power:
            for topic in TOPICS:
                if topic.configs.get("runnel.durability") != "ack" and not topic.is_in_memory:
                    for partition in topic.partitions:
                        lost[partition] = max(
                            self._flushed.get(partition, 0), self._promised(topic, partition)
                        )
        return lost

    def _promised(self, topic: Topic, partition: TopicPartition) -> int:
        """The end of what an `interval` topic acknowledged long enough ago, in this life."""
        life = self.life
        if life is None or life.broker is None:
            return 0
        if topic.configs.get("runnel.durability") != "interval":
            return 0
        held = life.broker.partitions.find(*partition)
        if held is None or held.log.offline is not None:
            return 0
        before_ms = self.clock.monotonic_ms() - INTERVAL_PROMISE_MS
        return max(
            (
                event.base_offset + len(event.values)
                for event in self.history.events
                if isinstance(event, Send)
                and event.partition == partition
                and event.outcome is Outcome.OK
                and event.began > life.began
                and event.ended_ms < before_ms
            ),
            default=0,
        )

    def totals(self) -> dict[str, int]:
        found: Counter[str] = Counter(self.counts)
        found.update({f"disk: {name}": count for name, count in self.disk.counts.items()})
        found.update({f"store: {name}": count for name, count in self.store.happened.items()})
        found.update({f"network: {name}": n for name, n in vars(self.network.counts).items()})
        return dict(found)


def _ends(broker: server.Broker) -> str:
    return " ".join(
        f"{held.topic_partition}:{held.log.log_end_offset}" for held in broker.partitions
    )


def _is_expected(error: BaseException) -> bool:
    """A broker may refuse to go on for want of its disk or its store, and for nothing else."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_expected, error.exceptions))
    return isinstance(error, OSError | RunnelError)
