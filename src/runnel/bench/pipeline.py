"""Many requests in flight over a few connections, from one process that is not the bottleneck.

Every byte was encoded before: what remains per event is one `send` or `recv` and a few sums.
Replies are counted and checked without decoding each: successful produce replies are equal in
size, so one strided slice per mark covers all replies of a read; fetch replies are checked by
their size. Anything else stops the run: a benchmark of errors would be fast and worthless.
"""

import select
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from runnel.bench.connecting import connected
from runnel.bench.frames import ReplyShape

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


_LAST = Chunk(memoryview(b""), 0)


class Replies(Protocol):
    """Counts replies and their bytes. Raises LoadError for one that is no success."""

    byte_count: int

    def feed(self, data: memoryview) -> int:
        """How many replies were completed by these bytes."""


class EqualReplies:
    """Successes are all of one size, with zeros where an error code would be."""

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
                raise LoadError(f"a request failed: {received[:200]!r}")
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
    """One connection: begins the next chunk while fewer than `window` requests are open.

    `chunks` may give None for "nothing now, ask again"; then `drive` needs a tick.
    """

    def __init__(
        self,
        address: tuple[str, int],
        chunks: Iterable[Chunk | None],
        replies: Replies,
        window: int,
        receive_buffer_bytes: int | None = None,
    ) -> None:
        self.sock = connected(address, receive_buffer_bytes)
        self.sock.setblocking(False)
        self.replies = replies
        self.done_count = 0
        self._chunks = iter(chunks)
        self._window = window
        self._is_last = False
        self._unsent = memoryview(b"")
        self._open = 0

    @property
    def is_done(self) -> bool:
        return self._is_last and not self._open

    def send(self) -> bool:
        """Send what may be sent; true if the socket takes no more now."""
        while self._unsent or self._begin():
            try:
                sent = self.sock.send(self._unsent)
            except BlockingIOError:
                return True
            self._unsent = self._unsent[sent:]
        return False

    def _begin(self) -> bool:
        if self._open >= self._window:
            return False
        chunk = next(self._chunks, _LAST)
        if chunk is None:
            return False
        self._is_last = chunk is _LAST
        self._unsent = chunk.data
        self._open += chunk.request_count
        return not self._is_last

    def close(self) -> None:
        self.sock.close()

    def receive(self, scratch: memoryview) -> None:
        count = self.sock.recv_into(scratch)
        if count == 0:
            raise LoadError("the broker closed the connection")
        completed = self.replies.feed(scratch[:count])
        self._open -= completed
        self.done_count += completed


def until(seconds: float, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Chunks for so long, counted from the first one."""
    end = time.perf_counter() + seconds
    for chunk in chunks:
        if time.perf_counter() >= end:
            return
        yield chunk


def paced(
    chunks: Iterable[Chunk], requests_per_second: float, is_over: Callable[[], bool]
) -> Iterator[Chunk | None]:
    """Chunks when they are due, None before; what a stall held back follows at once."""
    started, count = time.perf_counter(), 0
    for chunk in chunks:
        while (time.perf_counter() - started) * requests_per_second < count:
            if is_over():
                return
            yield None
        if is_over():
            return
        count += chunk.request_count
        yield chunk


def drive(pipelines: Sequence[Pipeline], tick_s: float | None = None) -> float:
    """Run all of them to their end; returns the seconds from the first byte to the last reply.

    The connections stay open. `tick_s` is for paced chunks: how long a connection may wait before
    it is asked again.
    """
    scratch = memoryview(bytearray(RECEIVE_BYTES))
    by_fd = {pipeline.sock.fileno(): pipeline for pipeline in pipelines}
    full: set[int] = set()
    with select.epoll() as poller:
        for fd in by_fd:
            poller.register(fd, _READ)
        started = time.perf_counter()
        ready = list(by_fd)
        while by_fd:
            for fd in ready:
                _step(poller, fd, by_fd[fd], full)
                if by_fd[fd].is_done:
                    poller.unregister(fd)
                    del by_fd[fd]
            events = poller.poll(STALL_S if tick_s is None else tick_s) if by_fd else []
            if by_fd and not events and tick_s is None:
                raise LoadError(f"no reply for {STALL_S} s")
            for fd, event in events:
                if event & ~select.EPOLLOUT:
                    by_fd[fd].receive(scratch)
            ready = [fd for fd, _event in events] if tick_s is None else list(by_fd)
        return time.perf_counter() - started


def _step(poller: select.epoll, fd: int, pipeline: Pipeline, full: set[int]) -> None:
    """Send, and wait for room in the socket only while it is full."""
    is_full = pipeline.send()
    if is_full != (fd in full):
        poller.modify(fd, _WRITE if is_full else _READ)
        full ^= {fd}
