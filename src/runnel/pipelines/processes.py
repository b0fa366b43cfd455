"""Whether the process that wrote a file still runs: its number may be another's by now."""

import os
import subprocess
from pathlib import Path


def start_of(pid: int) -> str:
    """When the process was started, in whatever words this system has; empty if there is none."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return ""
        return "" if fields[0] in "ZX" else fields[19]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    said = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True)
    return said.stdout.strip()


def is_alive(pid: int | None, started: str) -> bool:
    return pid is not None and bool(started) and start_of(pid) == started
