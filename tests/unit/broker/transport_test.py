"""Goal: what leaves a socket is what was announced, or the connection ends.

Method: a SocketTransport on one end of a socket pair, files that fail or end too early.
"""

import asyncio
import contextlib
import gc
import socket
from collections.abc import Awaitable, Callable, Iterator
from struct import pack
from typing import Any

import pytest

from runnel.broker.buffers import ReceiveBuffers
from runnel.broker.connection import Connection, Part
from runnel.broker.courtesy import Courtesy
from runnel.broker.polling import BusyPolling
from runnel.broker.system import SystemClock, ThreadWorkers
from runnel.broker.transport import COPIED_SLICE_BYTES_MAX, COPY_CHUNK_BYTES, SocketTransport
from runnel.broker.warming import Warming
from runnel.metrics import Metrics
from runnel.types import FileSlice
from runnel.wire.hot import COMPILED


class Records:
    """A file of which a test says how a read goes."""

    path = "00000000000000000000.log"

    def __init__(self, data: bytes, error: OSError | None = None) -> None:
        self._data = data
        self._error = error
        self.reads = 0

    def fileno(self) -> int:
        return -1

    def is_cached(self, position: int, size: int) -> bool:
        return True

    def read_cached(self, position: int, size: int) -> bytes:
        return self.read_at(position, size)

    def read_at(self, position: int, size: int) -> bytes:
        self.reads += 1
        if self._error is not None:
            raise self._error
        return self._data[position : position + size]


def slice_of(records: Records, size: int) -> FileSlice:
    return FileSlice(records, 0, size)  # type: ignore[arg-type]  # only what a transport calls


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(5)
    yield ours, theirs
    ours.close()
    theirs.close()


