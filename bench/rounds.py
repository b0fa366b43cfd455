"""The rounds of a run: every cell loads every target in turn, and what comes out is gathered.

A cell that fails is noted and the run goes on, so that one refusal does not cost the figures of
all others; the run as a whole has failed then.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import product

import psutil
from confluent_kafka import KafkaException

from bench import calm, goals
from bench.model import Cell, Figures, Scale, Target
from bench.progress import Step, shown
from bench.report import Failure, Row, Time
from bench.settling import settle
from bench.stillness import still
from bench.trust import SINK, SINK_MEASURES
from runnel.bench.pipeline import LoadError
from runnel.bench.usage import resident_mb
from runnel.client.raw import ClosedError
from tests.support.kafka_tools import KafkaToolError
from tests.support.process import BrokerError

# What a load may meet. The wire client's assertions are about what a broker answered.
EXPECTED = (
    *(LoadError, ClosedError, BrokerError, KafkaToolError, KafkaException),
    *(OSError, AssertionError, psutil.Error, subprocess.SubprocessError),
)


class Rounds:
    """Fills its lists while it runs.

    `subject` is the target that goals are about: what only they ask for (`Cell.is_own`) is asked of
    the others in the first round alone, or never if the run `is_quick`. Targets `beside` those that
    are compared are shown and not judged: they take part in every other round.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        scale: Scale,
        subject: str | None = None,
        *,
        beside: Collection[str] = (),
        is_quick: bool = False,
        tail_tries: int = calm.TRIES,
    ) -> None:
        self.rows: list[Row] = []
        self.processes: list[Mapping[str, object]] = []
        self.failures: list[Failure] = []
        self.times: list[Time] = []
        self.taken_again = 0  # figures, because the host took too much meanwhile
        self._targets = targets
        self._scale = scale
        self._subject = subject
        self._beside = beside
        self._is_quick = is_quick
        self._tail_tries = tail_tries
        self._round = 0

    def run(
        self,
        cells: Sequence[Cell],
        count: int,
        then: Callable[[Cell, Target, int], None] | None = None,
        *,
        is_again: bool = False,
    ) -> None:
        """May be called again: the rounds that follow are added to those there are.

        `then` follows each step, and is told its cell, its target and the round. If these cells are
        run again because they missed a must, those that take long are in every round, too (ADR 48).
        """
        plan = [self._turns(cells, index, is_again=is_again) for index in range(count)]
        with shown([_step(*pair) for turns in plan for pair in turns]) as progress:
            for turns in plan:
                self._round = number = self._round + 1
                for cell, target in turns:
                    step = _step(cell, target)
                    with progress.step(step, f"round {number}, {': '.join(step)}"):
                        settled_s, started = settle(self._targets), time.perf_counter()
                        self.attempt(step, number, partial(self._measure, cell, target, number))
                        took_s = time.perf_counter() - started
                        self.times.append(Time(*step, number, settled_s, took_s))
                        if then is not None:
                            then(cell, target, number)
                for target in self._targets:
                    if target.pid is not None and target.name != SINK:
                        step = target.name, goals.MEMORY
                        self.attempt(step, number, partial(self._weigh, target, target.pid, number))

    def _turns(
        self, cells: Sequence[Cell], index: int, *, is_again: bool
    ) -> list[tuple[Cell, Target]]:
        return [
            (cell, target)
            for cell, target in product(cells, self._targets)
            if _fits(cell, target) and self._is_due(cell, target, index, is_again=is_again)
        ]

    def _is_due(self, cell: Cell, target: Target, index: int, *, is_again: bool) -> bool:
        """`index`: of the round, from 0 in each call of `run`."""
        if cell.is_own and self._subject not in (None, target.name):
            return not index and not is_again and not self._is_quick
        if target.name in self._beside and index % 2:
            return False
        return not index or is_again or cell.is_repeated

    def attempt(self, step: Step, number: int, act: Callable[[], None]) -> None:
        """Notes a failure and tells it at once: a run takes long. `number` is of the round."""
        try:
            act()
        except EXPECTED as error:
            failure = Failure(*step, number, f"{type(error).__name__}: {error}")
            self.failures.append(failure)
            sys.stderr.write(f"{failure}\n")

    def _measure(self, cell: Cell, target: Target, number: int) -> None:
        others = [other for other in self._targets if other is not target] if cell.is_alone else []

        def take() -> Figures:
            with still(others):
                return cell.run(target, self._scale)

        tries = self._tail_tries if cell.is_tail else 1
        taken = calm.calmest(take, lambda: settle(self._targets), tries)
        self.taken_again += taken.tries - 1
        for measure in cell.measures:
            if measure.name not in taken.figures:
                continue  # not to be had of this target
            value, cpu, busy, cost = taken.figures[measure.name]
            used = cost or (None, None, None, None)
            row = Row(target.name, number, measure.name, measure.unit, value, cpu, busy, *used)
            self.rows.append(row._replace(stolen=taken.stolen))

    def _weigh(self, target: Target, pid: int, number: int) -> None:
        processes = resident_mb(pid)
        total_mb = sum(processes.values())
        self.rows.append(Row(target.name, number, goals.MEMORY, "MB", total_mb))
        self.processes.append({"target": target.name, "round": number, "rss_mb": processes})


def _step(cell: Cell, target: Target) -> Step:
    return target.name, cell.measures[0].name


def _fits(cell: Cell, target: Target) -> bool:
    if target.name == SINK:
        return any(measure.name in SINK_MEASURES for measure in cell.measures)
    return target.another is not None or not cell.starts_its_own
