"""The matrix client x operation: every driver through every operation, and one printed table."""

import sys
import textwrap
import time
from collections.abc import Collection
from typing import NamedTuple

from confluent_kafka import KafkaException

from runnel.client.raw import ClosedError
from tests.compat.clients import Program
from tests.compat.driver import Driver, DriverError, UnsupportedError
from tests.compat.operations import OPERATIONS
from tests.compat.subject import Subject
from tests.support.kafka_tools import ROOT, KafkaToolError

CLIENT_TIMEOUT_S = 300.0
# Writes and reads beside the client under test where one of the two must be known to work.
OTHER_CLIENT = [sys.executable, "-m", "tests.compat.librdkafka.confluent_driver"]
PASS, FAIL, NOT_APPLICABLE, SKIPPED = "pass", "fail", "n/a", "skipped"
WIDTH = 110


class Cell(NamedTuple):
    verdict: str
    why: str = ""


class Row(NamedTuple):
    client: str
    version: str
    cells: dict[str, Cell]
    took_s: float


def run_client(
    program: Program, bootstrap: str, operations: Collection[str] = OPERATIONS.keys()
) -> Row:
    """Operations, each on topics of its own; a program that was lost is started again."""
    if missing := program.missing():
        skipped = Cell(SKIPPED, f"needs {missing}")
        return Row(program.name, "", dict.fromkeys(operations, skipped), 0)
    started = time.monotonic()
    cells: dict[str, Cell] = {}
    version = ""
    try:
        command = program.command()
        started = time.monotonic()  # building is not counted
        while len(cells) < len(operations):
            with (
                Driver(command, bootstrap, ROOT) as driver,
                Driver(OTHER_CLIENT, bootstrap, ROOT) as other,
            ):
                version = driver.version
                subject = Subject(program.name, driver, other, bootstrap)
                for name in [name for name in operations if name not in cells]:
                    cells[name] = _run(subject, name, started)
                    if driver.is_lost:
                        break
    except (DriverError, KafkaToolError) as error:
        cells = {**dict.fromkeys(operations, Cell(FAIL, str(error))), **cells}
    return Row(program.name, version, cells, time.monotonic() - started)


def _run(subject: Subject, operation: str, started: float) -> Cell:
    if time.monotonic() - started > CLIENT_TIMEOUT_S:
        return Cell(FAIL, f"the client's {CLIENT_TIMEOUT_S:.0f} s were over")
    try:
        OPERATIONS[operation](subject)
    except UnsupportedError as error:
        return Cell(NOT_APPLICABLE, str(error))
    except (AssertionError, DriverError, KafkaException, ClosedError, OSError) as error:
        return Cell(FAIL, f"{type(error).__name__}: {error}")
    return Cell(PASS)


def print_matrix(rows: list[Row]) -> None:
    """Clients are columns: there are fewer of them than operations. Reasons follow the table."""
    width = max(map(len, OPERATIONS))
    print(f"{'':{width}}  " + " ".join(f"{number:>4}" for number in range(1, len(rows) + 1)))
    marks = {SKIPPED: "skip"}
    for operation in OPERATIONS:
        verdicts = [row.cells[operation].verdict for row in rows]
        cells = " ".join(f"{marks.get(verdict, verdict):>4}" for verdict in verdicts)
        print(f"{operation:{width}}  {cells}")
    print()
    for number, row in enumerate(rows, 1):
        print(f"{number:>3}  {row.client} {row.version} ({row.took_s:.0f} s)")
    for verdict in (NOT_APPLICABLE, SKIPPED, FAIL):
        _print_reasons(rows, verdict)
    verdicts = [cell.verdict for row in rows for cell in row.cells.values()]
    counts = ", ".join(
        f"{verdicts.count(verdict)} {verdict}" for verdict in (PASS, FAIL, NOT_APPLICABLE, SKIPPED)
    )
    print(f"\n{len(rows)} clients x {len(OPERATIONS)} operations: {counts}")


def _print_reasons(rows: list[Row], verdict: str) -> None:
    for row in rows:
        reasons: dict[str, list[str]] = {}
        for operation, cell in row.cells.items():
            if cell.verdict == verdict:
                reasons.setdefault(cell.why, []).append(operation)
        for why, operations in reasons.items():
            which = "all" if len(operations) == len(OPERATIONS) else ", ".join(operations)
            text = f"{verdict}: {row.client}: {which}: {' '.join(why.split())}"
            print(textwrap.fill(text[:600], WIDTH, subsequent_indent="    "))
