"""The operating system as the ports see it: its clocks, its threads, its event loop."""

import asyncio
import contextlib
import gc
import math
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

from runnel.broker import clocks

S = TypeVar("S")
T = TypeVar("T")
YOUNG_OBJECTS_MAX: Final = 20_000


class SystemClock:
    __slots__ = ()

    wall_ms = staticmethod(clocks.wall_ms)
    # Goes on while the machine is suspended: otherwise waking would look like a clock jump.
    monotonic_ms = staticmethod(clocks.boot_ms)


def tune_collector() -> None:
    """When everything is up: what start-up made lives as long as the process, so never look at it.

    A request leaves no cycles behind, and looking for them is a tenth of what an idle fetch costs.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, 20, 20)


class ThreadWorkers:
    """Threads for work that blocks or releases the interpreter: fsync, codecs, file creation."""

    __slots__ = ("_executor",)

    def __init__(self, count: int) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="runnel-worker")

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def map(self, work: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
        return self._executor.map(work, items)

    def close(self) -> None:
        self._executor.shutdown(wait=True)


def usable_cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def cpu_quota(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> float:
    """How many processors' time this container may use; infinite if nothing limits it."""
    least = math.inf
    with contextlib.suppress(OSError, ValueError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            mounted = root / "cpu" if controllers else root
            folder = mounted / path.lstrip("/")  # a container may see its own as the root
            for each in (folder, *folder.parents):
                if each.is_relative_to(mounted):
                    least = min(least, _quota_in(each))
    return least


def _quota_in(folder: Path) -> float:
    """By both versions of control groups."""
    with contextlib.suppress(OSError, ValueError):
        quota, _, period = (folder / "cpu.max").read_text().partition(" ")
        return math.inf if quota == "max" else int(quota) / int(period)
    with contextlib.suppress(OSError, ValueError):
        quota_us = int((folder / "cpu.cfs_quota_us").read_text())
        if quota_us > 0:
            return quota_us / int((folder / "cpu.cfs_period_us").read_text())
    return math.inf


def boot_id() -> str:
    """Changes with every boot: it tells a killed process from a lost page cache."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def process_age_ms() -> int:
    """Since the process was started, its imports included; to ten milliseconds. -1 if unknown."""
    try:
        # Field 22 of the line, counted behind the name, which may hold anything but its last ")".
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return -1
    return int((time.clock_gettime(clocks.BOOT_TIME) - started_s) * 1000)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run to completion on uvloop where it is installed, else on asyncio's own loop."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)
