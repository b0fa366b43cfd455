"""A TCP proxy on the loopback that holds back the replies to one kind of request, until it is told.

So a test can act while a client waits for that reply. Replies behind a held one wait, too: they
keep their order. The broker has to advertise `address`, or clients would go around the proxy.
"""

import socket
import struct
import threading
from functools import partial
from types import TracebackType

from runnel.wire.apis import ApiKey
from tests.support.proxy import Proxy, Pump

_REQUEST = struct.Struct(">hhi")  # API key, version, correlation id
_SIZE = struct.Struct(">i")


class HoldingProxy(Proxy):
    """In `with`; `upstream` is set once the broker is there."""

    def __init__(self) -> None:
        super().__init__()
        self._api_key: ApiKey | None = None
        self.has_held = threading.Event()
        self._is_open = threading.Event()
        self._is_open.set()

    def hold(self, api_key: ApiKey) -> None:
        self._api_key = api_key
        self.has_held.clear()
        self._is_open.clear()

    def release(self) -> None:
        self._is_open.set()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
        super().__exit__(kind, error, trace)

    def pumps(self, near: socket.socket, far: socket.socket) -> tuple[Pump, Pump]:
        asked: set[int] = set()
        return partial(self._ask, near, far, asked), partial(self._answer, far, near, asked)

    def _ask(self, source: socket.socket, sink: socket.socket, asked: set[int]) -> None:
        while frame := _frame(source):
            api_key, _, correlation_id = _REQUEST.unpack_from(frame, _SIZE.size)
            if api_key == self._api_key:
                asked.add(correlation_id)
            _send(sink, frame)
        _shut(sink)

    def _answer(self, source: socket.socket, sink: socket.socket, asked: set[int]) -> None:
        while frame := _frame(source):
            (correlation_id,) = _SIZE.unpack_from(frame, _SIZE.size)
            if correlation_id in asked and not self._is_open.is_set():
                self.has_held.set()
                self._is_open.wait()
            _send(sink, frame)
        _shut(sink)


def _frame(source: socket.socket) -> bytes:
    """With its size; nothing at the end."""
    size = _exactly(source, _SIZE.size)
    return size + _exactly(source, _SIZE.unpack(size)[0]) if size else b""


def _exactly(source: socket.socket, count: int) -> bytes:
    try:
        return source.recv(count, socket.MSG_WAITALL)
    except OSError:
        return b""  # the owner closed it


def _send(sink: socket.socket, frame: bytes) -> None:
    try:
        sink.sendall(frame)
    except OSError:
        return  # the other side has gone


def _shut(sink: socket.socket) -> None:
    try:
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return  # it was closed already
