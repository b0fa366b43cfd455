"""What a broker's processes use while they are under load, read from /proc.

Counts a process and all below it. A child or thread that ended meanwhile is not counted.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CPU_DIGITS = 6  # ticks are hundredths of a second: what follows is what a subtraction left
# Places in /proc/PID/stat, counted from the state that follows the name.
USER, SYSTEM, RESIDENT = 11, 12, 21


class Cost(NamedTuple):
    """What the broker's processes used while a cell ran."""

    user_s: float
    system_s: float
    switches: int  # of context, of own will or not
    rss_mb: float  # afterwards

    @property
    def cpu_s(self) -> float:
        return round(self.user_s + self.system_s, CPU_DIGITS)


class Usage:
    """From now on. None stands for a process that is not known, and for its cost."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._before = None if pid is None else _now(pid)

    def cost(self) -> Cost | None:
        """Raises FileNotFoundError if the process has ended."""
        if self._pid is None or self._before is None:
            return None
        before, now = self._before, _now(self._pid)
        return Cost(
            round(now.user_s - before.user_s, CPU_DIGITS),
            round(now.system_s - before.system_s, CPU_DIGITS),
            max(0, now.switches - before.switches),  # less if a thread ended
            now.rss_mb,
        )


def resident_mb(pid: int) -> dict[str, float]:
    """Of the process and of each below it, by number and name."""
    return {
        f"{one} {(PROC / str(one) / 'comm').read_text().strip()}": _stat(one)[RESIDENT]
        * PAGE_BYTES
        / 1e6
        for one in _family(pid)
    }


def _now(pid: int) -> Cost:
    stats = {one: _stat(one) for one in _family(pid)}
    return Cost(
        sum(stat[USER] for stat in stats.values()) / TICKS_PER_S,
        sum(stat[SYSTEM] for stat in stats.values()) / TICKS_PER_S,
        sum(_switches(one) for one in stats),
        sum(stat[RESIDENT] for stat in stats.values()) * PAGE_BYTES / 1e6,
    )


def _family(pid: int) -> Iterator[int]:
    yield pid
    for listed in (PROC / str(pid) / "task").glob("*/children"):
        for child in listed.read_text().split():
            yield from _family(int(child))


def _stat(pid: int) -> list[int]:
    """The numbers after the name, which may hold spaces; the state in front of them as 0."""
    _state, *numbers = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return [0, *map(int, numbers)]


def _switches(pid: int) -> int:
    """Of all threads: the kernel counts them for each thread alone."""
    total = 0
    for status in (PROC / str(pid) / "task").glob("*/status"):
        try:
            lines = status.read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread ended
        total += sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
    return total
