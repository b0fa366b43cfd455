"""One seed, one run: a broker under faults, clients that write a history, and the judgement.

python -m tests.simulated.run 7                 one run, printed; always the same
python -m tests.simulated.run --seeds 500       many, with totals, on all cores
"""

import argparse
import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import Final

from runnel.errors import ErrorCode
from runnel.native.compression import Compression
from runnel.types import TopicPartition
from runnel.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from runnel.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.simulated import loop as simulated
from tests.simulated.administrator import Administrator
from tests.simulated.consumer import Consumer, LastReader, RefusedError, Trimmer
from tests.simulated.crowd import COPIERS, MIXED, QUIET_S, Crowd
from tests.simulated.loop import SimLoop
from tests.simulated.nemesis import Nemesis
from tests.simulated.producer import Habits, Producer
from tests.simulated.rpc import LostError, Rpc
from tests.simulated.table import check_table
from tests.simulated.tuner import Tuner
from tests.simulated.world import APART, SOURCE, TOPICS, World
from tests.support.checker import Verdict, check
from tests.support.coordinated_checker import check_coordinated, check_copy
from tests.support.history import Outcome, Record, Send

FAULTY_SECONDS: Final = 30.0
CALM_SECONDS: Final = 6.0
PRODUCE_VERSIONS: Final = (3, 7, 8, 9, 12, 13)
FETCH_VERSIONS: Final = (4, 6, 7, 11, 12, 13, 15, 16, 18)
CODECS: Final = (
    Compression.NONE,
    Compression.NONE,
    Compression.GZIP,
    Compression.SNAPPY,
    Compression.LZ4,
    Compression.ZSTD,
)
# Each must have happened at least once in a long run, or the run shows nothing.
MUST_HAPPEN: Final = (
    "crashes by kill",
    "crashes by power loss",
    "disk: torn writes",
    "disk: dropped bytes",
    "disk: zeroed bytes",
    "disk: short writes",
    "disk: full",
    "disk: errors",
    "network: cuts",
    "network: half_frames",
    "network: silent_cuts",
    "network: slow_readers",
    "network: slices_warmed",
    "network: late_requests",
    "nemesis: set clock",
    "crashes while starting",
    "clean stops",
    "partitions added",
    "moves asked for",
    "moves seen under way",
    "crashes while a log moves",
    "moves finished",
    "sends_ok",
    "sends_fail",
    "sends_unknown",
    "requests repeated",
    "duplicates_suppressed",
    "duplicates_of_plain_producers",
    "acknowledged_and_lost_as_allowed",
    "acknowledged_and_deleted",
    "acknowledged_and_read",
    "settings altered",
    "settings in doubt",
    "grants",
    "grants in groups of both protocols",
    "members died",
    "members left",
    "commits_ok",
    "transactions_ok",
    "transactions_fail",
    "transactions_unknown",
    "transactions left open",
    "producers fenced",
    "copiers fenced",
    "records copied",
    "table records compacted away",
)


@dataclass(frozen=True)
class Result:
    seed: int
    digest: str
    failures: tuple[str, ...]
    totals: dict[str, int]
    trace: tuple[str, ...] = ()


def run_seed(seed: int) -> Result:
    """The whole of one run. Whatever goes wrong is among the failures."""
    runs: list[_Run] = []

    async def main(loop: SimLoop) -> None:
        runs.append(_Run(World(loop, seed)))
        await runs[0].play()

    logger = logging.getLogger("runnel")
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    failures: list[str] = []
    try:
        simulated.run(main)
    except (AssertionError, simulated.StalledError, RefusedError, LostError) as error:
        failures.append(f"{type(error).__name__}: {error} {error.__cause__ or ''}")
    (run,) = runs
    world = run.world
    logger.removeHandler(world.complaints)
    verdict = check(
        world.history,
        may_delete=[
            partition
            for topic in TOPICS
            if topic.retention_deletes
            for partition in topic.partitions
        ],
    )
    verdict.add(run.judge_coordinated())
    failures += world.failures
    failures += world.complaints.tracebacks
    failures += [str(anomaly) for anomaly in verdict.anomalies]
    totals = Counter(world.totals())
    totals.update(verdict.counts)
    return Result(seed, world.history.digest(), tuple(failures), dict(totals), tuple(world.trace))


