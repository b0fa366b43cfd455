"""The matrix itself: one client that every machine has passes it, and one that lies does not.

Run by `make compat`, before the matrix: it would make `make test` half a minute longer.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.clients import DRIVERS, Program
from tests.compat.librdkafka.lying_driver import LIES
from tests.compat.matrix import FAIL, NOT_APPLICABLE, PASS, SKIPPED, Row, print_matrix, run_client
from tests.compat.operations import OPERATIONS
from tests.compat.run import SOON
from tests.support.process import BrokerProcess


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("matrix") / "data", settings=SOON) as broker:
        yield broker.bootstrap


def liar(lie: str) -> Program:
    module = "tests.compat.librdkafka.lying_driver"
    return Program("liar", lambda: [sys.executable, "-m", module, lie], ())


def verdicts(row: Row) -> dict[str, str]:
    return {operation: cell.verdict for operation, cell in row.cells.items()}


@pytest.mark.timeout(300)  # all operations, each of which may wait for rebalances
def test_an_honest_client_passes(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    (honest,) = [driver for driver in DRIVERS if driver.name == "confluent-kafka"]
    row = run_client(honest, bootstrap)
    assert verdicts(row) == dict.fromkeys(OPERATIONS, PASS), row.cells
    print_matrix([row])
    assert "30 pass, 0 fail, 0 n/a, 0 skipped" in capsys.readouterr().out


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_noticed(bootstrap: str, lie: str) -> None:
    row = run_client(liar(lie), bootstrap, LIES[lie])
    assert verdicts(row) == dict.fromkeys(LIES[lie], FAIL), row.cells


def test_every_operation_notices_something() -> None:
    noticing = {operation for operations in LIES.values() for operation in operations}
    assert set(OPERATIONS) - noticing == {"snappy", "lz4"}  # as gzip and zstd


def test_a_program_that_ends_is_started_again(bootstrap: str, tmp_path: Path) -> None:
    """It greets, answers once and ends: each operation after the first gets a new one."""
    starts = tmp_path / "starts"
    script = (
        f"open({str(starts)!r}, 'a').write('x')\n"
        'print(\'{"version": "0", "lacks": []}\', flush=True)\n'
        'input(); print(\'{"unsupported": "nothing"}\', flush=True)\n'
    )
    program = Program("short-lived", lambda: [sys.executable, "-c", script], ())
    row = run_client(program, bootstrap, ("create", "describe config", "delete topic"))
    assert verdicts(row)["create"] == NOT_APPLICABLE
    assert FAIL in verdicts(row).values()
    assert len(starts.read_text()) > 1


def test_missing_tools_are_told(bootstrap: str) -> None:
    row = run_client(Program("far away", lambda: [], ("no-such-tool",)), bootstrap, ("create",))
    assert row.cells["create"] == (SKIPPED, "needs no-such-tool")
