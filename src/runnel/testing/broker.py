"""The broker of a test: a folder, a port, and either a process or a thread that serves.

The port that the first start picked is kept, so that clients find the broker again after `stop` or
`kill` and a new `start`. `close`, which the end of a `with` block calls, also removes the folder.
"""

import asyncio
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from runnel.testing.failure import BrokerError
from runnel.testing.given import ensure_not_ours, laid_over

__all__ = ["BrokerError", "RunnelBroker"]

HOST: Final = "127.0.0.1"
START_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 30.0
REQUEST_TIMEOUT_S: Final = 30.0
# Nothing of a test has to survive a power loss, and its first consumer need not wait for others.
TEST_DEFAULTS: Final[Mapping[str, str]] = {
    "runnel.durability": "os",
    "group.initial.rebalance.delay.ms": "0",
}

Setting = str | int | float | bool


class Runner(Protocol):
    """Where a broker runs. `start` returns the port, once clients can connect.

    `stop` does nothing where nothing was started, and raises BrokerError for a broker that failed.
    """

    pid: int
    http: str | None  # where metrics are told, from the start on

    def start(self, settings: Mapping[str, str], timeout_s: float) -> int: ...

    def stop(self, timeout_s: float) -> None: ...

    def kill(self) -> None: ...

    @property
    def is_running(self) -> bool: ...

    @property
    def logs(self) -> str: ...


class RunnelBroker:
    """A real Runnel broker. Use it in `with` or `async with`, or call `start` and `close`.

    `settings` are Kafka's names or Runnel's own; where it listens and keeps its data, `port` and
    `data_dir` say. By default the broker is a process of its own;
    with `in_process` it is a thread of this one: there is nothing to start, but `kill` does not
    work, and its work and yours take turns. With `metrics` it tells them at `metrics_url`, which
    takes a process more. A `data_dir` that is given is kept afterwards.
    """

    def __init__(
        self,
        settings: Mapping[str, Setting] | None = None,
        *,
        in_process: bool = False,
        metrics: bool = False,
        data_dir: str | Path | None = None,
        port: int = 0,
    ) -> None:
        self._scratch = Path(tempfile.mkdtemp(prefix="runnel-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)
        self.data_dir = self._scratch / "data" if data_dir is None else Path(data_dir)
        self.port = port
        given = {name: _text(value) for name, value in (settings or {}).items()}
        ensure_not_ours(given)
        http = f"{HOST}:0" if metrics else "off"
        self._settings = laid_over({**TEST_DEFAULTS, "runnel.http.listener": http}, given)
        self._runner = self._make_runner(in_process)
        self._last_logs = ""

    def _make_runner(self, in_process: bool) -> Runner:
        """Each imports what it needs only when it is chosen: a thread needs the whole broker."""
        if in_process:
            from runnel.testing.thread import ThreadRunner

            return ThreadRunner()
        from runnel.testing.process import ProcessRunner

        return ProcessRunner(self._scratch)

    # Life

    def start(self, timeout_s: float = START_TIMEOUT_S) -> Self:
        """Returns when clients can connect. Raises BrokerError with what the broker logged."""
        if not self._remove.alive:
            raise BrokerError("this broker was closed; make another")
        if self.is_running:
            raise BrokerError(f"the broker is running already, on {self.bootstrap_servers}")
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.port = self._runner.start(
            {
                **self._settings,
                "listeners": f"PLAINTEXT://{HOST}:{self.port}",
                "log.dirs": str(self.data_dir),
            },
            timeout_s,
        )
        return self

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """In order, as an operator stops it: what was answered is on the disk.

        Raises BrokerError if it had ended by itself.
        """
        self._runner.stop(timeout_s)

    def kill(self) -> None:
        """At once, as a crash does. Only a broker that is a process can be killed."""
        self._runner.kill()

    def restart(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Stop, if it runs, and start again on the same folder and the same port."""
        self.stop()
        self.start(timeout_s)

    def close(self) -> None:
        """Stop it and remove the temporary folder."""
        try:
            self.stop()
        finally:
            self._last_logs = self.logs
            self._remove()

    @property
    def is_running(self) -> bool:
        return self._runner.is_running

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)

    # What a test asks it

    @property
    def bootstrap_servers(self) -> str:
        """`127.0.0.1:port`, as every client takes it."""
        if not self.port:
            raise BrokerError("the broker has no port before its first start")
        return f"{HOST}:{self.port}"

    @property
    def metrics_url(self) -> str:
        """What Prometheus would scrape. Raises BrokerError for a broker without `metrics`."""
        if not self._runner.http:
            raise BrokerError("this broker tells no metrics; make it with metrics=True")
        return f"http://{self._runner.http}/metrics"

    @property
    def pid(self) -> int:
        """The process in which it runs: its own, or with `in_process` this one."""
        return self._runner.pid

    @property
    def logs(self) -> str:
        """All that was logged so far, by every start on this folder."""
        return self._runner.logs if self._remove.alive else self._last_logs

    def create_topic(
        self,
        name: str | None = None,
        *,
        partitions: int = 1,
        config: Mapping[str, Setting] | None = None,
    ) -> str:
        """Returns the name, which is a new one if none is given. Raises BrokerError."""
        from runnel.testing.topics import create_topic

        name = f"topic-{os.urandom(6).hex()}" if name is None else name
        configs = {key: _text(value) for key, value in (config or {}).items()}
        create_topic((HOST, self.port), name, partitions, configs)
        return name

    def delete_topic(self, name: str, *, missing_ok: bool = False) -> None:
        """Raises BrokerError, with `missing_ok` not for a topic that is not there."""
        from runnel.testing.topics import delete_topic

        delete_topic((HOST, self.port), name, missing_ok=missing_ok)


def _text(value: Setting) -> str:
    """As a properties file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
