"""Plants known bugs, one at a time, in a copy of this repository, and demands that the tests fail.

    python -m tests.planted.run [--all] [name ...]

First the copy as it is must pass, or a failure would say nothing. Then each `*.patch` is applied
in turn, and suite after suite is run until one finds it; with `--all` every suite is asked. A bug
that none finds fails this run.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
COPIED: Final = ("src", "tests", "tools", "pyproject.toml")
SUITE_SECONDS_MAX: Final = 600
PYTEST: Final = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist")
ENVIRONMENT: Final = {
    "PYTHONPATH": "src",
    "PYTHONDONTWRITEBYTECODE": "1",
    "RUNNEL_LOG_MACHINE_EXAMPLES": "60",
}
PASSED, FAILED = 0, 1


class Suite(NamedTuple):
    name: str
    arguments: tuple[str, ...]
    says_failed: str  # and not merely that it could not run


SUITES: Final = (
    Suite(
        "simulation",
        ("-m", "tests.simulated.run", "--seeds", "40", "--jobs", "1", "--until-failure"),
        "repeat it with",
    ),
    Suite("torn tail", (*PYTEST, "tests/unit/storage/torn_tail_test.py"), "FAILED"),
    Suite("log machine", (*PYTEST, "tests/unit/storage/log_machine_test.py"), "FAILED"),
)


def patches() -> list[Path]:
    return sorted(Path(__file__).parent.glob("*.patch"))


def apply(patch: Path, tree: Path, *, check: bool = False, reverse: bool = False) -> None:
    """Raises CalledProcessError if the code has moved away from under the patch."""
    options = ["--check"] * check + ["--reverse"] * reverse
    subprocess.run(
        ["git", "apply", "-C1", *options, str(patch)],
        cwd=tree,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)},
        check=True,
        capture_output=True,
        text=True,
    )


def copy_to(folder: Path) -> Path:
    tree = folder / "runnel"
    tree.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "node_modules", "target")
            shutil.copytree(source, tree / name, ignore=ignored)
        else:
            shutil.copy(source, tree / name)
    return tree


def fails(suite: Suite, tree: Path) -> bool:
    """Whether the suite finds something wrong. Raises RuntimeError if it could not be run."""
    done = subprocess.run(
        [sys.executable, *suite.arguments],
        cwd=tree,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=SUITE_SECONDS_MAX,
    )
    if done.returncode == PASSED:
        return False
    if done.returncode == FAILED and suite.says_failed in done.stdout:
        return True
    raise RuntimeError(f"{suite.name} did not run:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="which bugs; all if none is named")
    parser.add_argument("--all", action="store_true", help="ask every suite about every bug")
    options = parser.parse_args()
    columns = "".join(f"{suite.name:>14}" for suite in SUITES)
    missed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        tree = copy_to(Path(folder))
        print(f"{'planted bug':<22}{columns}", flush=True)
        for suite in SUITES:
            if fails(suite, tree):
                print(f"{suite.name} fails without any planted bug")
                return 1
        print(f"{'none':<22}" + f"{'passes':>14}" * len(SUITES), flush=True)
        for patch in patches():
            if options.names and patch.stem not in options.names:
                continue
            apply(patch, tree)
            verdicts: list[str] = []
            for suite in SUITES:
                if "found" in verdicts and not options.all:
                    verdicts.append("-")
                else:
                    verdicts.append("found" if fails(suite, tree) else "not found")
            apply(patch, tree, reverse=True)
            row = "".join(f"{verdict:>14}" for verdict in verdicts)
            print(f"{patch.stem:<22}{row}", flush=True)
            if "found" not in verdicts:
                missed.append(patch.stem)
    print(f"missed: {', '.join(missed)}" if missed else "every planted bug is found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
