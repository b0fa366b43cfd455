"""Run every client against a broker and print what came of it; exit 1 if anything failed.

`python -m tests.compat.run [--broker runnel|kafka] [--only NAME,...]`. With `kafka` a real Kafka
broker takes Runnel's place, which proves the programs themselves. First come the suites in the
clients' own words, one line per check: each is a program that prints `pass<TAB>what` or
`fail<TAB>what<TAB>why`, and one that ends badly, or prints no check at all, is a failure of its
own. Then comes the matrix client x operation.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.compat.clients import BROKER_SUITES, DRIVERS, SUITES, Program
from tests.compat.findings import disagreements
from tests.compat.matrix import FAIL, NOT_APPLICABLE, SKIPPED, Row, print_matrix, run_client
from tests.support.kafka_tools import ROOT, KafkaBroker, KafkaToolError
from tests.support.process import BrokerProcess

MATRIX = "matrix"  # all drivers; `matrix:NAME` is one of them
NAMES = [
    *(suite.name for suite in [*SUITES, *BROKER_SUITES]),
    MATRIX,
    *(f"{MATRIX}:{driver.name}" for driver in DRIVERS),
]


# Each of the matrix's groups would wait for others to join it, and for the next heartbeat.
SOON = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}


class Check(NamedTuple):
    client: str
    what: str
    passed: bool
    why: str = ""


def run_suite(suite: Program, argument: str) -> list[Check]:
    if missing := suite.missing():
        print(f"{suite.name}: skipped: needs {missing}")
        return []
    try:
        command = [*suite.command(), argument]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=suite.patience_s
        )
    except (KafkaToolError, subprocess.TimeoutExpired) as error:
        return [Check(suite.name, "run to the end", False, str(error)[-500:])]
    checks = []
    for line in done.stdout.splitlines():
        verdict, _, rest = line.partition("\t")
        what, _, why = rest.partition("\t")
        if verdict in ("pass", "fail"):
            checks.append(Check(suite.name, what, verdict == "pass", why))
    if not checks or (done.returncode != 0 and all(check.passed for check in checks)):
        ending = " ".join(done.stderr.split())[-300:]
        checks.append(Check(suite.name, "run to the end", False, ending))
    return checks


def print_checks(checks: list[Check]) -> None:
    widths = [max(len(check.client) for check in checks), max(len(check.what) for check in checks)]
    for check in checks:
        verdict = "passed" if check.passed else f"FAILED  {check.why}"
        print(f"{check.client:{widths[0]}}  {check.what:{widths[1]}}  {verdict}")
    failed = sum(not check.passed for check in checks)
    print(f"\n{len(checks) - failed} passed, {failed} failed\n", flush=True)


def run_all(broker_name: str, wanted: set[str]) -> bool:
    """Whether nothing failed."""
    suites = [suite for suite in SUITES if suite.name in wanted]
    drivers = [row for row in DRIVERS if {MATRIX, f"{MATRIX}:{row.name}"} & wanted]
    checks: list[Check] = []
    rows: list[Row] = []
    if suites or drivers:
        with tempfile.TemporaryDirectory() as scratch, _broker(broker_name, scratch) as broker:
            for suite in suites:
                _say(suite.name)
                checks += run_suite(suite, broker.bootstrap)
            for driver in drivers:
                _say(f"{MATRIX}:{driver.name}")
                rows.append(run_client(driver, broker.bootstrap))
    for suite in BROKER_SUITES:
        if suite.name in wanted:
            _say(suite.name)
            checks += run_suite(suite, broker_name)
    if checks:
        print_checks(checks)
    if rows:
        print_matrix(rows)
    failed = any(cell.verdict == FAIL for row in rows for cell in row.cells.values())
    undocumented = [line for row in rows for line in _undocumented(row)]
    print("".join(f"{line}\n" for line in undocumented), end="")
    return not failed and not undocumented and all(check.passed for check in checks)


def _undocumented(row: Row) -> list[str]:
    verdicts = {operation: cell.verdict for operation, cell in row.cells.items()}
    if SKIPPED in verdicts.values():
        return []
    return disagreements(
        row.client, {name for name in verdicts if verdicts[name] == NOT_APPLICABLE}
    )


def _broker(name: str, scratch: str) -> KafkaBroker | BrokerProcess:
    data_dir = Path(scratch) / "data"
    kind = KafkaBroker if name == "kafka" else BrokerProcess
    return kind(data_dir, settings=SOON)


def _say(name: str) -> None:
    print(f"{name} ...", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="other people's clients and tools")
    parser.add_argument("--broker", choices=["runnel", "kafka"], default="runnel")
    parser.add_argument("--only", default=",".join(NAMES), help="names, separated by commas")
    options = parser.parse_args()
    wanted = set(options.only.split(","))
    if unknown := wanted - set(NAMES):
        parser.error(f"no such suite: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    sys.exit(0 if run_all(options.broker, wanted) else 1)


if __name__ == "__main__":
    main()
