"""Every file of `examples/` is run as a newcomer would, and prints what its own text says.

All but those that need settings of their own share one broker, which also shows that they leave
each other alone. `make compat` runs the same against Apache Kafka.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runnel.testing import RunnelBroker
from tests.support.example_files import (
    FOLDER,
    PROGRAMS,
    SCRIPTS,
    check_program,
    compare,
    documented,
    run,
)

SHARED = {"README.md", "a_broker.py"}  # nothing to run by itself
NOTEBOOK = "13_notebook.ipynb"
DEMO = "demo"  # starts Spark twice: tests/e2e/demo_test.py
NOBODY = "127.0.0.1:1"
# Prints what its cells print.
RUN_NOTEBOOK = """
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
nbclient.NotebookClient(notebook, timeout=60).execute()
outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
print("".join(output.get("text", "") for output in outputs), end="")
"""


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with RunnelBroker() as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_program(program: Path, servers: str) -> None:
    check_program(program, servers)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script(script: Path, tmp_path: Path) -> None:
    (comment,) = re.findall(r"\A#!/bin/sh\n((?:#.*\n)+)", script.read_text())
    expected = documented(re.sub(r"^# ?", "", comment, flags=re.MULTILINE))
    runnel = tmp_path / "runnel"
    runnel.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m runnel "$@"\n')
    runnel.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    compare(expected, run(["sh", str(script)], NOBODY, PATH=path))


def test_a_program_starts_a_broker_if_none_answers() -> None:
    done = run([sys.executable, str(PROGRAMS[0])], NOBODY)
    assert done.returncode == 0, done.stderr
    assert f"no broker answers at {NOBODY}" in done.stderr


def test_a_program_can_be_run_again(servers: str) -> None:
    """Against a broker that keeps what the first run left there: topics and groups."""
    for _ in range(2):
        check_program(FOLDER / "05_offset_tracking.py", servers)


def test_tests(servers: str) -> None:
    plugin = ("-p", "no:runnel", "-p", "runnel.testing.pytest_plugin", "-p", "no:cacheprovider")
    files = [str(path) for path in FOLDER.glob("*_test.py")]
    done = run([sys.executable, "-m", "pytest", "-q", "-c", os.devnull, *plugin, *files], servers)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_notebook(servers: str) -> None:
    """Run as Jupyter does, in another process: what its libraries warn of is not our business."""
    notebook = FOLDER / NOTEBOOK
    cells = json.loads(notebook.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells), "clear it"
    done = run([sys.executable, "-c", RUN_NOTEBOOK, str(notebook)], servers)
    assert done.returncode == 0, done.stderr
    cellar, hall, kitchen, chart = done.stdout.splitlines()
    assert cellar == "cellar: 9.0 to 15.0 degrees, warmest at 14:00"
    assert hall == "hall: 16.0 to 22.0 degrees, warmest at 14:00"
    assert kitchen == "kitchen: 19.0 to 25.0 degrees, warmest at 14:00"
    assert len(chart) == 48 and chart[28] == "█"


def test_every_file_is_run_and_listed() -> None:
    files = {path.name for path in FOLDER.iterdir() if path.name != "__pycache__"} - SHARED
    tested = {path.name for path in (*PROGRAMS, *SCRIPTS, *FOLDER.glob("*_test.py"))}
    assert files == tested | {NOTEBOOK, DEMO}, "a file that no test runs"
    listed = set(re.findall(r"\| \[([^]]+)\]\(\1", (FOLDER / "README.md").read_text()))
    assert files <= listed, f"not in the table of examples/README.md: {files - listed}"
