"""What a figure depends on: the machine, the versions, how busy it was, how warm its memory."""

import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
CHUNK_BYTES = 4 * 1024 * 1024


def facts() -> dict[str, object]:
    return {
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_mb": psutil.virtual_memory().total // 1_000_000,
            "system": f"{platform.system()} {platform.release()}",
        },
        "load_average": os.getloadavg()[0],
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("uvloop", "crc32c", "confluent-kafka")},
        },
        "commit": commit(),
        "utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": sys.argv[1:],
    }


def load_average(facts: dict[str, object]) -> float:
    """Of the minute before the run, when nothing of it was there yet."""
    average = facts["load_average"]
    assert isinstance(average, float)
    return average


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
        for _ in range(size_bytes // CHUNK_BYTES):
            file.write(chunk)
    seconds = time.perf_counter() - started
    path.unlink()
    return size_bytes / 1e6 / seconds


class Usage:
    """Processor time since it was made, and memory, of a process and its children.

    None stands for a process that is not known, and for what is then not known of it.
    """

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._before_s = self._cpu_s()

    def _processes(self) -> list[psutil.Process]:
        if self._pid is None:
            return []
        process = psutil.Process(self._pid)
        return [process, *process.children(recursive=True)]

    def _cpu_s(self) -> float:
        times = [process.cpu_times() for process in self._processes()]
        return sum(one.user + one.system for one in times)

    def cpu_s(self) -> float | None:
        return None if self._pid is None else self._cpu_s() - self._before_s

    def rss_mb(self) -> float | None:
        if self._pid is None:
            return None
        return sum(process.memory_info().rss for process in self._processes()) / 1e6
