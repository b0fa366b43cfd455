"""`python -m runnel.exporter FILE LISTENING LIFELINE`, which only a broker starts.

The arguments are descriptors that it inherits: the mapped file, the listening socket, and one end
of a pair of sockets. The broker holds the other end and nobody else does: when it is gone, however
it went, so are we.
"""

import contextlib
import mmap
import os
import signal
import socket
import sys
import time
from typing import Final

from runnel.exporter.http import Answer, Request, Server, plain
from runnel.exporter.layout import FILE_BYTES, MAGIC, PLAIN_BYTES, Slot, State
from runnel.exporter.reading import Snapshot
from runnel.exporter.text import OPEN_METRICS, PLAIN, pieces

NICE: Final = 5  # a scrape can wait, requests should not
QUIET_MS_MAX: Final = 5000
_BOOT_TIME: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_INDEX: Final = "Runnel: /metrics for Prometheus, /healthz: it runs, /readyz: clients may come"


class Exporter:
    def __init__(self, mapped: memoryview) -> None:
        self._mapped = mapped

    def answer(self, request: Request) -> Answer:
        if request.method not in ("GET", "HEAD"):
            return plain(405, "only GET and HEAD")
        match request.path:
            case "/metrics":
                accept = request.headers.get("accept", "")
                is_open = "application/openmetrics-text" in accept
                text = pieces(Snapshot(self._mapped), open_metrics=is_open)
                return Answer(200, OPEN_METRICS if is_open else PLAIN, text)
            case "/healthz":
                return self._health()
            case "/readyz":
                return self._readiness()
            case "/":
                return plain(200, _INDEX)
            case _:
                return plain(404, f"nothing is here; {_INDEX}")

    def _health(self) -> Answer:
        """That the broker's process lives is certain, as we do; this asks whether its loop runs."""
        words = self._mapped[:PLAIN_BYTES].cast("q")
        quiet_ms = time.clock_gettime_ns(_BOOT_TIME) // 1_000_000 - words[Slot.HEARTBEAT_MS]
        if words[Slot.STATE] == State.READY and quiet_ms > QUIET_MS_MAX:
            return plain(503, f"the event loop has not run for {quiet_ms / 1000:.1f} s")
        return plain(200, "ok")

    def _readiness(self) -> Answer:
        state = State(self._mapped[:PLAIN_BYTES].cast("q")[Slot.STATE])
        if state is not State.READY:
            return plain(503, state.name.lower())
        return plain(200, "ready")


def main() -> None:
    file, listening, lifeline = map(int, sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the broker decides
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as systemd does, at a stop that takes a while
    with contextlib.suppress(OSError):
        os.nice(NICE)
    mapped = memoryview(mmap.mmap(file, FILE_BYTES, access=mmap.ACCESS_READ))
    if mapped[:8].cast("q")[0] != MAGIC:
        sys.exit("runnel.exporter: the file is of another version of Runnel")
    handler = Exporter(mapped).answer
    Server(socket.socket(fileno=listening), socket.socket(fileno=lifeline), handler).run()


if __name__ == "__main__":
    main()
