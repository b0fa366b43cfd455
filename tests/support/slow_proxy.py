"""A proxy that holds every byte back for a while: a broker made slower. Bytes keep their order."""

import socket
import time
from functools import partial

from tests.support.proxy import Proxy, Pump

RECEIVE_BYTES = 64 * 1024


class SlowProxy(Proxy):
    def __init__(self, upstream: tuple[str, int], delay_s: float) -> None:
        super().__init__()
        self.upstream = upstream
        self._delay_s = delay_s

    def pumps(self, near: socket.socket, far: socket.socket) -> tuple[Pump, Pump]:
        return partial(self._pump, near, far), partial(self._pump, far, near)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(RECEIVE_BYTES):
                time.sleep(self._delay_s)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the other direction or the owner closed them
