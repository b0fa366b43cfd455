"""Goal: cold slices are read off the loop, and nobody but their own connection waits for them.

Method: socket transports over files that are cold until warmed, with workers that stand still
until the test lets them go on; a file whose bytes were read on the loop while cold is an error.
Most tests do not wait for the kernel: what is cold is left to a worker at once.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TypeVar

import pytest

from runnel.broker import warming as warming_module
from runnel.broker.buffers import ReceiveBuffers
from runnel.broker.connection import Connection, Part
from runnel.broker.courtesy import (
    COLD_BYTES_MAX,
    COLD_BYTES_MIN,
    GENTLE_TURN_BYTES_MAX,
    LOOK_EVERY_MS,
    QUIET_TURN_BYTES_MAX,
    TURN_BYTES_MAX,
    Courtesy,
)
from runnel.broker.polling import BusyPolling
from runnel.broker.transport import SocketTransport
from runnel.broker.warming import AT_ONCE, Warming
from runnel.metrics import PRODUCED_BYTES, Metrics, Slot
from runnel.types import FileSlice
from tests.support.stores import ManualClock

T = TypeVar("T")
PATTERN = bytes(range(251))  # no power of two, so that a chunk sent twice or not at all is seen


def records(size: int) -> bytes:
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


class ColdFile:
    """Bytes that are in memory only after they were warmed."""

    path = "00000000000000000000.log"

    def __init__(self, data: bytes, error: OSError | None = None) -> None:
        self.data = data
        self.asked: list[range] = []
        self.looks = 0
        self.reads_ahead = False
        self.warmings: list[range] = []
        self.is_forgetful = False  # it calls all cold that it is asked about
        self._error = error

    def fileno(self) -> int:
        return -1

    def is_cached(self, position: int, size: int) -> bool:
        self.looks += 1
        return not self.is_forgetful and self._is_warm(position, size)

    def _is_warm(self, position: int, size: int) -> bool:
        return any(r.start <= position and position + size <= r.stop for r in self.warmings)

    def read_cached(self, position: int, size: int) -> bytes | None:
        return self.read_at(position, size) if self.is_cached(position, size) else None

    def read_at(self, position: int, size: int) -> bytes:
        assert self._is_warm(position, size), "a cold read on the loop"
        return self.data[position : position + size]

    def begin_to_warm(self, position: int, size: int, *, reads_ahead: bool) -> None:
        self.asked.append(range(position, position + size))
        self.reads_ahead = reads_ahead

    def warm(self, position: int, size: int) -> None:
        if self._error is not None:
            raise self._error
        self.warmings.append(range(position, position + size))

    def slice(self) -> FileSlice:
        return FileSlice(self, 0, len(self.data))  # type: ignore[arg-type]  # only what is called


class HeldWorkers:
    """Work waits until it is let go on; `begun` says how much waits or is done."""

    def __init__(self) -> None:
        self.begun = 0
        self.go_on = asyncio.Event()

    async def run(self, work: Callable[[], T]) -> T:
        self.begun += 1
        await self.go_on.wait()
        return work()

    def map(self, work: object, items: object) -> Iterator[object]:
        raise NotImplementedError


class Desk:
    """Connections over socket pairs that share one Warming."""

    def __init__(self) -> None:
        self.workers = HeldWorkers()
        self.metrics = Metrics()
        self.clock = ManualClock()
        courtesy = Courtesy(self.clock, self.metrics)
        self.warming = Warming(self.workers, self.metrics, courtesy)  # type: ignore[arg-type]  # no `map`
        self._transports: list[SocketTransport] = []
        self._peers: list[socket.socket] = []

    def connect(self) -> tuple[SocketTransport, socket.socket]:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        transport = SocketTransport(
            asyncio.get_running_loop(),
            ours,
            "peer",
            lambda _: None,
            self.warming,
            BusyPolling(asyncio.get_running_loop(), 0, is_awake=False),
        )
        transport.start(
            Connection(
                lambda _connection, frame: [bytearray(frame)],
                transport,
                ReceiveBuffers(1 << 20),
                listener="L",
                host="peer",
                frame_bytes_max=1 << 20,
            )
        )
        self._transports.append(transport)
        self._peers.append(theirs)
        return transport, theirs

    def close(self) -> None:
        for transport in self._transports:
            transport.close("")
        for sock in self._peers:
            sock.close()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming_module, "LOOKS_MAX", 0)


def at_desk(test: Callable[[Desk], Awaitable[None]]) -> None:
    async def run() -> None:
        desk = Desk()
        tasks = [asyncio.create_task(desk.warming.run()) for _ in range(AT_ONCE)]
        try:
            async with asyncio.timeout(10):
                await test(desk)
        finally:
            desk.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def receive(sock: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = await asyncio.get_running_loop().sock_recv(sock, size - len(received))
        assert chunk, f"the connection ended after {len(received)} of {size} bytes"
        received += chunk
    return bytes(received)


def received_so_far(sock: socket.socket) -> bytes:
    with suppress(BlockingIOError):
        return sock.recv(1 << 20)
    return b""


@pytest.mark.parametrize("is_forgetful", [False, True])
@pytest.mark.parametrize("size", [100, 300_000, 3 * COLD_BYTES_MAX + 7])
def test_replies_keep_their_order_around_a_cold_slice(size: int, is_forgetful: bool) -> None:
    """Also where memory is so short that everything is cold again at once."""
    file = ColdFile(records(size))
    file.is_forgetful = is_forgetful

    async def test(desk: Desk) -> None:
        transport, theirs = desk.connect()
        transport.send([b"first ", file.slice(), b" second"])
        assert transport.send([bytearray(b" third")]) >= size, "it waits behind the slice"
        await settle()
        assert received_so_far(theirs) == b"first ", "nothing behind the slice may leave"
        desk.workers.go_on.set()
        assert await receive(theirs, size + 13) == file.data + b" second third"
        assert not transport.connection.mute, "it had too much unsent, and has no more"
        assert desk.metrics.slots[Slot.SLICES_WARMED] == -(-size // COLD_BYTES_MAX)

    at_desk(test)
    assert all(len(warmed) <= COLD_BYTES_MAX for warmed in file.warmings)


def test_others_are_served_meanwhile() -> None:
    file = ColdFile(records(50_000))

    async def test(desk: Desk) -> None:
        cold, _ = desk.connect()
        cold.send([file.slice()])
        await settle()
        assert desk.workers.begun == 1
        other, theirs = desk.connect()
        assert other.send([bytearray(b"reply")]) == 0
        assert received_so_far(theirs) == b"reply"

    at_desk(test)


def test_many_readers_of_the_same_look_once_a_second() -> None:
    file = ColdFile(records(100_000))
    file.warm(0, 100_000)

    async def test(desk: Desk) -> None:
        for _ in range(5):
            transport, theirs = desk.connect()
            transport.send([file.slice()])
            assert await receive(theirs, 100_000) == file.data
        assert file.looks == 1
        desk.warming.look_again()
        file.is_forgetful = True
        cold, _ = desk.connect()
        cold.send([file.slice()])
        await settle()
        assert desk.workers.begun == 1, "it went cold meanwhile"

    at_desk(test)


def test_only_so_many_are_warmed_at_once() -> None:
    """The threads are also those of the flush."""
    files = [ColdFile(records(50_000)) for _ in range(AT_ONCE + 3)]

    async def test(desk: Desk) -> None:
        readers = []
        for file in files:
            transport, theirs = desk.connect()
            transport.send([file.slice()])
            readers.append(theirs)
        await settle()
        assert desk.workers.begun == AT_ONCE
        desk.workers.go_on.set()
        for file, theirs in zip(files, readers, strict=True):
            assert await receive(theirs, len(file.data)) == file.data

    at_desk(test)


def test_a_connection_that_closes_is_not_warmed_for() -> None:
    """One under way comes back to nobody; one that waits is not even begun."""
    files = [ColdFile(records(50_000)) for _ in range(AT_ONCE + 1)]

    async def test(desk: Desk) -> None:
        transports = [desk.connect()[0] for _ in files]
        for file, transport in zip(files, transports, strict=True):
            transport.send([file.slice()])
        await settle()
        for transport in transports:
            transport.close("the peer left")
        desk.workers.go_on.set()
        await settle()
        assert desk.workers.begun == AT_ONCE

    at_desk(test)
    assert [len(file.warmings) for file in files] == [1] * AT_ONCE + [0]


def test_a_slice_that_cannot_be_read_ends_its_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    file = ColdFile(records(50_000), OSError(5, "Input/output error"))

    async def test(desk: Desk) -> None:
        transport, theirs = desk.connect()
        desk.workers.go_on.set()
        transport.send([b"header ", file.slice()])
        await settle()
        assert transport.fd == -1
        assert "Input/output error" in caplog.text
        assert received_so_far(theirs) == b"header "
        assert theirs.recv(1) == b"", "the rest of the reply is not to be made up"
        good, theirs = desk.connect()
        fine = ColdFile(records(50_000))
        good.send([fine.slice()])
        assert await receive(theirs, len(fine.data)) == fine.data, "warming goes on for others"

    at_desk(test)


@pytest.mark.parametrize("produces", [False, True])
def test_a_reader_of_much_gives_way(monkeypatch: pytest.MonkeyPatch, produces: bool) -> None:
    """Not all that a fast peer would take leaves in one turn, and less while somebody produces."""
    turn_bytes = TURN_BYTES_MAX if produces else QUIET_TURN_BYTES_MAX
    file = ColdFile(records(QUIET_TURN_BYTES_MAX + TURN_BYTES_MAX))
    file.warmings.append(range(len(file.data)))

    async def test(desk: Desk) -> None:
        transport, _ = desk.connect()
        monkeypatch.setattr(transport, "sock", Greedy(transport.sock))
        desk.clock.advance(LOOK_EVERY_MS)
        desk.metrics.slots[PRODUCED_BYTES] += produces
        sent = len(file.data) - transport.send([file.slice()])
        assert turn_bytes * 15 // 16 <= sent <= turn_bytes, "what is left may be not worth a call"

    at_desk(test)


def test_what_the_kernel_brings_needs_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming_module, "LOOKS_MAX", 1000)
    file = ColdFile(records(50_000))

    async def test(desk: Desk) -> None:
        transport, theirs = desk.connect()
        transport.send([file.slice()])
        await asyncio.sleep(0.01)
        assert received_so_far(theirs) == b"", "it is still cold"
        assert file.asked == [range(50_000)] and file.reads_ahead
        file.warmings += file.asked
        assert await receive(theirs, 50_000) == file.data
        assert desk.workers.begun == 0

    at_desk(test)


@pytest.mark.parametrize(
    ("bytes_per_ms", "at_once_bytes"),
    [(1, COLD_BYTES_MIN), (100_000, 400_000), (10_000_000, COLD_BYTES_MAX)],
)
def test_readers_give_way_to_producers(bytes_per_ms: int, at_once_bytes: int) -> None:
    """Small pieces, nothing read ahead; but a reader can always catch up with the producers."""
    file = ColdFile(records(2 * COLD_BYTES_MAX))

    async def test(desk: Desk) -> None:
        transport, theirs = desk.connect()
        desk.workers.go_on.set()
        desk.clock.advance(LOOK_EVERY_MS)
        desk.metrics.slots[PRODUCED_BYTES] += bytes_per_ms * LOOK_EVERY_MS
        assert desk.warming.courtesy.cold_turn_bytes() == GENTLE_TURN_BYTES_MAX
        transport.send([file.slice()])
        await receive(theirs, len(file.data))
        assert {len(warmed) for warmed in file.warmings[:-1]} <= {at_once_bytes}
        assert not file.reads_ahead
        desk.clock.advance(10 * LOOK_EVERY_MS)
        desk.clock.advance(LOOK_EVERY_MS)
        assert desk.warming.courtesy.cold_turn_bytes() == TURN_BYTES_MAX, "they have stopped"

    at_desk(test)


class Greedy:
    """A socket that takes all it is given."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def send(self, data: Part) -> int:
        assert not isinstance(data, FileSlice)
        return len(data)

    def close(self) -> None:
        self._sock.close()
