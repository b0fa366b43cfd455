"""A broker in a thread of this process, with an event loop of its own.

Nothing has to be started but the broker itself. It leaves the process as it found it: no signal
handler, no limit raised, no thread, and the level of the `runnel` logger as it was.
"""

import asyncio
import contextlib
import logging
import os
import queue
import threading
from collections import deque
from collections.abc import Mapping
from typing import Final

from runnel.broker.running import run_broker
from runnel.broker.server import Broker
from runnel.broker.system import run
from runnel.config.settings import Settings, load
from runnel.storage.lock import FolderLock
from runnel.testing.failure import BrokerError

LOG_LINES_MAX: Final = 10_000
ROOT_LOGGER: Final = "runnel"


class ThreadRunner:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.http: str | None = None
        self._log = _Log()
        self._thread: threading.Thread | None = None

    _loop: asyncio.AbstractEventLoop
    _stop: asyncio.Event

    def start(self, settings: Mapping[str, str], timeout_s: float) -> int:
        try:
            loaded, warnings = load(settings, {}, None)
        except Exception as error:
            raise BrokerError(f"the broker did not start: {error}") from error
        if self._thread is not None:  # it ended by itself
            self._end(timeout_s)
        self._log.attach()
        for warning in warnings:
            logging.getLogger(ROOT_LOGGER).warning("%s", warning)
        self._outcome: queue.SimpleQueue[int | BaseException] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._run, args=(loaded,), name="runnel-broker", daemon=True
        )
        self._thread.start()
        try:
            outcome = self._outcome.get(timeout=timeout_s)
        except queue.Empty:
            raise BrokerError(f"the broker was not ready in time:\n{self.logs}") from None
        if isinstance(outcome, BaseException):
            self._end(timeout_s)
            raise BrokerError(f"the broker did not start: {outcome}") from outcome
        return outcome

    def _run(self, settings: Settings) -> None:
        """The body of the thread. What it raises belongs to whoever starts or stops it."""
        try:
            locks = [FolderLock(folder) for folder in settings.log_dirs]
            try:
                run(self._serve(settings))
            finally:
                for lock in locks:
                    lock.release()
        except BaseException as error:  # noqa: BLE001  # handed over, never swallowed
            self._outcome.put(error)

    async def _serve(self, settings: Settings) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await run_broker(settings, self._stop, self._on_ready, progress=_no_progress)

    def _on_ready(self, _broker: Broker, addresses: list[str], http: str | None) -> None:
        self.http = http
        self._outcome.put(int(addresses[0].rpartition(":")[2]))

    def stop(self, timeout_s: float) -> None:
        if self._thread is None:
            return
        with contextlib.suppress(RuntimeError):  # its loop is closed: it ended by itself
            self._loop.call_soon_threadsafe(self._stop.set)
        self._end(timeout_s)
        if not self._outcome.empty():
            error = self._outcome.get()
            assert isinstance(error, BaseException)
            raise BrokerError(f"the broker failed: {error}\n{self.logs}") from error

    def _end(self, timeout_s: float) -> None:
        assert self._thread is not None
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise BrokerError(f"the broker did not stop in time:\n{self.logs}")
        self._thread = None
        self._log.detach()

    def kill(self) -> None:
        raise BrokerError("a broker in this process cannot be killed; use in_process=False")

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def logs(self) -> str:
        return "".join(f"{line}\n" for line in self._log.lines)


class _Log(logging.Handler):
    """Keeps what the broker logs; handlers of the test, such as pytest's, get it too."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=LOG_LINES_MAX)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
        self._level_before = logging.NOTSET

    def attach(self) -> None:
        logger = logging.getLogger(ROOT_LOGGER)
        self._level_before = logger.level
        if not logger.isEnabledFor(logging.INFO):
            logger.setLevel(logging.INFO)
        logger.addHandler(self)

    def detach(self) -> None:
        logger = logging.getLogger(ROOT_LOGGER)
        logger.removeHandler(self)
        logger.setLevel(self._level_before)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def _no_progress(_done: int, _total: int, _name: str) -> None: ...
