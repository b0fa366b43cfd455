"""A network in memory that delays, splits and cuts, with the broker's real connections on one end.

What it may do, all drawn from one seeded generator:
  - bytes take time, and arrive in pieces cut at any byte; one connection keeps their order, two
    connections have nothing to do with each other;
  - a connection breaks after any byte in either direction: a request that never arrives whole, or
    a reply lost after the request took effect. What was under way before the break still arrives,
    so a request may take effect long after its sender gave up;
  - a break may be silent: then only a timeout tells;
  - requests may hang on the way for seconds, and arrive after their sender has sent them again on
    another connection;
  - a peer may read slowly, so that replies wait in the broker and slices of files are read late;
  - a slice may be cold, and then waits for the broker's own warming before it is sent.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Protocol

from runnel.broker.buffers import ReceiveBuffers
from runnel.broker.connection import TURN_S, Connection, Handle, Part
from runnel.broker.warming import Warming
from runnel.types import FileSlice
from tests.simulated.loop import Process, SimLoop


class Served(Protocol):
    """The broker as the network sees it."""

    buffers: ReceiveBuffers
    warming: Warming

    @property
    def handle(self) -> Handle: ...
    @property
    def wake_few(self) -> Callable[[], None]: ...


@dataclass
class Faults:
    """How bad the network is. Probabilities are per connection."""

    cut: float = 0.3
    silent: float = 0.3  # of the cuts
    slow: float = 0.1
    late: float = 0.0
    latency_ms: float = 3.0


@dataclass
class NetworkCounts:
    connections: int = 0
    cuts: int = 0
    half_frames: int = 0
    silent_cuts: int = 0
    slow_readers: int = 0
    late_requests: int = 0
    slices_warmed: int = 0
    refused: int = 0


class Stream:
    """One direction of a connection: bytes in order, late, in pieces, and perhaps not all."""

    def __init__(
        self, network: "Network", deliver: Callable[[bytes], None], cut_after: int | None
    ) -> None:
        self._network = network
        self._deliver = deliver
        self._left = cut_after
        self._last_at = 0.0
        self._under_way: deque[Callable[[], None]] = deque()
        self.late_after: int | None = None  # bytes; then everything hangs for `late_s`
        self.late_s = 0.0
        self.broken: Callable[[], None] = lambda: None

    def send(self, data: bytes) -> None:
        """Bytes past the point of the break vanish; the first of them breaks the connection."""
        breaks = self._left is not None and len(data) >= self._left
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        chance = self._network.chance
        if self.late_after is not None:
            self.late_after -= len(data)
            if self.late_after < 0:
                self.late_after = None
                self._last_at = self._network.loop.time() + self.late_s
                self._network.counts.late_requests += 1
        while data:
            size = len(data) if chance.random() < 0.7 else chance.randint(1, len(data))
            self.then(partial(self._deliver, data[:size]))
            data = data[size:]
        if breaks:
            self.broken()

    def then(self, callback: Callable[[], None]) -> None:
        """Run it behind everything that is under way."""
        loop, chance = self._network.loop, self._network.chance
        latency = chance.expovariate(1000 / self._network.faults.latency_ms)
        self._last_at = max(self._last_at, loop.time() + latency)
        # The loop keeps no order among timers of one moment, so the order is kept here.
        self._under_way.append(callback)
        loop.call_at(self._last_at, self._arrive, context=self._network.context)

    def _arrive(self) -> None:
        self._under_way.popleft()()


class ServerEnd:
    """What a socket transport is to a real connection: its outlet, and the source of its bytes."""

    def __init__(self, link: "Link", process: Process, broker: Served, host: str) -> None:
        self._link = link
        self._process = process
        self._arrived = bytearray()
        self._unsent: deque[Part] = deque()
        self._unsent_bytes = 0
        self._in_flight_bytes = 0
        self._is_open = True
        self._warming = broker.warming
        self._is_warming = False
        self._warmed_to = 0
        self._worked_s = 0.0
        self.connection = Connection(
            broker.handle, self, broker.buffers, listener="PLAINTEXT", host=host,
            frame_bytes_max=4 << 20, before_replies=broker.wake_few,
        )  # fmt: skip

    def arrive(self, data: bytes) -> None:
        self._in_process(self._take, data)

    def _in_process(self, callback: Callable[..., None], *args: object) -> None:
        if self._process.is_alive:
            self._process.context.run(callback, *args)

    def _take(self, data: bytes) -> None:
        self._arrived += data
        self._read()

    def _read(self) -> None:
        connection = self.connection
        while self._arrived and self._is_open and connection.wants_bytes:
            view = connection.receive_into()
            size = min(len(view), len(self._arrived))
            view[:size] = self._arrived[:size]
            del self._arrived[:size]
            connection.received(size)

    def monotonic(self) -> float:
        """As if each frame took a while, so that a few pipelined ones are more than a turn."""
        self._worked_s += TURN_S / 3
        return self._worked_s

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._link.network.loop.call_soon(callback)

    def resume_reading(self) -> None:
        if self._arrived:
            self._link.network.loop.call_soon(self._read)

    def send(self, parts: list[Part]) -> int:
        if self._is_open:
            self._unsent.extend(parts)
            self._unsent_bytes += sum(_size(part) for part in parts)
            if not self._is_warming:
                self._write()
        return self._unsent_bytes

    def _write(self) -> None:
        """Slices are read only now, as `sendfile` would."""
        window = self._link.window_bytes
        while self._unsent and self._is_open:
            part = self._unsent[0]
            if isinstance(part, FileSlice) and self._is_cold(part):
                return
            self._unsent.popleft()
            size = _size(part)
            if window is not None and size > (room := window - self._in_flight_bytes):
                self._unsent.appendleft(part if room == 0 else _rest(part, room))
                size = room
            if size == 0:
                return
            data = (
                part.file.read_at(part.position, size)
                if isinstance(part, FileSlice)
                else bytes(part[:size])
            )
            if len(data) < size:
                self.close("a file ends before its slice")
                return
            self._unsent_bytes -= size
            self._link.to_client.send(data)
            if window is not None:
                self._in_flight_bytes += size
                self._link.to_client.then(partial(self._in_process, self._left, size))

    def _is_cold(self, part: FileSlice) -> bool:
        """If so, it goes on in `warmed`."""
        if part.position < self._warmed_to or part.file.is_cached(part.position, part.size):
            self._warmed_to = 0
            return False
        self._link.network.counts.slices_warmed += 1
        size = min(part.size, self._warming.courtesy.cold_bytes())
        self._is_warming = True
        self._warmed_to = part.position + size
        self._warming.request(self, FileSlice(part.file, part.position, size))
        return True

    def warmed(self, error: OSError | None) -> None:
        self._is_warming = False
        if error is not None:
            self.close("a slice cannot be read")
        elif self._is_open:
            self._write()
            self.connection.sent(self._unsent_bytes)

    def _left(self, size: int) -> None:
        self._in_flight_bytes -= size
        if self._is_open and not self._is_warming:
            self._write()
            self.connection.sent(self._unsent_bytes)

    def close(self, reason: str) -> None:
        if self._is_open:
            self._is_open = False
            self._unsent.clear()
            self._warming.forget(self)
            self._link.network.closed_by_broker(reason)
            self.connection.closed()
            self._link.to_client.then(self._link.client_sees_end)

    def peer_ended(self) -> None:
        if self._is_open and self.connection.is_mid_frame:
            self._link.network.counts.half_frames += 1
        self._in_process(self.close, "")


class Link:
    """A client's end of a connection. `receive` and `ended` are set by the client."""

    def __init__(self, network: "Network", process: Process, broker: Served, host: str) -> None:
        self.network = network
        self.receive: Callable[[bytes], None] = lambda data: None
        self.ended: Callable[[], None] = lambda: None
        self.is_open = True
        chance, faults = network.chance, network.faults
        self.window_bytes: int | None = None  # of a slow reader: how much may be under way to it
        if chance.random() < faults.slow:
            network.counts.slow_readers += 1
            self.window_bytes = chance.randint(64, 1024)
        cuts: list[int | None] = [None, None]
        self._is_silent = False
        if chance.random() < faults.cut:
            cuts[chance.randrange(2)] = int(chance.expovariate(1 / 4000)) + 1
            self._is_silent = chance.random() < faults.silent
        server = self.server = ServerEnd(self, process, broker, host)
        self.to_server = Stream(network, server.arrive, cuts[0])
        self.to_client = Stream(network, lambda data: self.receive(data), cuts[1])
        if faults.late and chance.random() < faults.late:
            self.to_server.late_after = int(chance.expovariate(1 / 2000))
            self.to_server.late_s = chance.uniform(0.5, 6.0)
        self.to_server.broken = self.to_client.broken = self._break
        self._is_broken = False

    def send(self, data: bytes) -> None:
        if self.is_open and not self._is_broken:
            self.to_server.send(data)

    def close(self) -> None:
        """The client leaves; what it sent before is still under way."""
        if self.is_open:
            self.is_open = False
            self.receive = lambda data: None
            if not (self._is_broken and self._is_silent):
                self.to_server.then(self.server.peer_ended)
            self.network.links.pop(self, None)

    def cut(self) -> None:
        """The nemesis breaks it now."""
        if not self._is_broken:
            self._break()

    def _break(self) -> None:
        if self._is_broken:
            return
        self._is_broken = True
        counts = self.network.counts
        counts.cuts += 1
        if self._is_silent:
            counts.silent_cuts += 1
            return
        self.to_server.then(self.server.peer_ended)
        self.to_client.then(self.client_sees_end)

    def client_sees_end(self) -> None:
        if self.is_open:
            self.is_open = False
            self.receive = lambda data: None
            self.network.links.pop(self, None)
            self.ended()


