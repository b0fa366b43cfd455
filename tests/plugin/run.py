"""The pytest plugin as its users get it: a wheel in an environment of its own.

`python -m tests.plugin.run` builds the wheel, installs it with pytest and confluent-kafka and
nothing else, and runs the tests of the small project beside this file, from a folder that has no
part of this repository. They print how soon a broker answers.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ROOT / "tests/plugin/project"
CACHE = ROOT / "build/plugin"
TIMEOUT_S = 900.0
# With the sources in sight pip would find the package there, and not install the wheel.
ENVIRONMENT = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}


def main() -> int:
    python = _environment(_wheel())
    with tempfile.TemporaryDirectory(prefix="runnel-plugin-") as scratch:
        project = Path(scratch) / "orders"
        shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *sys.argv[1:]]
        return subprocess.run(command, cwd=project, env=ENVIRONMENT, timeout=TIMEOUT_S).returncode


def _wheel() -> Path:
    """Built anew only if a source has changed: compiling takes a minute."""
    files = [ROOT / "pyproject.toml", ROOT / "setup.py", ROOT / "tools/hot_codecs.py"]
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


def _environment(wheel: Path) -> Path:
    home = wheel.parent / "venv"
    python = home / "bin/python"
    if not (home / "installed").exists():
        print("installing it with pytest and confluent-kafka", flush=True)
        _run(sys.executable, "-m", "venv", "--clear", str(home))
        pip = (str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check")
        _run(*pip, str(wheel), "pytest>=8", "confluent-kafka>=2.6")
        (home / "installed").touch()
    return python


def _run(*command: str) -> None:
    done = subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[:4])} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


if __name__ == "__main__":
    sys.exit(main())
