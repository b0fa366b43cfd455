"""A broker in a process of its own: what users run, started as they start it.

The process hears of our end by the end of its standard input, so a test run that is killed leaves
no broker behind. It has a session of its own: Ctrl-C reaches the tests, and only they stop it.
"""

import json
import os
import signal
import site
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import runnel
from runnel.testing.failure import BrokerError

POLL_S: Final = 0.001
# A broker of a test has the settings of the test, whatever the developer's shell is made for.
_SETTINGS_IN_ENVIRONMENT: Final = frozenset(
    {"NODE_ID", "HOST", "KAFKA_PORT", "DATA_DIR", "AUTO_CREATE_TOPICS"}
)


class ProcessRunner:
    """Keeps the log and the ready file in `scratch`, beside the data."""

    def __init__(self, scratch: Path) -> None:
        self.pid = -1
        self.http: str | None = None
        self._scratch = scratch
        self._ready_file = scratch / "ready.json"
        self._log_file = scratch / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, settings: Mapping[str, str], timeout_s: float) -> int:
        self._gone()  # if it ended by itself
        self._ready_file.unlink(missing_ok=True)
        command = [
            *(sys.executable, "-m", "runnel.testing.child", str(self._scratch)),
            *("--ready-file", str(self._ready_file)),
        ]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(),
                start_new_session=True,
            )
        self.pid = self._process.pid
        return self._await_ready(self._process, time.monotonic() + timeout_s)

    def _await_ready(self, process: subprocess.Popen[bytes], deadline: float) -> int:
        while not self._ready_file.exists():
            status = process.poll()
            if status is not None:
                self._gone()
                raise BrokerError(f"the broker ended with status {status}:\n{self.logs}")
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerError(f"the broker was not ready in time:\n{self.logs}")
            time.sleep(POLL_S)
        ready = json.loads(self._ready_file.read_text())
        self.http = ready["http"]
        address: str = ready["kafka"][0]
        return int(address.rpartition(":")[2])

    def stop(self, timeout_s: float) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerError(f"the broker did not stop in time:\n{self.logs}") from None
        self._gone()
        if status != 0:
            raise BrokerError(f"the broker stopped with status {status}:\n{self.logs}")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._gone()

    def _gone(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def logs(self) -> str:
        return self._log_file.read_text(errors="replace") if self._log_file.exists() else ""


def _environment() -> dict[str, str]:
    """Ours without the settings of a broker, and such that the child finds the same package."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("RUNNEL_") and name not in _SETTINGS_IN_ENVIRONMENT
    }
    packages = str(Path(runnel.__file__).resolve().parents[1])
    if packages not in site.getsitepackages():  # a checkout; the child finds the rest by itself
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, [packages, environ.get("PYTHONPATH")]))
    return environ
