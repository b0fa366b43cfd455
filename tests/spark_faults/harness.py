"""Running a Spark program while something is killed at a step of a batch, until it has finished.

The program is a process of its own that exits with 0 once it has taken in all there is; it calls
`tell_pids` when its session is there. What dies is started again, as an operator or a supervisor
would: the program after a failure, the broker after its death. Steps are told by the product
(`runnel.spark.steps`), but for `CHECKPOINT_WRITTEN`, which is seen in the checkpoint's folder.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import psutil

from runnel.spark import steps
from tests.spark_faults import hook
from tests.support.process import PACKAGES, ROOT, BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VICTIMS: Final = ("driver", "worker", "broker")
CHECKPOINT_WRITTEN: Final = "checkpoint written"
STARTS_MAX: Final = 6
RUN_TIMEOUT_S: Final = 240.0
POLL_S: Final = 0.01


class Fault(NamedTuple):
    victim: str
    step: str
    nth: int = 0  # the first time that the step is reached, or a later one


class Outcome(NamedTuple):
    struck: bool
    starts: int
    seconds: float


class FaultError(Exception):
    """The program did not finish; holds the end of what it said."""


def tell_pids(spark: "SparkSession") -> None:
    """In the program: who is to be killed when it is the driver's turn, the JVM first."""
    gateway = spark.sparkContext._gateway
    folder = Path(os.environ[hook.FOLDER_VARIABLE])
    jvm = gateway.java_process.pid  # type: ignore[union-attr]  # py4j's, which has no types
    (folder / hook.DRIVER_PIDS).write_text(f"{jvm} {os.getpid()}")


class Harness:
    """One broker and one folder for a series of faults."""

    def __init__(self, folder: Path, broker: BrokerProcess) -> None:
        self.folder = folder
        self._broker = broker
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, program: Sequence[str], fault: Fault | None, checkpoint: Path) -> Outcome:
        """`program` is what follows `python`. Raises FaultError if it does not come to its end."""
        self._arm(fault)
        watched = checkpoint if fault is not None and fault.step == CHECKPOINT_WRITTEN else None
        committed = _commits(checkpoint)
        began, starts = time.monotonic(), 0
        while True:
            starts += 1
            code = self._start(program, watched, committed, fault)
            if code == 0:
                break
            if starts == STARTS_MAX:
                raise FaultError(f"{fault}: ended with {code} {starts} times:\n{self._said()}")
        struck = fault is not None and not (self.folder / hook.ARMED).exists()
        (self.folder / hook.ARMED).unlink(missing_ok=True)
        return Outcome(struck, starts, time.monotonic() - began)

    def _arm(self, fault: Fault | None) -> None:
        for path in self.folder.glob(f"{hook.COUNTED}-*"):
            path.unlink()
        (self.folder / hook.STRUCK).unlink(missing_ok=True)
        (self.folder / hook.BROKER_PID).write_text(str(self._broker.pid))
        if fault is not None:
            (self.folder / hook.ARMED).write_text(json.dumps(fault._asdict()))

    def _start(
        self, program: Sequence[str], watched: Path | None, committed: set[str], fault: Fault | None
    ) -> int:
        environ = {
            **os.environ,
            steps.VARIABLE: hook.HOOK,
            hook.FOLDER_VARIABLE: str(self.folder),
            "PYTHONPATH": f"{PACKAGES}{os.pathsep}{ROOT}",
            "PYSPARK_PYTHON": sys.executable,
        }
        with (self.folder / "program.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *program], env=environ, stdout=log, stderr=log, cwd=self.folder
            )
        deadline = time.monotonic() + RUN_TIMEOUT_S
        try:
            while (code := process.poll()) is None:
                if not self._broker.is_running:
                    self._revive()
                if watched is not None and fault is not None and _commits(watched) - committed:
                    self._strike_from_outside(fault.victim)
                    watched = None
                if time.monotonic() > deadline:
                    raise FaultError(f"{fault}: not done in {RUN_TIMEOUT_S} s:\n{self._said()}")
                time.sleep(POLL_S)
        finally:
            _end_family(process.pid)
        if not self._broker.is_running:
            self._revive()
        return code

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
            pids = [child.pid for child in psutil.Process(pids[0]).children(recursive=True)]
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


def _end_family(pid: int) -> None:
    """What a killed driver left behind, by process id: the JVM leads no group of its own."""
    try:
        family = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return
    hook.kill_all([child.pid for child in family])


def difference(wanted: Iterable[bytes], found: Iterable[bytes]) -> tuple[int, int]:
    """How many rows are lost, and how many are there too often."""
    from collections import Counter

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
