"""What a figure depends on: the machine, the versions, how busy it was, how warm its memory."""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import psutil

import runnel
from runnel.wire import hot

ROOT = Path(__file__).resolve().parents[1]
CHUNK_BYTES = 4 * 1024 * 1024
LOOK_S = 3.0
BUSY_ABOVE = 0.25  # cores


def facts() -> dict[str, object]:
    return {
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_mb": psutil.virtual_memory().total // 1_000_000,
            "system": f"{platform.system()} {platform.release()}",
        },
        "busy_cores": _busy_cores(),
        "versions": {
            "runnel": f"{runnel.__version__} {'compiled' if hot.COMPILED else 'as source'}",
            "python": platform.python_version(),
            **{name: version(name) for name in ("uvloop", "crc32c", "confluent-kafka")},
        },
        "commit": commit(),
        "utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": sys.argv[1:],
    }


def busyness(facts: Mapping[str, object]) -> str:
    """A line about what else ran right before the run, when nothing of it was there yet."""
    busy = facts["busy_cores"]
    assert isinstance(busy, float)
    verdict = ": THE MACHINE IS BUSY, THE FIGURES ARE PROVISIONAL" if busy > BUSY_ABOVE else ""
    return f"other programs took {busy:.2f} cores before the start{verdict}"


def _busy_cores() -> float:
    """Not the load average: in a fresh clone that is what `make` did to build this."""
    return psutil.cpu_percent(interval=LOOK_S) / 100 * (os.cpu_count() or 1)


def commit() -> str:
    """The commit in short, with a plus sign if the work tree differs from it."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--abbrev=10"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return described.stdout.strip() or "unknown"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def warm_page_cache(folder: Path, size_bytes: int) -> float:
    """Write and delete a file; returns MB/s.

    On a virtual machine the first touch of memory costs several times its reuse, because the host
    has yet to give it. Afterwards the run's files land on memory that the guest already has.
    """
    chunk = os.urandom(CHUNK_BYTES)
    path = folder / "warm"
    started = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        for _ in range(-(-size_bytes // CHUNK_BYTES)):
            file.write(chunk)
    seconds = time.perf_counter() - started
    path.unlink()
    return size_bytes / 1e6 / seconds
