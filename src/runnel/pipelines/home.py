"""The folder in which a pipeline keeps its state; whoever looks from another terminal reads it.

checkpoint/       Spark's: how far the pipeline is, and its state
status.json       what it does now, replaced as a whole (`status.py`)
history.jsonl     one line for each run that ended, the newest last
lock              held by the process that runs it; names its JVM, which may die later
spec.json         what the file said when the checkpoint was begun
notes/            of the kind
spark.log         what Spark's JVM said in the last run
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from runnel.pipelines.processes import is_alive, start_of

FOLDER: Final = ".runnel/pipelines"
HISTORY_LINES_MAX: Final = 200
JVM_END_S: Final = 30.0


class BusyError(Exception):
    """Another process runs this pipeline."""


class Home:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def status_file(self) -> Path:
        return self.folder / "status.json"

    @property
    def spec_file(self) -> Path:
        return self.folder / "spec.json"

    @property
    def spark_log(self) -> Path:
        return self.folder / "spark.log"

    @property
    def _lock(self) -> Path:
        return self.folder / "lock"

    @property
    def _history(self) -> Path:
        return self.folder / "history.jsonl"

    @contextmanager
    def claimed(self) -> "Iterator[None]":
        """For this process alone, until the block ends or the process dies. Raises BusyError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BusyError(_runner_of(os.read(descriptor, 4096))) from None
            self._await_jvm(os.read(descriptor, 4096))
            self.note_jvm(None)
            try:
                yield
            finally:
                os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)

    def note_jvm(self, pid: int | None) -> None:
        """In the lock: a JVM can outlive the process that started it by a moment."""
        document = {"pid": os.getpid(), "started": start_of(os.getpid())}
        jvm = {} if pid is None else {"jvm_pid": pid, "jvm_started": start_of(pid)}
        self._lock.write_text(json.dumps(document | jvm))

    def write(self, file: Path, document: object) -> None:
        """Replaced as a whole: readers see the one before or this."""
        part = file.with_name(file.name + ".part")
        part.write_text(json.dumps(document, indent=1, default=str) + "\n")
        part.replace(file)

    def remember(self, run: object) -> None:
        """A line of history; the oldest go."""
        lines = self._history.read_text().splitlines() if self._history.exists() else []
        lines = [*lines[1 - HISTORY_LINES_MAX :], json.dumps(run, default=str)]
        part = self._history.with_name(self._history.name + ".part")
        part.write_text("\n".join(lines) + "\n")
        part.replace(self._history)

    def history(self) -> list[dict[str, object]]:
        lines = self._history.read_text().splitlines() if self._history.exists() else []
        return [json.loads(line) for line in lines]

    def _await_jvm(self, content: bytes) -> None:
        """Of a run that was killed: it writes to the same checkpoint until it notices."""
        before = _read(content)
        pid, started = before.get("jvm_pid"), str(before.get("jvm_started", ""))
        if not isinstance(pid, int):
            return
        deadline = time.monotonic() + JVM_END_S
        while is_alive(pid, started):
            if time.monotonic() > deadline:
                raise BusyError(f"Spark's JVM of an earlier run still runs, process {pid}")
            time.sleep(0.1)


def _runner_of(content: bytes) -> str:
    pid = _read(content).get("pid")
    return f"process {pid} runs it" if pid else "another process runs it"


def _read(content: bytes) -> dict[str, object]:
    try:
        found = json.loads(content)
    except ValueError:  # empty, or half written by a process that was killed
        return {}
    return found if isinstance(found, dict) else {}
