"""`make bench-spark`: Spark's Kafka connector and Runnel's source, the same data, one table.

    python -m bench.spark.run                  all cells, three rounds
    python -m bench.spark.run --quick          less data, two rounds
    python -m bench.spark.run --only local     some cells

One broker (Runnel), one Spark session with two cores, both readers warmed up. They take turns, and
which of them begins changes from round to round. Figures are medians. Cells that missed a must are
given as many rounds again, and the median of all counts (ADR 48). The exit status is 1 if a must is
missed, 2 if the run itself failed.
"""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from bench import machine, plot, report
from bench.goals import Verdict, judge, to_measure_again
from bench.progress import shown
from bench.report import Failure, Outcome, Row
from bench.spark import data
from bench.spark.goals import SPARK_GOALS
from bench.spark.log_cells import LOG_CELLS
from bench.spark.model import QUICK, TARGETS, Cell, Scale, Stage, Topic
from bench.spark.pipeline_cells import PIPELINE_CELLS
from bench.spark.scan_cells import SCAN_CELLS, scanned
from bench.spark.sink_cells import SINK_CELLS
from bench.spark.sql_cells import SQL_CELLS
from bench.spark.stream_cells import STREAM_CELLS
from runnel.spark import session
from tests.compat.spark.connector import connector_jars
from tests.support.process import PACKAGES, ROOT, BrokerProcess

ROUNDS, QUICK_ROUNDS = 3, 2
MISSED, FAILED, INTERRUPTED = 1, 2, 130
EXPECTED = (AssertionError, OSError, PySparkException, Py4JError)
CELLS: tuple[Cell, ...] = (
    *SCAN_CELLS,
    *STREAM_CELLS,
    *SINK_CELLS,
    *PIPELINE_CELLS,
    *LOG_CELLS,
    *SQL_CELLS,
)


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments().parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    cells = [cell for cell in CELLS if _is_wanted(cell, options.only)]
    if not cells:
        sys.stderr.write(f"no cell has such a name; there are: {[c.measure.name for c in CELLS]}\n")
        return FAILED
    try:
        with ExitStack() as stack:
            facts, outcome = _run(options, cells, stack)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; all that was started has ended\n")
        return INTERRUPTED
    return _told(facts, outcome, options)


def _run(
    options: argparse.Namespace, cells: Sequence[Cell], stack: ExitStack
) -> tuple[dict[str, object], Outcome]:
    count = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    facts = {
        **machine.facts(),
        "rounds": count,
        "quick": options.quick,
        "spark": version("pyspark"),
    }
    print(
        f"medians of {count} rounds, commit {facts['commit']}, Spark {facts['spark']}, local[2],"
        f" connector 4.2.0\n{machine.busyness(facts)}\n",
        flush=True,
    )
    stage = _stage(QUICK if options.quick else Scale(), cells, stack)
    rows, failures = _rounds(stage, cells, range(1, count + 1))
    names = to_measure_again(_judged(rows))
    again = [cell for cell in cells if cell.measure.name in names]
    if again:
        sys.stderr.write(f"missed, so {count} rounds more of: {', '.join(sorted(names))}\n")
        more, troubles = _rounds(stage, again, range(count + 1, 2 * count + 1))
        rows, failures = rows + more, failures + troubles
    facts["again"] = [cell.measure.name for cell in again]
    return facts, Outcome(TARGETS, rows, [], _judged(rows), [], failures)


def _judged(rows: Sequence[Row]) -> list[Verdict]:
    reference, subject = (report.medians(rows, name) for name in TARGETS)
    return judge(reference, subject, SPARK_GOALS)


def _stage(scale: Scale, cells: Sequence[Cell], stack: ExitStack) -> Stage:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="runnel-bench-spark-")))
    broker = stack.enter_context(BrokerProcess(folder / "data", metrics=True))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(PACKAGES), str(ROOT)])
    spark = session("bench", cores=2, memory="4g", spark_jars=connector_jars())
    stack.callback(spark.stop)
    stage = Stage(spark, broker, folder, scale)
    counts = data.wanted_records(scale)
    wanted = {what for cell in cells for what in cell.topics}
    for what in [*counts]:
        if what in wanted or what in (data.WARM, data.WARM_JSON):
            twin = data.alike(scale, what, stage.topics)
            filled = stage.topics[twin] if twin else data.fill(broker.address, what, counts[what])
            stage.topics[what] = filled
    _warm_up(stage, cells)
    return stage


def _warm_up(stage: Stage, cells: Sequence[Cell]) -> None:
    """Each cell once on a small topic: both JVM code and Python workers are then as they stay."""
    topics = stage.topics
    small: dict[str, Topic] = {
        what: topics[data.WARM_JSON if what == data.JSON else data.WARM] for what in topics
    }
    stage.topics = small
    for _ in range(2):
        for target in TARGETS:
            sys.stderr.write(f"warming up {target}\n")
            scanned(stage, target, small[data.WARM])
            for cell in [cell for cell in cells if cell.topics]:
                try:
                    cell.run(stage, target)
                except EXPECTED as error:  # the rounds will tell of it
                    sys.stderr.write(f"{target}: {cell.measure.name}: {str(error)[:300]}\n")
    stage.topics = topics


def _rounds(stage: Stage, cells: Sequence[Cell], numbers: range) -> tuple[list[Row], list[Failure]]:
    plan = [
        (number, cell, target)
        for number in numbers
        for cell in cells
        for target in (TARGETS if number % 2 else reversed(TARGETS))
    ]
    rows: list[Row] = []
    failures: list[Failure] = []
    with shown([(target, cell.measure.name) for _, cell, target in plan]) as progress:
        for number, cell, target in plan:
            name, unit = cell.measure
            with progress.step((target, name), f"round {number}, {target}: {name}"):
                try:
                    value = cell.run(stage, target)
                except EXPECTED as error:
                    failures.append(Failure(target, name, number, str(error)[:500]))
                    continue
            if value is not None:
                rows.append(Row(target, number, name, unit, value))
    return rows, failures


def _told(facts: dict[str, object], outcome: Outcome, options: argparse.Namespace) -> int:
    report.show(report.table(outcome))
    print()
    if again := facts["again"]:
        assert isinstance(again, list)
        print(f"missed at first, so that twice the rounds count: {', '.join(again)}")
    for failure in outcome.failures:
        print(f"FAILED in round {failure.round}, {failure.target}: {failure.cell}: {failure.why}")
    missed = [verdict for verdict in outcome.verdicts if not verdict.met]
    aims = [verdict.aim_met for verdict in outcome.verdicts if verdict.goal.aim is not None]
    judged = len(outcome.verdicts)
    print(f"musts met: {judged - len(missed)} of {judged}; aims met: {sum(aims)} of {len(aims)}")
    path = report.write(facts, outcome, options.results)
    if outcome.verdicts:
        picture = plot.draw(path, path.with_suffix(".svg"))
        print(f"every figure: {path}; as a picture: {picture}")
    return FAILED if outcome.failures else MISSED if missed else 0


def _is_wanted(cell: Cell, words: Sequence[str]) -> bool:
    return not words or any(word in cell.measure.name for word in words)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.spark.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--rounds", type=int, help=f"default {ROUNDS}, or {QUICK_ROUNDS} if quick")
    add("--quick", action="store_true", help="less data")
    add("--only", action="append", default=[], metavar="WORD", help="cells with this in the name")
    add("--results", type=Path, default=report.RESULTS / "spark", metavar="FOLDER")
    return parser


if __name__ == "__main__":
    sys.exit(main())
