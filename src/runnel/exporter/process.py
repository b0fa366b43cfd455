"""What the system says about a process: CPU time, memory, open files. None where it does not."""

import os
from typing import NamedTuple

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    cpu_s: float
    memory_bytes: int
    open_files: int
    open_files_max: int
    started_s: float  # since 1970


def usage(pid: str) -> Usage | None:
    """`pid` is a number as text, or "self"."""
    try:
        # Fields are counted behind the name, which may hold anything but its last ")".
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        pages = int(_read(f"/proc/{pid}/statm").split()[1])
        open_files = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208  # see `_read`
        return Usage(
            (int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
            pages * _PAGE_BYTES,
            open_files,
            _open_files_max(pid),
            _booted_s() + int(fields[19]) / _TICKS_PER_S,
        )
    except (OSError, ValueError, IndexError):  # it has just ended, or this is not Linux
        return None


def _open_files_max(pid: str) -> int:
    for line in _read(f"/proc/{pid}/limits").splitlines():
        if line.startswith("Max open files"):
            return int(line.split()[3])
    return 0


def _booted_s() -> int:
    for line in _read("/proc/stat").splitlines():
        if line.startswith("btime "):
            return int(line.split()[1])
    return 0


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123  # pathlib takes a megabyte
        return file.read()
