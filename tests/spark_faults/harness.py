"""Running a Spark program while something is killed at a step of a batch, until it has finished.

The program is a process of its own that calls `serve` with what takes in all there is, and is told
to do so again and again. What dies is started again, as an operator or a supervisor would: the
program or its query after a failure, the broker after its death. Steps are told by the product
(`runnel.spark.steps`), but for `CHECKPOINT_WRITTEN`, which is seen in the checkpoint's folder.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import psutil

from runnel.spark import steps
from tests.spark_faults import hook
from tests.support.process import PACKAGES, ROOT, BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VICTIMS: Final = ("driver", "worker", "broker")
CHECKPOINT_WRITTEN: Final = "checkpoint written"
DONE: Final = "done"
TRIES_MAX: Final = 10
# Spark gives a Python process 10 s to start and has no setting for it: on a machine that is busy
# with other things that is no try at all.
TOO_SLOW: Final = "Python worker failed to connect back"
TOO_SLOW_MAX: Final = 100
TRY_TIMEOUT_S: Final = 900.0
POLL_S: Final = 0.01


class Fault(NamedTuple):
    victim: str
    step: str
    nth: int = 0  # the first time that the step is reached, or a later one


class Outcome(NamedTuple):
    struck: bool
    tries: int
    seconds: float


class FaultError(Exception):
    """The program did not finish; holds the end of what it said."""


def serve(spark: "SparkSession", run: Callable[[], None]) -> None:
    """In the program: run at every line of standard input, and say how it went in a file."""
    folder = Path(os.environ[hook.FOLDER_VARIABLE])
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    (folder / hook.DRIVER_PIDS).write_text(f"{gateway.proc.pid} {os.getpid()}")
    for line in sys.stdin:
        try:
            run()
            told = DONE
        except Exception as error:  # noqa: BLE001  # a query fails with whatever its parts raise
            told = f"{type(error).__name__}: {error}"
            print(f"----- {told}", file=sys.stderr, flush=True)
            if gateway.proc.poll() is not None:  # nothing can be done without the JVM
                sys.exit(told)
        reply = folder / f"reply-{line.strip()}"
        reply.with_suffix(".part").write_text(told)
        reply.with_suffix(".part").rename(reply)


class Harness:
    """One broker, one program and one folder for a series of faults. Use it as a context manager.

    `program` is what follows `python`.
    """

    def __init__(
        self, folder: Path, broker: BrokerProcess, program: Sequence[str], checkpoint: Path
    ) -> None:
        self.folder = folder
        self._broker = broker
        self._program = program
        self._checkpoint = checkpoint
        self._process: subprocess.Popen[bytes] | None = None
        self._runs = 0
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def run(self, fault: Fault | None) -> Outcome:
        """Until the program has taken in all there is. Raises FaultError if it cannot."""
        self._arm(fault)
        watched = fault is not None and fault.step == CHECKPOINT_WRITTEN
        committed = _commits(self._checkpoint)
        began, tries, too_slow = time.monotonic(), 1, 0
        while (told := self._try(fault if watched else None, committed)) != DONE:
            watched = watched and (self.folder / hook.ARMED).exists()
            if TOO_SLOW in told:
                too_slow += 1
            else:
                tries += 1
            if tries > TRIES_MAX or too_slow > TOO_SLOW_MAX:
                raise FaultError(f"{fault}: {tries} times:\n{told}\n{self._said()}")
        struck = fault is not None and not (self.folder / hook.ARMED).exists()
        (self.folder / hook.ARMED).unlink(missing_ok=True)
        return Outcome(struck, tries, time.monotonic() - began)

    def _arm(self, fault: Fault | None) -> None:
        for path in self.folder.glob(f"{hook.COUNTED}-*"):
            path.unlink()
        (self.folder / hook.STRUCK).unlink(missing_ok=True)
        (self.folder / hook.BROKER_PID).write_text(str(self._broker.pid))
        if fault is not None:
            (self.folder / hook.ARMED).write_text(json.dumps(fault._asdict()))

    def _try(self, watched: Fault | None, committed: set[str]) -> str:
        """What the program said in the end, or that it is dead."""
        process = self._process or self._start()
        self._runs += 1
        reply = self.folder / f"reply-{self._runs}"
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{self._runs}\n".encode())
            process.stdin.flush()
        deadline = time.monotonic() + TRY_TIMEOUT_S
        while not reply.exists():
            if process.poll() is not None:
                self._end()
                break
            if not self._broker.is_running:
                self._revive()
            if watched is not None and _commits(self._checkpoint) - committed:
                self._strike_from_outside(watched.victim)
                watched = None
            if time.monotonic() > deadline:
                self._end()
                raise FaultError(f"not done in {TRY_TIMEOUT_S} s:\n{self._said()}")
            time.sleep(POLL_S)
        if not self._broker.is_running:
            self._revive()
        return reply.read_text() if reply.exists() else "the program is dead"

    def _start(self) -> "subprocess.Popen[bytes]":
        environ = {
            **os.environ,
            steps.VARIABLE: hook.HOOK,
            hook.FOLDER_VARIABLE: str(self.folder),
            "PYTHONPATH": f"{PACKAGES}{os.pathsep}{ROOT}",
        }
        with (self.folder / "program.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._program],
                env=environ,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        return self._process

    def _end(self) -> None:
        """The program, and what a killed driver has left behind, by process id."""
        if self._process is None:
            return
        process, self._process = self._process, None
        family = [] if process.poll() is not None else _family(process.pid)
        pids = self.folder / hook.DRIVER_PIDS
        if pids.exists():
            family += [int(pid) for pid in pids.read_text().split()]
            pids.unlink()
        hook.kill_all([*family, process.pid] if process.poll() is None else family)
        process.wait()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()

    def _revive(self) -> None:
        self._broker.wait()
        self._broker.start()
        (self.folder / hook.BROKER_PID).write_text(str(self._broker.pid))

    def _strike_from_outside(self, victim: str) -> None:
        try:
            (self.folder / hook.ARMED).rename(self.folder / hook.STRUCK)
        except FileNotFoundError:
            return
        pids = [int(pid) for pid in (self.folder / hook.DRIVER_PIDS).read_text().split()]
        if victim == "broker":
            pids = [self._broker.pid]
        elif victim == "worker":
            pids = _workers(pids[0])
        hook.kill_all(pids)

    def _said(self) -> str:
        return (self.folder / "program.log").read_text(errors="replace")[-6000:]


def _commits(checkpoint: Path) -> set[str]:
    """The batches that Spark has done with."""
    folder = checkpoint / "commits"
    return (
        {path.name for path in folder.iterdir() if path.name.isdigit()}
        if folder.exists()
        else set()
    )


def _workers(jvm: int) -> list[int]:
    """Python below the JVM, but not the process that forks workers: Spark starts no other."""
    parents: dict[int, int] = {}
    for child in psutil.Process(jvm).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # a worker that has just ended
            parents[child.pid] = child.ppid()
    return [pid for pid in parents if pid not in parents.values()]


def _family(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def difference(wanted: Iterable[bytes], found: Iterable[bytes]) -> tuple[int, int]:
    """How many rows are lost, and how many are there too often."""
    left, right = Counter(wanted), Counter(found)
    return (left - right).total(), (right - left).total()


def table(outcomes: dict[tuple[str, str], str], rows: Sequence[str]) -> str:
    """Victim by step, as the run prints it."""
    width = max(map(len, rows))
    head = f"{'step':{width}}  " + "  ".join(f"{victim:>12}" for victim in VICTIMS)
    body = [
        f"{step:{width}}  "
        + "  ".join(f"{outcomes.get((victim, step), '-'):>12}" for victim in VICTIMS)
        for step in rows
    ]
    return "\n".join([head, *body])
