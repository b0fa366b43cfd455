"""`make bench`: Apache Kafka and Runnel on this machine, the same load in turn, one table.

    python -m bench.run                    Kafka, Runnel with durability `os`, Runnel as shipped
    python -m bench.run --quick            only the lines that have goals, three rounds
    python -m bench.run --only fetch       some cells; --reference, --subject, --column: others

Targets take turns within a round, so that what the machine does to one it does to the other.
Figures are medians of the rounds; MB/s are millions of bytes per second. Cells that missed a must
are given as many rounds again, and the median of all counts (ADR 48). A run that is interrupted
shows what it has. The exit status is 1 if a goal's must is missed, 2 if the run itself failed, 130
if it was interrupted. All that it started has ended when it ends.
"""

import argparse
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from bench import calm, goals, machine, report, sink, trust, warmth
from bench.brokers import Fleet, ensure_word
from bench.cells import CELLS
from bench.group_cells import GROUP_CELLS
from bench.kafka import kafka_version
from bench.model import QUICK, Cell, Figures, Scale, Target
from bench.perf_cells import ask_perf_tools
from bench.report import Outcome
from bench.rounds import EXPECTED, Rounds
from bench.settling import settle
from bench.stillness import still
from runnel.bench.pipeline import LoadError

ROUNDS, QUICK_ROUNDS = 5, 3
MISSED, FAILED, INTERRUPTED = 1, 2, 130
COLUMNS = ("runnel:interval",)  # as shipped
LONGEST = 5  # cells that are named with the time they took
SCALES = f"how much a cell does: {', '.join(Scale._fields)}"
TAIL_TRIES = "at most, of a tail that the host of this machine disturbed; default %(default)s"


def main(argv: Sequence[str] | None = None) -> int:
    parser = _arguments()
    options = parser.parse_args(argv)
    if options.reference == options.subject:
        parser.error("a broker cannot be compared with itself")
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
    scale = (QUICK if options.quick else Scale())._replace(**dict(options.scale))
    count = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    cells = chosen(CELLS, options.only, options.quick)
    if not cells:
        raise LoadError("no cell has such a name")
    facts = {**machine.facts(), "rounds": count, "quick": options.quick, "kafka": kafka_version()}
    folder = _folder(stack)
    facts.update(warmth.warm_page_cache_twice(folder, scale, options.warm_cache))
    print(_preface(facts, count), flush=True)
    fleet = Fleet(folder)
    stack.callback(fleet.end)
    # A second Ctrl-C shall not keep the first from ending all that runs.
    stack.callback(signal.signal, signal.SIGINT, signal.SIG_IGN)
    beside = COLUMNS if options.column is None else options.column
    words = [options.reference, options.subject, *beside]
    targets = []
    for word in dict.fromkeys(words):
        _say(f"starting {word}")
        targets.append(fleet.start(word))
    for target in targets:
        _say(f"warming up {target.name} for {options.warm_up:g} s")
        warmth.warm_up(target, options.warm_up)
        if any(cell in GROUP_CELLS for cell in cells):
            _say(f"warming up the coordinators of {target.name} for {options.warm_up:g} s")
            warmth.warm_coordinators(target, options.warm_up)
    loaded = [*targets, stack.enter_context(sink.running())]
    others = [target.name for target in targets[2:]]
    rounds = Rounds(
        loaded,
        scale,
        targets[1].name,
        beside=others,
        is_quick=options.quick,
        tail_tries=options.tail_tries,
    )
    tools: list[Figures] = []  # of Kafka's perf tools by themselves, one of each round

    neighbour = trust.neighbour_of_perf_tools(cells)

    def ask_tools(cell: Cell, target: Target, number: int) -> None:
        if target is not targets[0] or cell is not neighbour:
            return
        settle(loaded)
        with still(loaded[1:]):
            step = target.name, "its own perf tools"
            rounds.attempt(step, number, lambda: tools.append(ask_perf_tools(target, scale)))

    facts |= {"again": [], "interrupted": False}
    stolen = calm.Stolen()
    try:
        rounds.run(cells, count, then=ask_tools if targets[0].name == "kafka" else None)
        if again := _missed(cells, targets, rounds):
            facts["again"] = [measure.name for cell in again for measure in cell.measures]
            names = ", ".join(cell.measures[0].name for cell in again)
            _say(f"missed, so {count} rounds more of: {names}")
            rounds.run(again, count, is_again=True)
    except KeyboardInterrupt:
        if not rounds.rows:
            raise
        facts["interrupted"] = True
        _say("interrupted; this is what there is, ending all that was started")
    facts |= {"stolen": stolen.share(), "taken_again": rounds.taken_again}
    return facts, _judged(targets, rounds, tools)


