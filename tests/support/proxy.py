"""A TCP proxy on the loopback: what all of them do, whatever they do with the bytes between.

Runs in a thread of its own, with one more for each direction of a connection. Use as a context
manager.
"""

import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

Pump = Callable[[], None]


class Proxy:
    upstream: tuple[str, int]

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listening.getsockname()
        self._sockets: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def pumps(self, near: socket.socket, far: socket.socket) -> tuple[Pump, Pump]:
        """One for each direction, each for a thread of its own."""
        raise NotImplementedError

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
            try:
                far = socket.create_connection(self.upstream)
            except OSError:  # the broker has gone before its clients
                near.close()
                continue
            self._sockets += [near, far]
            for sock in (near, far):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for pump in self.pumps(near, far):
                threading.Thread(target=pump, daemon=True).start()
