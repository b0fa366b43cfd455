"""The programs of `examples/`: which there are, how they are run, and what they say they print.

What an example prints stands in its docstring (in a shell script: its first comment) as an indented
block after `It prints`; `...` stands for anything, on a line of its own for any lines.
"""

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.support.examples import agrees
from tests.support.process import ROOT, environment

FOLDER = ROOT / "examples"
PROGRAMS = sorted(path for path in FOLDER.glob("[0-9]*.py") if not path.name.endswith("_test.py"))
SCRIPTS = sorted(FOLDER.glob("*.sh"))
TIMEOUT_S = 100.0

Done = subprocess.CompletedProcess[str]


def takes_any_broker(program: Path) -> bool:
    """All but those that need settings of their own, and so a broker of their own."""
    return "a_broker()" in program.read_text()


def run(command: list[str], servers: str, **environ: str) -> Done:
    return subprocess.run(
        command,
        env=environment({"RUNNEL_BOOTSTRAP_SERVER": servers, **environ}),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def check_program(program: Path, servers: str) -> None:
    """Run it, with every warning an error, and compare what it prints."""
    text = ast.get_docstring(ast.parse(program.read_text())) or ""
    compare(documented(text), run([sys.executable, "-W", "error", str(program)], servers))


def documented(text: str) -> list[str]:
    found = re.search(r"^It prints.*:\n\n((?:(?:    .*)?\n)+)", text + "\n", re.MULTILINE)
    assert found, f"it does not say what it prints:\n{text}"
    return textwrap.dedent(found[1]).splitlines()


def compare(expected: list[str], done: Done) -> None:
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert agrees(expected, done.stdout), f"{done.stdout}\nis not\n{chr(10).join(expected)}"
