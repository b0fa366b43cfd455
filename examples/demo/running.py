"""A pipeline as a process of its own, and what its status file tells."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

STOP_TIMEOUT_S = 60.0


class Running:
    """`runnel pipeline run NAME` in a folder; what it prints goes to a file beside its state."""

    def __init__(
        self, folder: Path, name: str, *arguments: str, tables: Sequence[str] = ()
    ) -> None:
        self.name = name
        self._tables = tables  # that it writes; else what it says of itself is taken
        self.arguments = ("pipeline", "run", name, *arguments)
        self._folder = folder
        self.log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "runnel", *self.arguments],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is ours; we stop it
            )

    def status(self) -> dict[str, Any]:
        file = self._folder / ".runnel" / "pipelines" / self.name / "status.json"
        try:
            found: dict[str, Any] = json.loads(file.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return found

    def check(self) -> None:
        """Raises RuntimeError if it has ended, with what it said."""
        assert self._process is not None
        if (status := self._process.poll()) is not None:
            said = self.log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"pipeline {self.name} ended with {status}:\n{said}")

    @property
    def rows(self) -> int:
        """What is done: rows of its tables where it has some."""
        if not self._tables:
            return int(self.status().get("rows") or 0)
        folders = [self._folder / table for table in self._tables]
        return sum(DeltaTable(str(at)).count() for at in folders if (at / "_delta_log").is_dir())

    def stop(self) -> None:
        """After the batch in hand."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None
