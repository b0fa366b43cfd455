"""Run every compat suite against a broker and print one table; exit 1 if anything failed.

`python -m tests.compat.run [--broker runnel|kafka] [--only NAME,...]`. With `kafka` a real Kafka
broker takes Runnel's place, which proves the suites themselves. Each suite is a program that
prints `pass<TAB>what` or `fail<TAB>what<TAB>why` per check; one that ends badly, or prints no
check at all, is a failure of its own.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.support.kafka_tools import CACHE, ROOT, KafkaBroker, KafkaToolError, class_path
from tests.support.process import BrokerProcess

COMPAT = ROOT / "tests/compat"
SUITE_TIMEOUT_S = 400.0
SETUP_TIMEOUT_S = 600.0


class Row(NamedTuple):
    client: str
    what: str
    passed: bool
    why: str = ""


class Suite(NamedTuple):
    client: str
    command: Callable[[], list[str]]  # does its set-up first; the broker's address is appended
    needs: str  # the program without which it cannot run


def _java() -> list[str]:
    jars = class_path(COMPAT / "java/pom.xml")
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return ["java", quiet, "-cp", jars, str(COMPAT / "java/ClientSuite.java")]


def _go() -> list[str]:
    program = CACHE / "franz-go-suite"
    _set_up(["go", "build", "-o", str(program), "."], COMPAT / "go")
    return [str(program)]


def _own_environment(module: str) -> list[str]:
    """The pure-Python clients live apart from the broker's own environment."""
    home = CACHE / "venv"
    python = home / "bin/python"
    wanted = COMPAT / "python/requirements.txt"
    installed = home / "installed.txt"
    if not installed.exists() or installed.read_text() != wanted.read_text():
        _set_up([sys.executable, "-m", "venv", "--clear", str(home)], ROOT)
        _set_up([str(python), "-m", "pip", "install", "-q", "-r", str(wanted)], ROOT)
        shutil.copy(wanted, installed)
    return [str(python), "-m", module]


def _here(module: str) -> list[str]:
    return [sys.executable, "-m", module]


CLIENT_SUITES = [
    Suite("kafka-clients", _java, "java"),
    Suite("franz-go", _go, "go"),
    Suite("confluent", lambda: _here("tests.compat.librdkafka.confluent_suite"), sys.executable),
    Suite("kcat", lambda: _here("tests.compat.librdkafka.kcat_suite"), "kcat"),
    Suite(
        "kafka-python",
        lambda: _own_environment("tests.compat.python.kafka_python_suite"),
        sys.executable,
    ),
    Suite(
        "aiokafka", lambda: _own_environment("tests.compat.python.aiokafka_suite"), sys.executable
    ),
]
DUMP_SUITE = Suite("DumpLogSegments", lambda: _here("tests.compat.dump.dump_suite"), "java")
NAMES = [suite.client for suite in [*CLIENT_SUITES, DUMP_SUITE]]


def _set_up(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SETUP_TIMEOUT_S
    )
    if done.returncode != 0:
        raise KafkaToolError(f"{command[0]} failed: {done.stderr.strip()[-500:]}")


def run_suite(suite: Suite, argument: str) -> list[Row]:
    if shutil.which(suite.needs) is None:
        return [Row(suite.client, "set-up", False, f"{suite.needs} is not installed")]
    try:
        command = [*suite.command(), argument]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=SUITE_TIMEOUT_S
        )
    except (KafkaToolError, subprocess.TimeoutExpired) as error:
        return [Row(suite.client, "run to the end", False, str(error)[-500:])]
    rows = []
    for line in done.stdout.splitlines():
        verdict, _, rest = line.partition("\t")
        what, _, why = rest.partition("\t")
        if verdict in ("pass", "fail"):
            rows.append(Row(suite.client, what, verdict == "pass", why))
    if not rows or (done.returncode != 0 and all(row.passed for row in rows)):
        ending = " ".join(done.stderr.split())[-300:]
        rows.append(Row(suite.client, "run to the end", False, ending))
    return rows


def print_table(rows: list[Row]) -> None:
    widths = [max(len(row.client) for row in rows), max(len(row.what) for row in rows)]
    for row in rows:
        verdict = "passed" if row.passed else f"FAILED  {row.why}"
        print(f"{row.client:{widths[0]}}  {row.what:{widths[1]}}  {verdict}")
    failed = sum(not row.passed for row in rows)
    print(f"\n{len(rows) - failed} passed, {failed} failed")


def main() -> None:
    parser = argparse.ArgumentParser(description="other people's clients and tools")
    parser.add_argument("--broker", choices=["runnel", "kafka"], default="runnel")
    parser.add_argument("--only", default=",".join(NAMES), help="names, separated by commas")
    options = parser.parse_args()
    wanted = options.only.split(",")
    unknown = set(wanted) - set(NAMES)
    if unknown:
        parser.error(f"no such suite: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    rows: list[Row] = []
    suites = [suite for suite in CLIENT_SUITES if suite.client in wanted]
    if suites:
        kind = KafkaBroker if options.broker == "kafka" else BrokerProcess
        with tempfile.TemporaryDirectory() as scratch, kind(Path(scratch) / "data") as broker:
            for suite in suites:
                print(f"{suite.client} ...", file=sys.stderr, flush=True)
                rows += run_suite(suite, broker.bootstrap)
    if DUMP_SUITE.client in wanted:
        print(f"{DUMP_SUITE.client} ...", file=sys.stderr, flush=True)
        rows += run_suite(DUMP_SUITE, options.broker)
    print_table(rows)
    sys.exit(0 if all(row.passed for row in rows) else 1)


if __name__ == "__main__":
    main()
