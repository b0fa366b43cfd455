"""`make bench`: Apache Kafka and Runnel on this machine, the same load in turn, one table.

    python -m bench.run                    Kafka, Runnel with durability `os`, Runnel as shipped
    python -m bench.run --quick            only the lines that have goals, three rounds
    python -m bench.run --only fetch       some cells; --reference, --subject, --column: others

Targets take turns within a round, so that what the machine does to one it does to the other.
Figures are medians of the rounds; MB/s are millions of bytes per second. The exit status is 1 if a
goal's must is missed, 2 if the run itself failed. All that it started has ended when it ends.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench import goals, machine, report, sink, trust, warmth
from bench.brokers import Fleet, ensure_word
from bench.cells import CELLS
from bench.kafka import kafka_version
from bench.model import QUICK, Cell, Scale, Target
from bench.pipeline import LoadError
from bench.progress import Shown, Step, shown
from bench.report import Failure, Outcome, Row
from tests.support.kafka_tools import KafkaToolError
from tests.support.process import BrokerError
from tests.support.wire_client import ClosedError

ROUNDS, QUICK_ROUNDS = 5, 3
BUSY_ABOVE = 0.5
MISSED, FAILED, INTERRUPTED = 1, 2, 130
COLUMNS = ("runnel:interval",)  # as shipped
SINK = "bare sink"
# What a cell may meet; anything else is a bug of the benchmark and ends it with a traceback.
EXPECTED = (LoadError, ClosedError, BrokerError, KafkaToolError, OSError, AssertionError)


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments().parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        with ExitStack() as stack:
            facts, outcome = _run(options, stack)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; all that was started has ended\n")
        return INTERRUPTED
    except EXPECTED as error:
        sys.stderr.write(f"the run failed: {error}\n")
        return FAILED
    return _told(facts, outcome, options)


def _run(options: argparse.Namespace, stack: ExitStack) -> tuple[dict[str, object], Outcome]:
    scale = QUICK if options.quick else Scale()
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    cells = chosen(CELLS, options.only, options.quick)
    if not cells:
        raise LoadError("no cell has such a name")
    facts = {**machine.facts(), "kafka": kafka_version(), "rounds": rounds, "quick": options.quick}
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="runnel-bench-")))
    # Cells put theirs in it too: one folder to delete, whatever happens.
    stack.callback(setattr, tempfile, "tempdir", tempfile.tempdir)
    tempfile.tempdir = str(folder)
    facts.update(warmth.warm_page_cache_twice(folder, scale))
    print(_preface(facts, rounds))
    fleet = Fleet(folder)
    stack.callback(_uninterrupted, fleet)
    beside = COLUMNS if options.column is None else options.column
    words = [options.reference, options.subject, *beside]
    targets = [fleet.start(word) for word in dict.fromkeys(words)]
    for target in targets:
        warmth.warm_up(target, cells, options.warm_up)
    loaded = [*targets, stack.enter_context(sink.running())]
    with shown(_steps(loaded, cells, rounds)) as progress:
        found = _Found(progress)
        for number in range(1, rounds + 1):
            found.round(number, loaded, cells, scale)
    figures = {target.name: report.medians(found.rows, target.name) for target in loaded}
    names = [target.name for target in targets]
    lines = trust.against_sink(figures[SINK], [figures[name] for name in names])
    if targets[0].name == "kafka":
        lines += trust.against_perf_tools(targets[0], figures["kafka"], scale)
    verdicts = goals.judge(figures[names[0]], figures[names[1]])
    return facts, Outcome(names, found.rows, found.processes, verdicts, lines, found.failures)


def _uninterrupted(fleet: Fleet) -> None:
    """A second Ctrl-C does not leave brokers behind."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    fleet.end()
    signal.signal(signal.SIGINT, before)


