"""The programs of docs/testing.md in other languages, each beside the broker that it is given.

`python -m tests.compat.docs.docs_suite ADDRESS`; the programs find it in BOOTSTRAP_SERVERS, where
`python -m runnel.testing` puts the address of a broker of their own.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.compat.checks import Checks
from tests.plugin.documented import ROOT, blocks
from tests.support.kafka_tools import class_path

COMPAT = ROOT / "tests/compat"
TIMEOUT_S = 200.0


def _run(command: list[str], folder: Path, bootstrap: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "BOOTSTRAP_SERVERS": bootstrap},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, f"{done.stdout[-300:]}{done.stderr[-300:]}"
    return done.stdout


def run_go(folder: Path, bootstrap: str) -> None:
    for name in ("go.mod", "go.sum"):
        shutil.copy(COMPAT / "go" / name, folder / name)
    (program,) = blocks("go")
    (folder / "orders_test.go").write_text(program)
    printed = _run(["go", "test", "-mod=mod", "-count=1", "-v", "."], folder, bootstrap)
    assert "PASS: TestAnOrderComesBack" in printed, printed


def run_java(folder: Path, bootstrap: str) -> None:
    (program,) = blocks("java")
    (folder / "Orders.java").write_text(program)
    jars = class_path(COMPAT / "java/pom.xml")
    printed = _run(["java", "-cp", jars, "Orders.java"], folder, bootstrap)
    assert "orders has an order at offset" in printed, printed


def main() -> None:
    bootstrap = sys.argv[1]
    checks = Checks((subprocess.TimeoutExpired,))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        checks.check("docs/testing.md: Java", partial(run_java, Path(one), bootstrap))
        checks.check("docs/testing.md: Go", partial(run_go, Path(other), bootstrap))
    checks.end()


if __name__ == "__main__":
    main()
