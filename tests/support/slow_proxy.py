"""A TCP proxy on the loopback that holds every byte back for a while: a broker made slower.

Runs in a thread of its own, with one more for each direction of a connection; bytes keep their
order. Use as a context manager.
"""

import socket
import threading
import time
from types import TracebackType
from typing import Self

RECEIVE_BYTES = 64 * 1024


class SlowProxy:
    def __init__(self, upstream: tuple[str, int], delay_s: float) -> None:
        self._upstream = upstream
        self._delay_s = delay_s
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listening.getsockname()
        self._sockets: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)  # wakes the accepting thread
        self._thread.join()
        self._listening.close()
        for sock in self._sockets:
            sock.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return  # closed
            far = socket.create_connection(self._upstream)
            self._sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(RECEIVE_BYTES):
                time.sleep(self._delay_s)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the other direction or the owner closed them
