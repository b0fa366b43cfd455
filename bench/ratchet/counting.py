"""Runs the script under callgrind and reads the instructions of each of its parts.

The script calls a function of libc that nothing else calls; callgrind dumps its counts before
each such call and begins anew. So one run counts every part, and start-up and warm-up stand in
dumps of their own that nobody reads.
"""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import runnel
from bench.ratchet.parts import Part
from runnel.native.records import COMPILED
from runnel.wire import hot

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path(runnel.__file__).resolve().parents[1]
MARK = "ctermid"
DUMP = "dump"
TIMEOUT_S = 600
SHOWN_LINES = 25
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH")  # a different environment moves every address


class CountingError(Exception):
    """The script did not come to its end under callgrind."""


def can_count() -> bool:
    return shutil.which("valgrind") is not None


def machine_key() -> str:
    """All that changes the count of one and the same source."""
    options = sysconfig.get_config_var("CONFIG_ARGS") or ""
    kinds = [word for word in ("enable-optimizations", "with-lto") if word in options]
    parts = [
        " ".join([f"python {platform.python_version()}", platform.python_compiler(), *kinds]),
        _loop_version(),
        " ".join(platform.libc_ver()),
        f"{platform.machine()}{_vector_extension()}",
        "compiled decoder" if COMPILED else "decoder in Python",
        "compiled walks" if hot.COMPILED else "walks in Python",
    ]
    return ", ".join(parts)


def _loop_version() -> str:
    try:
        return f"uvloop {version('uvloop')}"
    except PackageNotFoundError:
        return "asyncio"


def _vector_extension() -> str:
    """By it libc chooses its ways to copy and compare; valgrind knows none beyond AVX2."""
    try:
        words = Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return ""
    return " avx2" if "avx2" in words else ""


def count(parts: Sequence[Part]) -> dict[str, int]:
    """Instructions per round, by the name of the part. Raises CountingError."""
    with tempfile.TemporaryDirectory(prefix="ratchet-") as folder:
        _run_script(Path(folder))
        return read_counts(Path(folder), parts)


def _run_script(folder: Path) -> None:
    environ = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    environ |= {"PYTHONHASHSEED": "0", "PYTHONPATH": f"{PACKAGES}{os.pathsep}{ROOT}"}
    command = [
        "valgrind",
        "--tool=callgrind",
        "--vgdb=no",
        f"--dump-before={MARK}",
        f"--callgrind-out-file={DUMP}",
        sys.executable,
        "-m",
        "bench.ratchet.script",
    ]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environ,
            timeout=TIMEOUT_S,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except subprocess.TimeoutExpired:
        raise CountingError(f"the script did not end within {TIMEOUT_S} s") from None
    if done.returncode != 0:
        last = "\n".join(done.stdout.splitlines()[-SHOWN_LINES:])
        raise CountingError(f"the script failed with status {done.returncode}:\n{last}")


def read_counts(folder: Path, parts: Sequence[Part]) -> dict[str, int]:
    """From the dumps at the end of each part: every second one. Raises CountingError."""
    found = len(list(folder.glob(f"{DUMP}.*")))
    if found != 2 * len(parts):
        raise CountingError(f"{found} dumps of {2 * len(parts)}: does python call {MARK}?")
    return {
        part.name: _total(folder / f"{DUMP}.{2 * number}") // part.round_count
        for number, part in enumerate(parts, start=1)
    }


def _total(path: Path) -> int:
    for line in path.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "totals":
            return int(value)
    raise CountingError(f"{path.name} has no total")
