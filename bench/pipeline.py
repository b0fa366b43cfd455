"""Many requests in flight over a few connections, from one process that is not the bottleneck.

Every byte was encoded before: what remains per event is one `send` or `recv` and a few sums.
Replies are counted and checked without decoding each: successful produce replies are equal in
size, so one strided slice per mark covers all replies of a read; fetch replies are checked by
their size. Anything else stops the run: a benchmark of errors would be fast and worthless.
"""

import select
import socket
import struct
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from bench.frames import ReplyShape

_SIZE = struct.Struct(">i")
RECEIVE_BYTES = 1024 * 1024
STALL_S = 30.0
_READ, _WRITE = select.EPOLLIN, select.EPOLLIN | select.EPOLLOUT


class LoadError(Exception):
    """The broker refused, closed or stalled."""


class Chunk(NamedTuple):
    """Whole requests that are sent with one call."""

    data: memoryview
    request_count: int


class Replies(Protocol):
    """Counts replies and their bytes. Raises LoadError for one that is no success."""

    byte_count: int

    def feed(self, data: memoryview) -> int:
        """How many replies were completed by these bytes."""


class ProduceReplies:
    def __init__(self, shape: ReplyShape) -> None:
        self.byte_count = 0
        self._shape = shape
        self._size = _SIZE.pack(shape.size - 4)
        self._rest = b""

    def feed(self, data: memoryview) -> int:
        self.byte_count += len(data)
        received = self._rest + data
        step = self._shape.size
        count = len(received) // step
        whole = count * step
        for at, byte in enumerate(self._size):
            if received[at:whole:step].count(byte) != count:
                raise LoadError(f"a reply of another size: {received[:200]!r}")
        for at in self._shape.zeros:
            if received[at:whole:step].count(0) != count:
                raise LoadError(f"a produce request failed: {received[:200]!r}")
        self._rest = received[whole:]
        return count


class FetchReplies:
    """`least_bytes`: what a reply has if it brings the records that were asked for."""

    def __init__(self, least_bytes: int) -> None:
        self.byte_count = 0
        self._least_bytes = least_bytes
        self._missing = 0  # of the reply under way
        self._rest = b""  # of a size that is not complete

    def feed(self, data: memoryview) -> int:
        self.byte_count += len(data)
        position, count = 0, 0
        while position < len(data):
            if not self._missing:
                wanted = 4 - len(self._rest)
                self._rest += data[position : position + wanted]
                position += wanted
                if len(self._rest) < 4:
                    break
                (self._missing,) = _SIZE.unpack(self._rest)
                self._rest = b""
                if self._missing < self._least_bytes:
                    raise LoadError(f"a fetch brought {self._missing} bytes")
            taken = min(self._missing, len(data) - position)
            position += taken
            self._missing -= taken
            count += not self._missing
        return count


class Pipeline:
    """One connection: sends its chunks in order while fewer than `window` requests are open."""

    def __init__(
        self, address: tuple[str, int], chunks: Sequence[Chunk], replies: Replies, window: int
    ) -> None:
        assert all(chunk.request_count <= window for chunk in chunks)
        self.sock = socket.create_connection(address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self.replies = replies
        self._chunks = chunks
        self._window = window
        self._next = 0
        self._unsent = memoryview(b"")
        self._open = 0
        self.done_count = 0

    @property
    def is_done(self) -> bool:
        return self._next == len(self._chunks) and not self._open and not self._unsent

    def send(self) -> bool:
        """Send what may be sent; true if the socket takes no more now."""
        while True:
            if not self._unsent:
                if self._next == len(self._chunks):
                    return False
                data, request_count = self._chunks[self._next]
                if self._open + request_count > self._window:
                    return False
                self._open += request_count
                self._next += 1
                self._unsent = data
            try:
                sent = self.sock.send(self._unsent)
            except BlockingIOError:
                return True
            self._unsent = self._unsent[sent:]

    def receive(self, scratch: memoryview) -> None:
        count = self.sock.recv_into(scratch)
        if count == 0:
            raise LoadError("the broker closed the connection")
        completed = self.replies.feed(scratch[:count])
        self._open -= completed
        self.done_count += completed


def drive(pipelines: Sequence[Pipeline]) -> float:
    """Run all of them to their end; returns the seconds from the first byte to the last reply."""
    scratch = memoryview(bytearray(RECEIVE_BYTES))
    poller = select.epoll()
    by_fd = {pipeline.sock.fileno(): pipeline for pipeline in pipelines}
    waits: dict[int, bool] = {}
    started = time.perf_counter()
    for fd, pipeline in by_fd.items():
        waits[fd] = pipeline.send()
        poller.register(fd, _WRITE if waits[fd] else _READ)
    running = len(pipelines)
    while running:
        events = poller.poll(STALL_S)
        if not events:
            raise LoadError(f"no reply for {STALL_S} s")
        for fd, event in events:
            pipeline = by_fd[fd]
            if event & ~select.EPOLLOUT:
                pipeline.receive(scratch)
            full = pipeline.send()
            if full != waits[fd]:
                waits[fd] = full
                poller.modify(fd, _WRITE if full else _READ)
            if pipeline.is_done:
                poller.unregister(fd)
                running -= 1
    elapsed_s = time.perf_counter() - started
    poller.close()
    for pipeline in pipelines:
        pipeline.sock.close()
    return elapsed_s