async def served(sock: socket.socket, test: Callable[[SocketTransport], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    metrics = Metrics()
    warming = Warming(ThreadWorkers(1), metrics, Courtesy(SystemClock(), metrics))
    polling = BusyPolling(loop, 0, is_awake=False)
    transport = SocketTransport(loop, sock, "peer", lambda _: None, warming, polling)
    connection = Connection(
        lambda _connection, frame: [bytearray(frame)],
        transport,
        ReceiveBuffers(1 << 20),
        listener="L",
        host="peer",
        frame_bytes_max=1 << 20,
    )
    transport.start(connection)
    try:
        await test(transport)
    finally:
        transport.close("")


def on_socket(sock: socket.socket, test: Callable[[SocketTransport], Awaitable[None]]) -> None:
    asyncio.run(served(sock, test))


@pytest.mark.parametrize("error", [None, OSError(5, "Input/output error")])
def test_a_small_slice_that_cannot_be_read_whole_ends_the_connection(
    pair: tuple[socket.socket, socket.socket], error: OSError | None
) -> None:
    ours, theirs = pair
    short = Records(b"only ten b", error)

    async def test(transport: SocketTransport) -> None:
        assert transport.send([b"header: 20 follow", slice_of(short, 20)]) == 0
        assert transport.fd == -1

    on_socket(ours, test)
    assert theirs.recv(100) == b"", "a part of a reply was sent, and the next would follow it"


def test_small_slices_are_copied_only_so_far(pair: tuple[socket.socket, socket.socket]) -> None:
    """What a peer that does not read makes us keep is its replies' headers, not its records."""
    ours, _ = pair
    size = 16 * 1024
    records = Records(bytes(size))
    count = 4 * COPY_CHUNK_BYTES // size
    parts: list[Part] = [slice_of(records, size) for _ in range(count)]

    async def test(transport: SocketTransport) -> None:
        transport._wait_to_write()  # the socket takes nothing now
        assert transport.send(parts) == count * size
        assert records.reads <= COPY_CHUNK_BYTES // size

    on_socket(ours, test)


@pytest.mark.skipif(COMPILED, reason="what compiled code calls cannot be replaced")
def test_slices_of_files_are_no_reason_to_look_for_requests(
    monkeypatch: pytest.MonkeyPatch, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, _ = pair
    told: list[object] = []
    monkeypatch.setattr(BusyPolling, "sends_much", lambda _polling, who: told.append(who))

    async def test(transport: SocketTransport) -> None:
        transport.send([slice_of(Records(bytes(1024)), 1024)])
        assert told == [], "it was copied, and left with its header"
        size = 2 * COPIED_SLICE_BYTES_MAX
        transport.send([slice_of(Records(bytes(size)), size)])
        assert told == [transport]

    on_socket(ours, test)


class CountedSocket(socket.socket):
    sends = 0

    def send(self, *given: Any) -> int:  # noqa: ANN401  # as a socket's
        self.sends += 1
        return super().send(*given)


@pytest.mark.parametrize("is_slice", [False, True])
def test_a_socket_that_took_a_part_is_asked_again_when_it_can_take_more(
    pair: tuple[socket.socket, socket.socket], *, is_slice: bool
) -> None:
    ours, theirs = pair
    counted = CountedSocket(fileno=ours.detach())
    counted.setblocking(False)
    counted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    data = bytes(range(256)) * 300
    parts: list[Part] = [slice_of(Records(data), len(data)) if is_slice else data, b"end"]

    async def test(transport: SocketTransport) -> None:
        assert transport.send(parts) > 0
        assert counted.sends == 1, "a second time would only fail"
        received = b""
        while len(received) < len(data) + 3:
            received += theirs.recv(1 << 20)
            await asyncio.sleep(0.001)
        assert received == data + b"end"

    on_socket(counted, test)


def fill(ours: socket.socket) -> int:
    """Until it takes not even one byte more."""
    filled = 0
    for size in (1 << 16, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                filled += ours.send(b"x" * size)
    return filled


@pytest.mark.parametrize("left_bytes", [0, 4])
def test_a_reply_that_finds_the_socket_full_comes_whole_and_once(
    pair: tuple[socket.socket, socket.socket], left_bytes: int
) -> None:
    """`left_bytes`: of another one, which waits before it."""
    ours, theirs = pair
    theirs.setblocking(False)
    reply = bytes(range(100))

    async def test(transport: SocketTransport) -> None:
        filled = fill(ours)
        if left_bytes:
            assert transport.send([bytearray(left_bytes)]) == left_bytes
        assert transport.send([bytearray(reply)]) == left_bytes + len(reply)
        received = b""
        while transport._unsent:
            with contextlib.suppress(BlockingIOError):
                received += theirs.recv(1 << 20)
            await asyncio.sleep(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                received += theirs.recv(1 << 20)
        assert received[filled:] == bytes(left_bytes) + reply
        assert transport._unsent_bytes == 0

    on_socket(ours, test)


def test_who_has_nothing_to_read_after_all_is_served_on(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """It may have been read meanwhile: two look at a socket while the loop is kept awake."""
    ours, theirs = pair
    frame = pack(">ihhi", 8, 0, 0, 0)

    async def test(transport: SocketTransport) -> None:
        for _ in range(2):
            transport.on_readable()
            assert transport.fd == ours.fileno() >= 0
            theirs.sendall(frame)
            transport.on_readable()
            assert theirs.recv(100) == frame[4:]
        theirs.shutdown(socket.SHUT_WR)
        transport.on_readable()
        assert transport.fd == -1, "that is the end, and not the same"

    on_socket(ours, test)


def test_a_connection_that_is_closed_leaves_no_cycle_behind() -> None:
    """Its transport knows it, and it knows its transport: a thousand of them were 4 MB."""

    async def nothing(_: SocketTransport) -> None: ...

    async def run() -> None:
        for _ in range(3):
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            await served(ours, nothing)
            theirs.close()

    def living() -> int:
        return sum(isinstance(each, SocketTransport | Connection) for each in gc.get_objects())

    gc.collect()
    before = living()
    gc.disable()
    try:
        asyncio.run(run())
        assert living() == before
    finally:
        gc.enable()
