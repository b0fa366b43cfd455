"""The exporter beside this broker: its mapped file, its socket, and its process, kept alive.

The broker binds the socket, so that the address is known before anybody is there to answer, and
keeps it, so that it stays the same when the process is started anew. The file has no name and is
gone with the last of the two. Neither a process that dies nor one that cannot be started harms the
broker: it says so and tries again, later each time.
"""

import asyncio
import contextlib
import logging
import mmap
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import runnel
from runnel.broker.listener import bind
from runnel.broker.uninterrupted import uninterrupted
from runnel.config.listeners import HttpListener, host_and_port
from runnel.exporter.layout import FILE_BYTES, State
from runnel.metrics import Metrics, Slot

_log = logging.getLogger(__name__)
BACKLOG: Final = 64
FIRST_BACKOFF_S: Final = 1.0
BACKOFF_S_MAX: Final = 60.0
END_TIMEOUT_S: Final = 2.0
# A start should not share the processor with the exporter's; one that takes long should be told of.
HEAD_START_S: Final = 0.5
# Without `site`, the environment and the working directory: few imports, and nobody else's.
_MAIN: Final = (
    "import sys; sys.path.append(sys.argv.pop(1));"
    " from runnel.exporter.__main__ import main; main()"
)


class Exporting:
    """Owned by whoever runs the broker, who closes it."""

    def __init__(self, listener: HttpListener) -> None:
        """Raises OSError if the address was asked for and cannot be had."""
        self._sock = _bind(listener)
        self._sock.listen(BACKLOG)
        host, port = self._sock.getsockname()[:2]
        self.address = host_and_port(host, port)
        self._file = _nameless_file()
        self.metrics = Metrics(mmap.mmap(self._file, FILE_BYTES))
        self.metrics.slots[Slot.STARTED_MS] = time.time_ns() // 1_000_000
        self.metrics.publish()
        self._ready = asyncio.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._lifeline: socket.socket | None = None

    def tell(self, state: State) -> None:
        self.metrics.slots[Slot.STATE] = state
        self.metrics.publish()
        if state is State.READY:
            self._ready.set()

    async def run(self) -> None:
        """As long as the broker: one process after the other, if need be."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEAD_START_S):
                await self._ready.wait()
        _log.info("metrics and health are told on http://%s", self.address)
        backoff_s = FIRST_BACKOFF_S
        while True:
            began_s = time.monotonic()
            try:
                await uninterrupted(asyncio.to_thread(self._spawn))
                why = f"ended with status {await self._ended()}"
            except OSError as error:
                why = f"cannot be started: {error}"
            if time.monotonic() - began_s > BACKOFF_S_MAX:
                backoff_s = FIRST_BACKOFF_S
            _log.warning("the metrics exporter %s; the next try is in %g s", why, backoff_s)
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, BACKOFF_S_MAX)

    def _spawn(self) -> None:
        self._end()
        ours, theirs = socket.socketpair()
        descriptors = (self._file, self._sock.fileno(), theirs.fileno())
        root = str(Path(runnel.__file__).parent.parent)
        flags = ["-I", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
        try:
            self._child = subprocess.Popen(
                [sys.executable, *flags, "-c", _MAIN, root, *map(str, descriptors)],
                stdin=subprocess.DEVNULL,
                pass_fds=descriptors,
            )
            self._lifeline = ours
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()

    async def _ended(self) -> int:
        """Nothing is ever said on the lifeline: it can be read when its other end is gone."""
        assert self._child is not None and self._lifeline is not None
        loop, gone = asyncio.get_running_loop(), asyncio.Event()
        fd = self._lifeline.fileno()
        loop.add_reader(fd, gone.set)
        try:
            await gone.wait()
        finally:
            loop.remove_reader(fd)
        return await asyncio.to_thread(self._child.wait)

    def _end(self) -> None:
        if self._lifeline is not None:
            self._lifeline.close()
            self._lifeline = None
        if self._child is not None:
            try:
                self._child.wait(END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
            self._child = None

    def close(self) -> None:
        self._end()
        self._sock.close()
        os.close(self._file)


def _bind(listener: HttpListener) -> socket.socket:
    try:
        return bind(listener.host, listener.port)
    except OSError as error:
        if listener.is_given:
            raise
        _log.info("%s; a free port is taken for metrics", error.strerror)
        return bind(listener.host, 0)


def _nameless_file() -> int:
    """In memory, where the system has such files: no disk is ever to hold up a counter."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("runnel-metrics")
    else:
        import tempfile

        with tempfile.TemporaryFile() as temporary:
            file = os.dup(temporary.fileno())
    os.ftruncate(file, FILE_BYTES)
    return file
