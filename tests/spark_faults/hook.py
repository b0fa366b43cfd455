"""What a fault run does when a step of a batch is reached: kill -9 of one victim, once.

Runs inside Spark's Python processes, which find it by `runnel.spark.steps.VARIABLE`. What to do is
in a file of the run's folder, named by `FOLDER_VARIABLE`; whoever renames that file acts, so that
of two tasks at the same step only one does.
"""

import json
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

FOLDER_VARIABLE = "RUNNEL_SPARK_FAULTS"
HOOK = "tests.spark_faults.hook:reached"
ARMED, STRUCK, COUNTED = "armed.json", "struck.json", "counted"
DRIVER_PIDS, BROKER_PID = "driver.pids", "broker.pid"
WAIT_S = 60.0


def reached(step: str) -> None:
    folder = Path(os.environ[FOLDER_VARIABLE])
    armed = folder / ARMED
    try:
        plan = json.loads(armed.read_text())
    except FileNotFoundError:
        return
    if plan["step"] != step or not _is_its_turn(folder, plan["nth"]):
        return
    try:
        armed.rename(folder / STRUCK)
    except FileNotFoundError:  # another task was quicker
        return
    strike(folder, plan["victim"])


def strike(folder: Path, victim: str) -> None:
    """`worker` is the Python process that has come to the step: this one."""
    if victim == "broker":
        kill_all([int((folder / BROKER_PID).read_text())])
        return
    if victim == "driver":
        kill_all([int(pid) for pid in (folder / DRIVER_PIDS).read_text().split()])
    os.kill(os.getpid(), signal.SIGKILL)


def kill_all(pids: Sequence[int]) -> None:
    """All of them at once: the first one's death may be the end of who runs this."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + WAIT_S
    while any(_is_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.005)


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # killed, though its parent has yet to be told


def _is_its_turn(folder: Path, nth: int) -> bool:
    """Each coming to the step makes one file; the `nth` is the one that acts."""
    for number in range(nth + 1):
        try:
            (folder / f"{COUNTED}-{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        return number == nth
    return False