def _folder(stack: ExitStack) -> Path:
    """Cells put theirs in it too: one folder to delete, whatever happens."""
    stack.callback(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="runnel-bench-"))
    stack.callback(setattr, tempfile, "tempdir", tempfile.tempdir)
    tempfile.tempdir = folder
    return Path(folder)


def _missed(cells: Sequence[Cell], targets: Sequence[Target], rounds: Rounds) -> list[Cell]:
    """Those that a missed must is about: what is compared, and what it is compared with."""
    reference, subject = (report.medians(rounds.rows, target.name) for target in targets[:2])
    names = goals.to_measure_again(goals.judge(reference, subject))
    return [cell for cell in cells if any(measure.name in names for measure in cell.measures)]


def _judged(targets: Sequence[Target], rounds: Rounds, tools: Sequence[Figures]) -> Outcome:
    names = [target.name for target in targets]
    figures = [report.medians(rounds.rows, name) for name in names]
    lines = trust.against_sink(report.medians(rounds.rows, trust.SINK), figures)
    lines += trust.against_perf_tools(tools, figures[0])
    verdicts = goals.judge(figures[0], figures[1])
    return Outcome(
        names, rounds.rows, rounds.processes, verdicts, lines, rounds.failures, rounds.times
    )


def chosen(cells: Sequence[Cell], words: Sequence[str], quick: bool) -> list[Cell]:
    """All, or the quick ones; with words, those that have one in the name of a measure.

    A word that is the whole name of a measure stands for that one alone.
    """
    if not words:
        return [cell for cell in cells if cell.is_quick or not quick]
    names = {measure.name for cell in cells for measure in cell.measures}

    def is_wanted(name: str) -> bool:
        return any(word == name if word in names else word in name for word in words)

    return [cell for cell in cells if any(is_wanted(measure.name) for measure in cell.measures)]


def _told(facts: Mapping[str, object], outcome: Outcome, options: argparse.Namespace) -> int:
    report.show(report.table(outcome))
    if options.details:
        print()
        report.show(report.details(outcome.rows))
    print()
    for line in outcome.trust:
        print(line)
    if again := facts["again"]:
        assert isinstance(again, list)
        print(f"missed at first, so that twice the rounds count: {', '.join(again)}")
    for failure in outcome.failures:
        print(failure)
    print(
        f"the host took {facts['stolen']:.1%} of the wanted processor time;"
        f" tails were taken again {facts['taken_again']} times for that"
    )
    print(report.longest(outcome.times, LONGEST))
    missed = [verdict for verdict in outcome.verdicts if not verdict.met]
    aims = [verdict.aim_met for verdict in outcome.verdicts if verdict.goal.aim is not None]
    count = len(outcome.verdicts)
    print(f"musts met: {count - len(missed)} of {count}; aims met: {sum(aims)} of {len(aims)}")
    print(f"every figure: {report.write(facts, outcome, options.results)}")
    if facts["interrupted"]:
        return INTERRUPTED
    return FAILED if outcome.failures else MISSED if missed else 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _preface(facts: Mapping[str, object], rounds: int) -> str:
    return "\n".join(
        [
            f"medians of {rounds} rounds, commit {facts['commit']}, Apache Kafka {facts['kafka']}",
            _spelled(facts["machine"]),
            _spelled(facts["versions"]),
            warmth.spelled(facts),
            machine.busyness(facts),
            "",
        ]
    )


def _spelled(facts: object) -> str:
    assert isinstance(facts, dict)
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def _scale(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    if name not in Scale._fields:
        raise ValueError(f"{name!r} is none of {Scale._fields}")
    kind = type(getattr(QUICK, name))
    return name, kind(value)


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
    add("--warm-cache", type=int, metavar="MB", help="page cache to touch first; default: enough")
    add("--tail-tries", type=int, default=calm.TRIES, metavar="COUNT", help=TAIL_TRIES)
    add("--scale", type=_scale, action="append", default=[], metavar="NAME=NUMBER", help=SCALES)
    add("--details", action="store_true", help="also the spread and the cost of every figure")
    add("--results", type=Path, default=report.RESULTS, metavar="FOLDER")
    return parser


def _fail(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A bug of the benchmark is no missed goal: not the status 1 that Python would end with."""
    traceback.print_exception(kind, error, trace)
    sys.stdout.flush()
    os._exit(FAILED)


if __name__ == "__main__":
    sys.excepthook = _fail
    sys.exit(main())