class _Run:
    """The clients of one world, and the order of events."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._chance = world.chance_for("clients")
        self._topic_ids: dict[str, bytes] = {}
        self._producers: list[Producer] = []
        self._consumers: list[Consumer] = []
        self.crowd: Crowd | None = None
        self.verdict = Verdict()

    def judge_coordinated(self) -> Verdict:
        if self.crowd is not None:
            self.verdict.add(check_coordinated(self.crowd.coordinated, reborn=(MIXED,)))
        return self.verdict

    async def play(self) -> None:
        world = self.world
        logging.getLogger("runnel").addHandler(world.complaints)
        await world.up()
        await self._create_topics()
        clients = [*self._start_producers(), *self._start_consumers(), self._start_trimmer()]
        administrator = Administrator(world, world.chance_for("administrator"))
        clients.append(asyncio.create_task(administrator.run()))
        tuner = Tuner(world, world.chance_for("tuner"))
        clients.append(asyncio.create_task(tuner.run()))
        crowd = self.crowd = Crowd(world, self._topic_ids)
        clients += crowd.start()
        clock = asyncio.create_task(self._tell_disk_the_time())
        await Nemesis(world, world.chance_for("nemesis")).run(FAULTY_SECONDS)
        administrator.may_crash = False
        await world.up()
        if self._chance.random() < 0.5:
            world.crash(power=self._chance.random() < 0.5)
        else:
            await world.stop_cleanly()
        await world.up()
        healed = world.history.tick()
        await asyncio.sleep(CALM_SECONDS)
        for producer in self._producers:
            producer.stopping = True
        for consumer in (*self._consumers, self._trimmer):
            consumer.stopping = True
        administrator.stopping = tuner.stopping = True
        crowd.stop()
        done, late = await asyncio.wait(clients, timeout=120)
        for task in done:
            task.result()
        assert not late, f"clients that do not end: {late}"
        self._check_progress(healed)
        crowd.check_progress(healed)
        await asyncio.sleep(QUIET_S)
        first = await self._read_all("reader 1")
        committed, offsets = await crowd.read_all("committed 1"), await crowd.offsets()
        await world.stop_cleanly()
        await world.up()
        self._compare(first, await self._read_all("reader 2"))
        if (committed, offsets) != (await crowd.read_all("committed 2"), await crowd.offsets()):
            world.failures.append("what is committed is not the same after a clean restart")
        sources = {
            partition: [value for _, value in first[partition]] for partition in SOURCE.partitions
        }
        check_table(self.verdict, *await crowd.table())
        check_copy(self.verdict, sources, crowd.copies(committed), offsets[COPIERS])
        await world.stop_cleanly()
        clock.cancel()

    async def _create_topics(self) -> None:
        rpc = Rpc(self.world.network, "admin")
        every = (*TOPICS, *APART)
        wanted = [
            CreatableTopic(
                name=topic.name,
                num_partitions=topic.created_with or topic.partition_count,
                replication_factor=1,
                configs=[
                    CreatableTopicConfig(name=name, value=value)
                    for name, value in topic.configs.items()
                ],
            )
            for topic in every
        ]
        asked = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic.name) for topic in every],
            allow_auto_topic_creation=False,
        )
        while len(self._topic_ids) < len(every):
            try:
                response = await rpc.call(CreateTopicsRequest(topics=wanted), 7, timeout_s=30.0)
                for result in response.topics:
                    code = ErrorCode(result.error_code)
                    if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                        self.world.counts["topic creations refused"] += 1
                response = await rpc.call(asked, 12, timeout_s=30.0)
                for found in response.topics:
                    if found.error_code == ErrorCode.NONE and found.name:
                        self._topic_ids[found.name] = found.topic_id
            except LostError:
                await asyncio.sleep(0.1)
        rpc.close()

    def _start_producers(self) -> "list[asyncio.Task[None]]":
        every = [partition for topic in TOPICS for partition in topic.partitions]
        for number in range(5):
            idempotent = number < 3
            habits = Habits(
                acks=-1 if number % 2 == 0 else 1,
                idempotent=idempotent,
                burst_max=self._chance.choice((1, 3, 5)) if idempotent else 1,
                codec=self._chance.choice(CODECS),
                version=self._chance.choice(PRODUCE_VERSIONS),
                pause_s=self._chance.uniform(0.2, 0.9),
            )
            if habits.codec == Compression.ZSTD and habits.version < 7:
                habits = Habits(idempotent=idempotent, burst_max=1, version=7)
            self._producers.append(
                Producer(
                    self.world.network,
                    self.world.history,
                    f"p{number}",
                    every if number == 0 else self._some(every),
                    self._topic_ids,
                    habits,
                    self.world.chance_for(f"producer {number}"),
                )
            )
        return [asyncio.create_task(producer.run()) for producer in self._producers]

    def _start_consumers(self) -> "list[asyncio.Task[None]]":
        every = [partition for topic in TOPICS for partition in topic.partitions]
        for number in range(3):
            consumer = Consumer(
                self.world.network,
                self.world.history,
                f"c{number}",
                self._topic_ids,
                self.world.chance_for(f"consumer {number}"),
                self._chance.choice(FETCH_VERSIONS),
            )
            consumer.follow(
                self._some(every),
                uses_session=self._chance.random() < 0.6,
            )
            self._consumers.append(consumer)
        return [asyncio.create_task(consumer.run()) for consumer in self._consumers]

    def _some(self, every: list[TopicPartition]) -> list[TopicPartition]:
        return self._chance.sample(every, self._chance.randint(2, len(every)))

    def _start_trimmer(self) -> "asyncio.Task[None]":
        self._trimmer = Trimmer(
            self.world.network,
            self.world.history,
            "trimmer",
            self._topic_ids,
            self.world.chance_for("trimmer"),
            12,
        )
        return asyncio.create_task(self._trimmer.run_on(TopicPartition("trimmed", 0)))

    async def _tell_disk_the_time(self) -> None:
        while True:
            self.world.disk.now_ms = self.world.clock.wall_ms()
            await asyncio.sleep(0.2)

    def _check_progress(self, healed: int) -> None:
        """After the faults ended, every producer must have been able to write (I16)."""
        served = {
            event.client
            for event in self.world.history.events
            if isinstance(event, Send) and event.outcome is Outcome.OK and event.ended > healed
        }
        for producer in self._producers:
            self.world.counts["requests repeated"] += producer.repeated
            if producer.name not in served:
                self.world.failures.append(f"no-progress: {producer.name} after the faults ended")

    async def _read_all(self, name: str) -> dict[TopicPartition, tuple[Record, ...]]:
        reader = LastReader(
            self.world.network,
            self.world.history,
            name,
            self._topic_ids,
            Random(self.world.seed),
            12,
        )
        found = {
            partition: await reader.read_all(partition)
            for topic in TOPICS
            for partition in topic.partitions
        }
        reader.rpc.close()
        return found

    def _compare(
        self,
        first: dict[TopicPartition, tuple[Record, ...]],
        second: dict[TopicPartition, tuple[Record, ...]],
    ) -> None:
        """A clean restart changes nothing, but that retention and memory forget."""
        for topic in TOPICS:
            for partition in topic.partitions:
                again = second[partition]
                before = first[partition]
                if topic.retention_deletes:
                    before = before[len(before) - len(again) :]
                if topic.is_in_memory:
                    before = ()
                if before != again:
                    self.world.failures.append(f"{partition} reads otherwise after a clean restart")


def run_many(
    seeds: Iterable[int], jobs: int = 1, *, until_failure: bool = False
) -> tuple[dict[str, int], list[Result]]:
    """Totals of all, and the runs that failed."""
    results: list[Result] = []
    if jobs > 1:
        with ProcessPoolExecutor(jobs) as pool:
            for result in pool.map(run_seed, seeds):
                results.append(result)
                if result.failures:
                    print(report(result), file=sys.stderr, flush=True)
    else:
        for seed in seeds:
            results.append(run_seed(seed))
            if until_failure and results[-1].failures:
                break
    totals: Counter[str] = Counter(dict.fromkeys(MUST_HAPPEN, 0))
    for result in results:
        totals.update(result.totals)
    totals["runs"] = len(results)
    return dict(totals), [result for result in results if result.failures]


def report(result: Result) -> str:
    lines = [f"seed {result.seed} failed; repeat it with: make sim SEED={result.seed}"]
    lines += [f"  {failure}" for failure in result.failures[:10]]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, help="how many, from --seed on")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--until-failure", action="store_true", help="with one job: stop there")
    options = parser.parse_args()
    if options.seeds is None:
        result = run_seed(options.seed)
        totals, failed = result.totals, [result] if result.failures else []
        print("\n".join(result.trace))
        print(f"seed {result.seed}: history {result.digest}")
    else:
        totals, failed = run_many(
            range(options.seed, options.seed + options.seeds),
            options.jobs,
            until_failure=options.until_failure,
        )
    for name in sorted(totals):
        print(f"{totals[name]:>10}  {name}")
    for result in failed:
        print(report(result))
    missing = [name for name in MUST_HAPPEN if not totals.get(name)]
    if options.seeds is not None and missing:
        print("never happened:", ", ".join(missing))
        return 1
    print(f"{len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
