"""The pytest plugin as its users get it: a wheel in an environment of its own.

`python -m tests.plugin.run` builds the wheel, installs it with pytest and confluent-kafka and
nothing else, and runs the tests of the small project beside this file, from a folder that has no
part of this repository. They print how soon a broker answers. Then the other clients that
docs/testing.md shows are installed, and its Python programs are run.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.plugin.documented import ROOT, blocks, write_tests

PROJECT = ROOT / "tests/plugin/project"
COMPAT = ROOT / "tests/compat/python"
CACHE = ROOT / "build/plugin"
TIMEOUT_S = 900.0
FILES = ("-o", "python_files=*_test.py")
# With the sources in sight pip would find the package there, and not install the wheel.
ENVIRONMENT = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}


def main() -> int:
    wheel = _wheel()
    python = _environment(wheel, "venv", "pytest>=8", "confluent-kafka>=2.6")
    with tempfile.TemporaryDirectory(prefix="runnel-plugin-") as scratch:
        project = Path(scratch) / "orders"
        shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
        os.sync()  # what was just built and installed is on disk before anything is timed
        status = _pytest(python, project)
        documented = Path(scratch) / "documented"
        documented.mkdir()
        write_tests(documented, blocks("python"))
        clients = (COMPAT / "requirements.txt").read_text().splitlines()
        others = [line for line in clients if line and not line.startswith("#")]
        python = _environment(
            wheel, "venv-all", "pytest>=8", "confluent-kafka>=2.6", "pytest-asyncio", *others
        )
        return max(status, _pytest(python, documented))


def _pytest(python: Path, folder: Path) -> int:
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *FILES, *sys.argv[1:]]
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, timeout=TIMEOUT_S).returncode


def _wheel() -> Path:
    """Built anew only if a source has changed: compiling takes a minute."""
    files = [ROOT / "pyproject.toml", ROOT / "setup.py", ROOT / "tools/client_types.py"]
    files += sorted((ROOT / "tools").glob("hot_*"))
    files += [f for f in sorted((ROOT / "src").rglob("*")) if f.suffix in {".py", ".pyx", ".pyi"}]
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    folder = CACHE / digest.hexdigest()[:16]
    if not list(folder.glob("*.whl")):
        shutil.rmtree(CACHE, ignore_errors=True)
        print("building the wheel (about a minute)", flush=True)
        _run(
            *(sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps"),
            *("-w", str(folder), str(ROOT)),
        )
    (wheel,) = folder.glob("*.whl")
    return wheel


def _environment(wheel: Path, name: str, *others: str) -> Path:
    home = wheel.parent / name
    python = home / "bin/python"
    installed = home / "installed"
    if not installed.exists() or installed.read_text() != " ".join(others):
        print(f"installing it with {', '.join(others)}", flush=True)
        _run(sys.executable, "-m", "venv", "--clear", str(home))
        pip = (str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check")
        _run(*pip, str(wheel), *others)
        installed.write_text(" ".join(others))
    return python


def _run(*command: str) -> None:
    done = subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[:4])} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


if __name__ == "__main__":
    sys.exit(main())
