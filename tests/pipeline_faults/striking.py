"""A command as a process that is killed at a step or after a while, then run again to its end.

The victim `disk` is not killed: no file may grow beyond a size, as on a full disk, until the
command has ended and said so.
"""

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from runnel.spark import steps
from tests.pipeline_faults.case import DISK, RANDOM_TIME, Stage, environment
from tests.spark_faults import hook

POLL_S = 0.02
RUN_TIMEOUT_S = 600.0
TRIES_MAX = 6
FULL_AT_BYTES = 64 << 10  # more than a JVM needs for itself, less than a file of the table
FULL = "the disk is full"
AFTER_S = 6.0  # a random time is at most so long after it began to run


class Fault(NamedTuple):
    victim: str
    step: str
    nth: int = 0
    after_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.victim} at {self.step}" + (f" ({self.nth})" if self.nth else "")


class Outcome(NamedTuple):
    struck: bool
    tries: int
    seconds: float


class RunError(Exception):
    """The pipeline did not come to its end; holds the end of what it said."""


def faults_of(steps_: Sequence[str], victims: Sequence[str]) -> list[Fault]:
    killed = [victim for victim in victims if victim != DISK]
    found = [Fault(victim, step) for step in steps_ or (RANDOM_TIME,) for victim in killed]
    return found + ([Fault(DISK, "any step")] if DISK in victims else [])


def drawn(stage: Stage, seed: int) -> Fault:
    draw = random.Random(f"{stage.case.name} {seed}")
    step = draw.choice([*stage.case.steps, RANDOM_TIME])
    victim = draw.choice([each for each in stage.case.victims if each != DISK])
    return Fault(victim, step, draw.randrange(3), draw.uniform(0, AFTER_S))


def run(stage: Stage, fault: Fault | None) -> Outcome:
    """Until the command ends with status 0. Raises RunError."""
    folder = stage.folder / "faults"
    folder.mkdir(exist_ok=True)
    for path in folder.glob(f"{hook.COUNTED}-*"):
        path.unlink()
    (folder / hook.STRUCK).unlink(missing_ok=True)
    (folder / hook.DRIVER_PIDS).unlink(missing_ok=True)
    (folder / hook.BROKER_PID).write_text(str(stage.broker.pid))
    if fault is not None:
        (folder / hook.ARMED).write_text(json.dumps(fault._asdict()))
    began = time.monotonic()
    for tries in range(1, TRIES_MAX + 1):
        status = _attempt(stage, fault)
        if status == 0:
            struck = fault is not None and not (folder / hook.ARMED).exists()
            (folder / hook.ARMED).unlink(missing_ok=True)
            return Outcome(struck, tries, time.monotonic() - began)
    raise RunError(f"{fault}: {TRIES_MAX} times, the last with status {status}:\n{_said(stage)}")


def _attempt(stage: Stage, fault: Fault | None) -> int:
    folder = stage.folder / "faults"
    extra = {steps.VARIABLE: hook.HOOK, hook.FOLDER_VARIABLE: str(folder)}
    command = [stage.case.name if part == "NAME" else part for part in stage.case.command]
    is_full = fault is not None and fault.victim == DISK and (folder / hook.ARMED).exists()
    stage.attempts += 1
    with _log_of(stage).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "runnel", *command],
            env={**environment(stage), **extra},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=stage.folder,
            preexec_fn=_no_large_files if is_full else None,
        )
    deadline = time.monotonic() + RUN_TIMEOUT_S
    running_since: float | None = None
    while process.poll() is None:
        _note_driver(stage, process.pid)
        if not stage.broker.is_running:
            stage.broker.wait()
            stage.broker.start()
            (folder / hook.BROKER_PID).write_text(str(stage.broker.pid))
        if fault is not None and fault.step == RANDOM_TIME and (folder / hook.ARMED).exists():
            if running_since is None and _is_running(stage, process.pid):
                running_since = time.monotonic()
            if running_since is not None and time.monotonic() > running_since + fault.after_s:
                (folder / hook.ARMED).rename(folder / hook.STRUCK)
                _strike(stage, fault.victim, process.pid)
        if time.monotonic() > deadline:
            hook.kill_all([*_family(process.pid), process.pid])
            raise RunError(f"{fault}: not done in {RUN_TIMEOUT_S} s:\n{_said(stage)}")
        time.sleep(POLL_S)
    if is_full and process.returncode == 1 and FULL in stage.status().get("error", ""):
        (folder / hook.ARMED).rename(folder / hook.STRUCK)
    return process.returncode


def _no_large_files() -> None:
    """In the child, before it becomes the command; all that it starts inherits it."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL_AT_BYTES, FULL_AT_BYTES))


def _note_driver(stage: Stage, pid: int) -> None:
    """Who is to be killed when a step is reached: the command, and its JVM once it is there."""
    file = stage.folder / "faults" / hook.DRIVER_PIDS
    try:
        lock = json.loads((stage.home / "lock").read_text())
    except (FileNotFoundError, ValueError):
        return
    if lock.get("pid") == pid and lock.get("jvm_pid"):
        wanted = f"{lock['jvm_pid']} {pid}"
        if not file.exists() or file.read_text() != wanted:
            file.write_text(wanted)


def _is_running(stage: Stage, pid: int) -> bool:
    if stage.case.command[1] != "run":
        return True  # of the other commands none keeps a status
    status = stage.status()
    return status.get("pid") == pid and status.get("state") in ("running", "waiting")


def _strike(stage: Stage, victim: str, pid: int) -> None:
    """A `worker` that is no process of its own, as without Spark, is the command itself."""
    family = _family(pid)
    workers = [child for child in family if "python" in _name(child)]
    if victim == "broker":
        hook.kill_all([stage.broker.pid])
    elif victim == "worker" and workers:
        hook.kill_all(workers[-1:])
    else:
        hook.kill_all([pid, *[child for child in family if "java" in _name(child)]])


def _family(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _name(pid: int) -> str:
    try:
        return str(psutil.Process(pid).name())
    except psutil.NoSuchProcess:
        return ""


def _log_of(stage: Stage) -> Path:
    return stage.folder / "faults" / f"program-{stage.attempts}.log"


def _said(stage: Stage) -> str:
    return _log_of(stage).read_text(errors="replace")[-4000:]