class Network:
    """Owned by the world; a broker is attached while it lives."""

    def __init__(self, loop: SimLoop, chance: Random, faults: Faults) -> None:
        self.loop = loop
        self.chance = chance
        self.faults = faults
        self.counts = NetworkCounts()
        self.reasons: dict[str, int] = {}  # why the broker closed connections
        self.links: dict[Link, None] = {}
        # Deliveries belong to nobody, whoever sends: bytes under way outlive their sender.
        self.context = loop.outside
        self._broker: tuple[Process, Served] | None = None

    def attach(self, process: Process, broker: Served) -> None:
        self._broker = process, broker

    def refuse(self) -> None:
        """The broker listens no more; connections that are open stay so, but begin nothing new."""
        self._broker = None
        for link in list(self.links):
            link.server.connection.take_no_more()

    def close_all(self) -> None:
        """The broker ends every connection in order, as a clean stop does."""
        for link in list(self.links):
            link.server.close("")

    def detach(self) -> None:
        """The broker is gone: every connection ends, as the kernel would end it."""
        self._broker = None
        for link in list(self.links):
            link.to_client.then(link.client_sees_end)

    async def connect(self, host: str) -> Link:
        """Raises ConnectionError if no broker listens."""
        await asyncio.sleep(self.chance.expovariate(1000 / self.faults.latency_ms))
        if self._broker is None:
            self.counts.refused += 1
            raise ConnectionRefusedError("no broker listens")
        self.counts.connections += 1
        link = Link(self, *self._broker, host)
        self.links[link] = None
        return link

    def cut_some(self) -> None:
        for link in list(self.links):
            if self.chance.random() < 0.7:
                link.cut()

    def closed_by_broker(self, reason: str) -> None:
        if reason:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1


def _size(part: Part) -> int:
    return part.size if isinstance(part, FileSlice) else len(part)


def _rest(part: Part, sent: int) -> Part:
    if isinstance(part, FileSlice):
        return FileSlice(part.file, part.position + sent, part.size - sent)
    return memoryview(part)[sent:]
