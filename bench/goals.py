"""What Runnel must reach and aims at, line by line, and whether a run reached it.

The goals are ratios to Apache Kafka in the same run, except those that compare Runnel with itself
or with a fixed amount. A line of two conditions is two goals. A goal is judged by medians over the
rounds, and only if the run measured what it names.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

MEMORY = "resident memory after the load"  # which the harness itself measures


class By(Enum):
    """What is compared with the bounds of a goal."""

    VALUE = "the figure, as a ratio to Kafka's"
    CPU = "the broker's CPU for it, as a ratio to Kafka's"
    ITSELF = "the figure, as a ratio to another one of Runnel"
    AMOUNT = "the figure as it is"


class Goal(NamedTuple):
    """Bounds are lower ones if `at_least`. `base` is the other measure of `By.ITSELF`."""

    measure: str
    at_least: bool
    must: float
    aim: float | None = None
    by: By = By.VALUE
    base: str = ""

    @property
    def measures(self) -> list[str]:
        return [self.measure, self.base] if self.base else [self.measure]

    def reaches(self, bound: float, compared: float) -> bool:
        return compared >= bound if self.at_least else compared <= bound


class Median(NamedTuple):
    """Over the rounds, of one measure and one target."""

    value: float
    cpu: float | None


class Verdict(NamedTuple):
    """`compared` is the ratio or amount that was held against the bounds."""

    goal: Goal
    compared: float

    @property
    def met(self) -> bool:
        return self.goal.reaches(self.goal.must, self.compared)

    @property
    def aim_met(self) -> bool:
        aim = self.goal.must if self.goal.aim is None else self.goal.aim
        return self.goal.reaches(aim, self.compared)


def at_least(measure: str, must: float, aim: float) -> Goal:
    return Goal(measure, True, must, aim)


def at_most(
    measure: str,
    must: float,
    aim: float | None = None,
    by: By = By.VALUE,
    base: str = "",
) -> Goal:
    return Goal(measure, False, must, aim, by, base)


GOALS: tuple[Goal, ...] = (
    at_least("produce 1 KiB, librdkafka, acks=1", 1.2, 1.5),
    at_least("produce 1 KiB, librdkafka, acks=all", 1.2, 1.5),
    at_least("produce 100 B, librdkafka, none", 1.0, 1.2),
    at_most("produce 100 B, librdkafka, none", 0.6, by=By.CPU),
    at_least("produce 100 B, librdkafka, lz4", 1.0, 1.2),
    at_most("produce 100 B, librdkafka, lz4", 0.6, by=By.CPU),
    at_least("produce 1 KiB, 1 connection", 1.5, 2.0),
    at_least("produce 1 KiB, 4 connections", 1.0, 1.25),
    at_least("fetch, 1 consumer, warm", 1.0, 1.3),
    at_most("fetch, 1 consumer, warm", 0.5, by=By.CPU),
    at_least("fetch, 16 consumers, warm", 1.0, 1.3),
    at_most("fetch, 16 consumers, warm", 0.5, by=By.CPU),
    at_least("unbatched produce, 1 connection", 3.0, 5.0),
    at_least("unbatched produce, 16 connections", 1.5, 2.3),
    at_least("50 small partitions per request", 1.5, 2.5),
    at_most("sync produce p50", 0.8, 0.6),
    at_most("sync produce p99", 0.6, 0.4),
    at_most("end to end p50", 0.7, 0.5),
    at_most("end to end p99", 0.3, 0.1),
    at_most("produce 1 KiB, librdkafka, acks=1", 0.6, 0.45, By.CPU),
    at_most(MEMORY, 1 / 8, 1 / 15),
    at_most("start to first answer", 1 / 5, 1 / 10),
    at_most("reopen 1,000 partitions, kill -9", 1 / 2, 1 / 4),
    at_most("idle CPU", 1.0, 0.2, By.AMOUNT),
    at_most("memory, 10,000 partitions", 12.0, by=By.ITSELF, base="memory, 1,000 partitions"),
    at_most("start, 10,000 partitions", 12.0, by=By.ITSELF, base="start, 1,000 partitions"),
    at_most("memory per partition", 20.0, 8.0, By.AMOUNT),
    at_most("scrape of 10,000 partitions", 1.0, 0.5, By.AMOUNT),
    at_most("counting per unbatched request", 1.0, 0.5, By.AMOUNT),
    at_least("offset commits, 100 connections", 1.0, 1.5),
    at_least("transactions of 100 records, 16 producers", 1.0, 1.5),
    at_most("rebalance of 100 members, classic protocol", 1.1),
    at_most("rebalance of 100 members, consumer protocol", 1.1),
    at_most("CPU of a rebalance of 100 members, classic protocol", 200.0, by=By.AMOUNT),
    at_most("CPU of a rebalance of 100 members, consumer protocol", 200.0, by=By.AMOUNT),
    at_most("1,000 members in 100 groups, classic protocol", 10.0, by=By.AMOUNT),
    at_most("1,000 members in 100 groups, consumer protocol", 10.0, by=By.AMOUNT),
    at_most("start with a journal of 1,000,000 commits", 10.0, by=By.AMOUNT),
    at_most(
        "produce p99 while cold data is read",
        2.0,
        1.3,
        By.ITSELF,
        "produce p99 before cold data is read",
    ),
    Goal("compaction of one log", at_least=True, must=100.0, aim=200.0, by=By.AMOUNT),
    at_most(
        "produce p99 while a log is compacted",
        2.0,
        1.3,
        By.ITSELF,
        "produce p99 before a log is compacted",
    ),
    *(
        Goal(
            f"client library, {what}",
            at_least=True,
            must=0.85,
            aim=0.95,
            by=By.ITSELF,
            base=f"confluent-kafka by itself, {what}",
        )
        for what in ("produce 100 B", "produce 1 KiB", "consume 100 B", "consume 1 KiB")
    ),
)


def judge(
    reference: Mapping[str, Median],
    subject: Mapping[str, Median],
    goals: Sequence[Goal] = GOALS,
) -> list[Verdict]:
    """Medians by measure, of Kafka and of Runnel. Goals that lack a figure are left out."""
    found = ((goal, compare(goal, reference, subject)) for goal in goals)
    return [Verdict(goal, compared) for goal, compared in found if compared is not None]


def compare(
    goal: Goal, reference: Mapping[str, Median], subject: Mapping[str, Median]
) -> float | None:
    mine, theirs = subject.get(goal.measure), reference.get(goal.measure)
    if mine is None:
        return None
    match goal.by:
        case By.AMOUNT:
            return mine.value
        case By.ITSELF:
            base = subject.get(goal.base)
            return base and ratio(mine.value, base.value)
        case By.VALUE:
            return theirs and ratio(mine.value, theirs.value)
        case By.CPU:
            return theirs and ratio(mine.cpu, theirs.cpu)


def to_measure_again(verdicts: Iterable[Verdict]) -> set[str]:
    """The measures that missed musts are about: what is compared, and what it is compared with."""
    return {name for verdict in verdicts if not verdict.met for name in verdict.goal.measures}


def ratio(mine: float | None, theirs: float | None) -> float | None:
    return mine / theirs if mine is not None and theirs else None
