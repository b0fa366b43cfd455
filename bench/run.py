"""`make bench`: start a broker, load it, print one table, keep every figure.

    python -m bench.run                              Runnel as shipped, and with durability `os`
    python -m bench.run --beside name=host:port/pid  and a broker that already runs

Targets take turns within a round, so that what the machine does to one it does to the other.
The figures are medians of the rounds; rates in MB/s are millions of bytes per second.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench import machine, report
from bench.cells import CELLS
from bench.load import parse_address
from bench.model import QUICK, Cell, Scale, Target
from bench.report import Row
from tests.support.kafka_tools import free_port
from tests.support.process import BrokerProcess

ROUNDS = 5
DURABILITIES = ("interval", "os")  # as shipped, and what Kafka does
BUSY_ABOVE = 0.5
LIVE_ROUNDS = 3  # how much of the run's data may lie in memory before deleted files are gone
# Deleted topics give their memory back at once; all else is as shipped.
SETTINGS = {"log.segment.delete.delay.ms": "0"}


def main() -> int:
    options = _arguments().parse_args()
    scale = QUICK if options.quick else Scale()
    cells = [cell for cell in CELLS if _is_wanted(cell, options.only)]
    facts = machine.facts()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="runnel-bench-")))
        warm_bytes = LIVE_ROUNDS * scale.megabytes * 1_000_000
        facts["first_touch_mbps"] = machine.warm_page_cache(folder, warm_bytes)
        facts["warm_mbps"] = machine.warm_page_cache(folder, warm_bytes)
        print(_preface(facts, warm_bytes, options.rounds))
        targets = [_started(stack, folder, word) for word in options.durability or DURABILITIES]
        targets += options.beside
        rows = list(_rows(targets, cells, scale, options.rounds))
    print(report.table(targets, rows))
    print(f"every figure: {report.write(facts, rows).relative_to(machine.ROOT)}")
    return 0


def _rows(
    targets: Sequence[Target], cells: Sequence[Cell], scale: Scale, rounds: int
) -> Iterator[Row]:
    for number in range(1, rounds + 1):
        for cell in cells:
            for target in targets:
                if cell.starts_its_own and target.another is None:
                    continue
                _progress(f"round {number} of {rounds}: {target.name}: {cell.measures[0].name}")
                yield from _measured(cell, target, scale, number)
    _progress("")


def _measured(cell: Cell, target: Target, scale: Scale, number: int) -> Iterator[Row]:
    figures = cell.run(target, scale)
    for measure in cell.measures:
        figure = figures[measure.name]
        rss_mb = figure.cost.rss_mb if figure.cost else None
        yield Row(
            target.name,
            number,
            measure.name,
            measure.unit,
            figure.value,
            figure.cpu,
            figure.generator_busy,
            rss_mb,
        )


def _started(stack: ExitStack, folder: Path, durability: str) -> Target:
    settings = {**SETTINGS, "runnel.durability": durability}
    broker = stack.enter_context(BrokerProcess(folder / durability, settings=settings))

    def another(where: Path) -> BrokerProcess:
        return BrokerProcess(where / "data", settings=settings, port=free_port())

    return Target(f"runnel {durability}", broker.address, broker.pid, another, folder / durability)


def _preface(facts: dict[str, object], warm_bytes: int, rounds: int) -> str:
    machine_facts, versions = _spelled(facts["machine"]), _spelled(facts["versions"])
    busy = machine.load_average(facts)
    warmth = (
        f"page cache warmed by a file of {warm_bytes / 1e6:,.0f} MB, written and deleted twice:"
        f" {facts['first_touch_mbps']:.0f} MB/s, then {facts['warm_mbps']:.0f}"
    )
    verdict = ": THE MACHINE IS BUSY, THE FIGURES ARE PROVISIONAL" if busy > BUSY_ABOVE else ""
    return "\n".join(
        [
            f"medians of {rounds} rounds, commit {facts['commit']}",
            machine_facts,
            versions,
            warmth,
            f"load average before the start {busy:.2f}{verdict}",
            "",
        ]
    )


def _spelled(facts: object) -> str:
    assert isinstance(facts, dict)
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _is_wanted(cell: Cell, words: Sequence[str]) -> bool:
    names = [measure.name for measure in cell.measures]
    return not words or any(word in name for word in words for name in names)


def _beside(text: str) -> Target:
    """`name=host:port/pid`; without the pid there is no CPU and memory column."""
    name, _, place = text.partition("=")
    address, _, pid = place.partition("/")
    return Target(name, parse_address(address), int(pid) if pid else None)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true", help="a fifth of the load")
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORD", help="cells with this in their name"
    )
    parser.add_argument(
        "--durability",
        action="append",
        choices=("interval", "ack", "os"),
        help="of the broker that is started; may be repeated (default: interval and os)",
    )
    parser.add_argument(
        "--beside",
        action="append",
        default=[],
        type=_beside,
        metavar="NAME=HOST:PORT/PID",
        help="load a running broker in turn; the pid is for its CPU and memory",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
