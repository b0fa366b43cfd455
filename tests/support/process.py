"""A Runnel broker as its users run it: a process of its own, started by `python -m runnel serve`.

Listens on the loopback. The owner ends it by its own process id. The port that the first start
picked is kept, so that clients find the broker again after `stop` or `kill` and a new `start`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

import runnel
from runnel.config.spellings import VARIABLES

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path(runnel.__file__).resolve().parents[1]  # the sources, or what was compiled of them
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
POLL_S = 0.002

# uvloop is what users get; asyncio's own loop in debug mode finds blocking calls and lost tasks.
LOOPS: Mapping[str, Mapping[str, str]] = {
    "uvloop": {},
    "asyncio-debug": {
        "PYTHONPATH": f"{ROOT / 'tests/support/no_uvloop'}:{PACKAGES}",
        "PYTHONASYNCIODEBUG": "1",
    },
}


class BrokerError(Exception):
    """The broker did not start or stop; the message holds what it logged."""


def serve_command(data_dir: Path | str, *arguments: str, port: int = 0) -> list[str]:
    return [
        *(sys.executable, "-m", "runnel", "serve"),
        *("--host", "127.0.0.1", "--port", str(port), "--data-dir", str(data_dir)),
        *arguments,
    ]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours without any variable of the developer that sets something, our own package first."""
    mine = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("RUNNEL_") and name not in VARIABLES
    }
    return {**mine, "PYTHONPATH": str(PACKAGES), **(extra or {})}


def serve_until_it_fails(
    data_dir: Path, *arguments: str, port: int = 0, **environ: str
) -> tuple[int, str]:
    """The exit status and what was said, of a start that is to be refused."""
    done = subprocess.run(
        serve_command(data_dir, *arguments, port=port),
        env=environment(environ),
        capture_output=True,
        text=True,
        timeout=20,
    )
    return done.returncode, done.stderr


class BrokerProcess:
    """One broker on a data folder. Use as a context manager, or call `start` and `stop`."""

    def __init__(
        self,
        data_dir: Path,
        *,
        settings: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        port: int = 0,
        more_dirs: Sequence[Path] = (),
        metrics: bool = False,
        stop_timeout_s: float = STOP_TIMEOUT_S,
    ) -> None:
        self.data_dir = data_dir
        self._dirs = ",".join(str(path) for path in (data_dir, *more_dirs))
        self.port = port
        self._stop_timeout_s = stop_timeout_s
        self.ready_file = data_dir.with_name(data_dir.name + ".ready")
        self._log_file = data_dir.with_name(data_dir.name + ".log")
        self._arguments = [*([] if metrics else ["--http", "off"]), *arguments]
        for name, value in (settings or {}).items():
            self._arguments += ["--set", f"{name}={value}"]
        self._environment = environment(environ)
        self._process: subprocess.Popen[bytes] | None = None

    def spawn(self) -> None:
        """Start the process without waiting for it."""
        assert self._process is None, "the broker is running"
        self.ready_file.unlink(missing_ok=True)
        command = serve_command(
            self._dirs,
            *("--ready-file", str(self.ready_file)),
            *self._arguments,
            port=self.port,
        )
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env=self._environment
            )

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Returns when the ready file is there: clients can connect."""
        self.spawn()
        assert self._process is not None
        deadline = time.monotonic() + timeout_s
        while (ready := self._ready()) is None:
            if (code := self._process.poll()) is not None:
                self._process = None
                raise BrokerError(f"the broker ended with {code}:\n{self.log}")
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerError(f"not ready within {timeout_s} s:\n{self.log}")
            time.sleep(POLL_S)
        self.port = int(str(ready["kafka"][0]).rpartition(":")[2])

    def _ready(self) -> dict[str, Any] | None:
        if not self.ready_file.exists():
            return None
        content: dict[str, Any] = json.loads(self.ready_file.read_text())
        return content

    @property
    def http(self) -> str:
        """Where metrics are told, once it is ready; empty if nowhere."""
        ready = self._ready()
        return "" if ready is None else str(ready["http"] or "")

    def stop(self) -> int:
        """SIGTERM, as an operator does; returns the exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """SIGKILL: what a crash of the process leaves behind."""
        return self._end(signal.SIGKILL)

    def send_signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "the broker is not running"
        self._process.send_signal(number)

    def wait(self, timeout_s: float | None = None) -> int:
        assert self._process is not None, "the broker is not running"
        process, self._process = self._process, None
        timeout_s = self._stop_timeout_s if timeout_s is None else timeout_s
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise BrokerError(f"still running after {timeout_s} s:\n{self.log}") from None

    def _end(self, how: signal.Signals) -> int:
        self.send_signal(how)
        return self.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.stop()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """All that was logged, by every start on this folder."""
        return self._log_file.read_text(errors="replace") if self._log_file.exists() else ""

    def rss_bytes(self) -> int:
        return int(psutil.Process(self.pid).memory_info().rss)


StartBroker = Callable[..., BrokerProcess]  # the fixture of that name