class _Found:
    """Gathers what the rounds give."""

    def __init__(self, progress: Shown) -> None:
        self.rows: list[Row] = []
        self.processes: list[Mapping[str, object]] = []
        self.failures: list[Failure] = []
        self._progress = progress

    def round(
        self, number: int, targets: Sequence[Target], cells: Sequence[Cell], scale: Scale
    ) -> None:
        for cell in cells:
            for target in targets:
                if _is_for(cell, target):
                    name = cell.measures[0].name
                    text = f"round {number}, {target.name}: {name}"
                    with self._progress.step((target.name, name), text):
                        self._measure(cell, target, scale, number)
        for target in targets:
            if target.pid is not None and target.name != SINK:
                self._weigh(target, number)

    def _measure(self, cell: Cell, target: Target, scale: Scale, number: int) -> None:
        try:
            figures = cell.run(target, scale)
        except EXPECTED as error:
            why = f"{type(error).__name__}: {error}"
            self.failures.append(Failure(target.name, number, cell.measures[0].name, why))
            return
        for measure in cell.measures:
            value, cpu, busy, cost = figures[measure.name]
            used = cost or (None, None, None, None)
            self.rows.append(
                Row(target.name, number, measure.name, measure.unit, value, cpu, busy, *used)
            )

    def _weigh(self, target: Target, number: int) -> None:
        assert target.pid is not None
        processes = machine.resident(target.pid)
        total_mb = sum(processes.values())
        self.rows.append(Row(target.name, number, goals.MEMORY, "MB", total_mb))
        self.processes.append({"target": target.name, "round": number, "rss_mb": processes})


def _is_for(cell: Cell, target: Target) -> bool:
    if target.name == SINK:
        return any(measure.name in trust.SINK_MEASURES for measure in cell.measures)
    return target.another is not None or not cell.starts_its_own


def _steps(targets: Sequence[Target], cells: Sequence[Cell], rounds: int) -> list[Step]:
    one = [
        (target.name, cell.measures[0].name)
        for cell in cells
        for target in targets
        if _is_for(cell, target)
    ]
    return one * rounds


def chosen(cells: Sequence[Cell], words: Sequence[str], quick: bool) -> list[Cell]:
    """Those with one of the words in the name of a measure; all, or the quick ones, without."""
    if not words:
        return [cell for cell in cells if cell.is_quick or not quick]
    return [cell for cell in cells if any(_names(cell, word) for word in words)]


def _names(cell: Cell, word: str) -> bool:
    return any(word in measure.name for measure in cell.measures)


def _told(facts: Mapping[str, object], outcome: Outcome, options: argparse.Namespace) -> int:
    report.show(report.table(outcome))
    if options.details:
        print()
        report.show(report.details(outcome.rows))
    print()
    for line in outcome.trust:
        print(line)
    for failure in outcome.failures:
        print(f"FAILED in round {failure.round}, {failure.target}: {failure.cell}: {failure.why}")
    missed = [verdict for verdict in outcome.verdicts if not verdict.met]
    aims = sum(verdict.aim_met for verdict in outcome.verdicts)
    count = len(outcome.verdicts)
    print(f"musts met: {count - len(missed)} of {count}; aims met: {aims} of {count}")
    print(f"every figure: {report.write(facts, outcome, options.results)}")
    return FAILED if outcome.failures else MISSED if missed else 0


def _preface(facts: Mapping[str, object], rounds: int) -> str:
    busy = machine.load_average(facts)
    verdict = ": THE MACHINE IS BUSY, THE FIGURES ARE PROVISIONAL" if busy > BUSY_ABOVE else ""
    return "\n".join(
        [
            f"medians of {rounds} rounds, commit {facts['commit']}, Apache Kafka {facts['kafka']}",
            _spelled(facts["machine"]),
            _spelled(facts["versions"]),
            warmth.spelled(facts),
            f"load average before the start {busy:.2f}{verdict}",
            "",
        ]
    )


def _spelled(facts: object) -> str:
    assert isinstance(facts, dict)
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--rounds", type=int, help=f"default {ROUNDS}, or {QUICK_ROUNDS} if quick")
    add("--quick", action="store_true", help="less load, and only what the goals need")
    add("--only", action="append", default=[], metavar="WORD", help="cells with this in a name")
    broker = "kafka, runnel:DURABILITY or NAME=HOST:PORT/PID"
    add("--reference", type=ensure_word, default="kafka", metavar="BROKER", help=broker)
    add("--subject", type=ensure_word, default="runnel:os", metavar="BROKER", help="is judged")
    add("--column", type=ensure_word, action="append", metavar="BROKER", help="is shown beside")
    add("--no-column", dest="column", action="store_const", const=[], help="nothing beside")
    add("--warm-up", type=float, default=warmth.WARM_UP_S, metavar="SECONDS", help="of each broker")
    add("--details", action="store_true", help="also the spread and the cost of every figure")
    add("--results", type=Path, default=report.RESULTS, metavar="FOLDER")
    return parser


if __name__ == "__main__":
    sys.exit(main())
