"""Goal: what a listener does when it cannot accept, and which peers its sweep lets go.

Method: a Listener on a loop that only notes what it is told; its listening socket fails, or gives
one end of a socket pair. A sweep is a second, so tests of minutes take none.
"""

import errno
import select
import socket
import time
from collections.abc import Iterator
from random import Random
from struct import pack
from types import SimpleNamespace
from typing import Any

import pytest

from runnel.broker.buffers import ReceiveBuffers
from runnel.broker.connection import Connection, Mute, Part
from runnel.broker.courtesy import Courtesy
from runnel.broker.listener import Listener
from runnel.broker.polling import BusyPolling
from runnel.broker.quotas import Quotas, Windows
from runnel.broker.warming import Warming
from runnel.cluster.values import ClientQuota
from runnel.metrics import Metrics
from tests.simulated.loop import SimWorkers
from tests.support.stores import ManualClock


class Loop:
    """Notes readers and timers; a test runs them."""

    def __init__(self) -> None:
        self.readers: dict[int, Any] = {}
        self.writers: dict[int, Any] = {}
        self.timers: list[tuple[Any, ...]] = []

    def add_reader(self, fd: int, callback: Any) -> None:  # noqa: ANN401
        self.readers[fd] = callback

    def remove_reader(self, fd: int) -> None:
        self.readers.pop(fd, None)

    def add_writer(self, fd: int, callback: Any) -> None:  # noqa: ANN401
        self.writers[fd] = callback

    def remove_writer(self, fd: int) -> None:
        self.writers.pop(fd, None)

    def time(self) -> float:
        return 1.25

    def call_soon(self, callback: Any) -> None:  # noqa: ANN401
        self.timers.append((0, callback))

    def call_later(self, delay_s: float, callback: Any, *given: Any) -> None:  # noqa: ANN401
        self.timers.append((delay_s, callback, *given))


class ListeningSocket:
    """`accept` fails as told."""

    def __init__(self, error: int) -> None:
        self.error = error
        self.asked = 0
        self.fd = 3

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        self.asked += 1
        raise OSError(self.error, "no")

    def fileno(self) -> int:
        return self.fd

    def close(self) -> None:
        self.fd = -1

    def listen(self, backlog: int) -> None: ...
    def getsockopt(self, _level: int, _option: int, _size: int) -> bytes:
        return b"reno"

    def setblocking(self, flag: bool) -> None: ...


def listener_on(sock: ListeningSocket, creation_rate: int = 10) -> tuple[Listener, Loop]:
    loop = Loop()
    broker: Any = SimpleNamespace(
        settings=SimpleNamespace(
            socket_listen_backlog_size=50, max_connection_creation_rate=creation_rate
        ),
        buffers=None,
        metrics=None,
        quotas=Quotas(Windows()),
        wake_few=lambda: None,
    )
    given: Any = (loop, "PLAINTEXT", sock, broker, None)
    listener = Listener(*given)
    listener.start()
    loop.timers.clear()  # the sweep's
    return listener, loop


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])
def test_out_of_descriptors_pauses_accepting(error: int) -> None:
    sock = ListeningSocket(error)
    _, loop = listener_on(sock)
    loop.readers[3]()
    assert not loop.readers, "the peer stays in the backlog: the loop would spin"
    ((delay_s, accept_again),) = loop.timers
    assert 0.5 <= delay_s <= 2
    accept_again()
    assert 3 in loop.readers


def test_a_pause_does_not_outlive_the_listener() -> None:
    listener, loop = listener_on(ListeningSocket(errno.EMFILE))
    loop.readers[3]()
    listener.stop_accepting()
    loop.timers[0][1]()
    assert not loop.readers


def test_a_peer_that_left_early_does_not_pause_accepting() -> None:
    _, loop = listener_on(ListeningSocket(errno.ECONNABORTED))
    loop.readers[3]()
    assert 3 in loop.readers


def test_more_connections_than_the_rate_wait_for_the_next_second() -> None:
    listener, loop = listener_on(ListeningSocket(errno.ECONNABORTED), creation_rate=0)
    loop.readers[3]()
    assert not loop.readers
    ((delay_s, accept_again),) = loop.timers
    assert delay_s == 0.75
    listener._broker.settings.max_connection_creation_rate = 1  # type: ignore[misc]  # a namespace
    accept_again()
    loop.readers[3]()
    assert 3 in loop.readers and len(loop.timers) == 1


FRAME_TIMEOUT_MS, SEND_TIMEOUT_MS, IDLE_MS = 30_000, 120_000, 600_000
FRAME_BYTES = 1 << 20


class Peer:
    """A client of a listener, of which each second is one sweep."""

    def __init__(self, buffers: ReceiveBuffers) -> None:
        settings = SimpleNamespace(
            socket_send_buffer_bytes=-1,
            socket_receive_buffer_bytes=-1,
            socket_request_max_bytes=2 * FRAME_BYTES,
            max_in_flight_requests=5,
            max_connections=10,
            max_connections_per_ip=10,
            max_connections_per_ip_overrides={},
            frame_timeout_ms=FRAME_TIMEOUT_MS,
            send_timeout_ms=SEND_TIMEOUT_MS,
            connections_max_idle_ms=IDLE_MS,
        )
        metrics = Metrics()
        broker: Any = SimpleNamespace(
            settings=settings,
            buffers=buffers,
            metrics=metrics,
            handle=self._handle,
            wake_few=lambda: None,
            warming=Warming(SimWorkers(Random(0)), metrics, Courtesy(ManualClock(), metrics)),
            quotas=Quotas(Windows()),
            clock=ManualClock(),
        )
        self._loop = Loop()
        loop: Any = self._loop
        polling = BusyPolling(loop, 0, is_awake=False)
        given: Any = (self._loop, "PLAINTEXT", None, broker, polling)
        self._listener = Listener(*given)
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.sock = socket.socket()
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
            self.sock.connect(server.getsockname())
            ours, _ = server.accept()
        self.sock.settimeout(5)
        self._listener._accept(ours, "127.0.0.1")
        (self.transport,) = self._listener._transports
        self.reply_bytes = 0

    def _handle(self, connection: Connection, frame: memoryview) -> list[Part]:
        return [bytearray(self.reply_bytes)]

    def send(self, data: bytes) -> None:
        """Returns when the broker has taken them."""
        self.sock.sendall(data)
        before = self.transport.connection.frame_bytes
        while self.is_open and self.transport.connection.frame_bytes < before + len(data):
            self._loop.readers[self.transport.fd]()

    def request(self) -> None:
        """A whole frame, and the reply goes out as far as it goes."""
        self.sock.sendall(pack(">ihhi", 8, 0, 0, 0))
        while not self.transport._unsent:
            self._loop.readers[self.transport.fd]()

    def whole_frame(self, then: bytes = b"") -> None:
        """A whole frame, of which the reply is taken at once, and perhaps the begin of another."""
        self.reply_bytes = 8
        self.sock.sendall(pack(">ihhi", 8, 0, 0, 0) + then)
        self._loop.readers[self.transport.fd]()
        assert len(self.sock.recv(100)) == 8

    def second(self) -> None:
        if self.is_open and self.transport.fd in self._loop.writers:
            ready = select.select([], [self.transport.fd], [], 0)[1]
            if ready:
                self._loop.writers[self.transport.fd]()
        self._listener._sweep()

    @property
    def is_open(self) -> bool:
        return self.transport.fd >= 0

    def close(self) -> None:
        self.sock.close()
        self.transport.close("")


@pytest.fixture
def buffers() -> ReceiveBuffers:
    return ReceiveBuffers(1 << 30)


@pytest.fixture
def peer(buffers: ReceiveBuffers) -> Iterator[Peer]:
    peer = Peer(buffers)
    yield peer
    peer.close()


def begin_frame(peer: Peer) -> None:
    peer.send(pack(">i", FRAME_BYTES) + bytes(100))


def seconds_until_closed(peer: Peer, bytes_per_s: int, at_most_s: int) -> int:
    for second in range(at_most_s):
        peer.second()
        if not peer.is_open:
            return second
        if bytes_per_s:
            peer.send(bytes(bytes_per_s))
    return at_most_s


@pytest.mark.parametrize("bytes_per_s", [0, 1, 1000])
def test_a_frame_that_trickles_is_ended_at_the_timeout(peer: Peer, bytes_per_s: int) -> None:
    begin_frame(peer)
    assert 28 <= seconds_until_closed(peer, bytes_per_s, 100) <= 32


def test_a_slow_frame_that_gets_on_is_waited_for(peer: Peer) -> None:
    begin_frame(peer)
    assert seconds_until_closed(peer, 6000, 150) == 150


def test_a_frame_that_stops_after_a_good_start_is_ended(peer: Peer) -> None:
    begin_frame(peer)
    peer.send(bytes(900_000))
    assert seconds_until_closed(peer, 0, 1000) <= 65


def test_a_frame_that_stops_after_many_whole_ones_is_ended(peer: Peer) -> None:
    for _ in range(3 * FRAME_TIMEOUT_MS // 1000):
        peer.whole_frame()
        peer.second()
    assert peer.is_open
    peer.whole_frame(then=pack(">i", FRAME_BYTES) + bytes(100))
    assert seconds_until_closed(peer, 0, 100) == FRAME_TIMEOUT_MS // 1000 + 1


def test_who_falls_silent_after_many_frames_is_ended_as_idle(peer: Peer) -> None:
    for _ in range(2 * IDLE_MS // 1000):
        peer.whole_frame()
        peer.second()
    assert seconds_until_closed(peer, 0, 1000) == IDLE_MS // 1000


def test_who_holds_memory_that_others_wait_for_has_less_time(
    peer: Peer, buffers: ReceiveBuffers
) -> None:
    begin_frame(peer)
    buffers.exempt = peer.transport.connection
    assert seconds_until_closed(peer, 0, 100) <= 5
    assert buffers.exempt is None


def test_who_waits_for_memory_is_not_blamed(peer: Peer) -> None:
    begin_frame(peer)
    peer.transport.connection.mute |= Mute.MEMORY
    assert seconds_until_closed(peer, 0, 100) == 100


def test_a_reader_that_pauses_is_ended_late_and_only_if_it_takes_nothing(peer: Peer) -> None:
    peer.reply_bytes = 32 << 20
    peer.request()
    for _ in range(100):
        peer.second()
    assert peer.is_open, "a pause of 100 s"
    for _ in range(4):
        taken = 0
        while taken < 200_000:  # too little to make the other end writable
            taken += len(peer.sock.recv(50_000))
        time.sleep(0.5)  # until the kernel tells the other end
        for _ in range(60):
            peer.second()
            assert peer.is_open, "it takes bytes, slowly"
    for _ in range(125):
        peer.second()
    assert not peer.is_open


def test_who_is_throttled_is_neither_idle_nor_slow(peer: Peer) -> None:
    """A window may be longer than a connection may be idle; the time counts from its end."""
    begin_frame(peer)
    peer.transport.connection.mute |= Mute.THROTTLE
    assert seconds_until_closed(peer, 0, 700) == 700
    peer.transport.connection.mute &= ~Mute.THROTTLE
    assert 25 <= seconds_until_closed(peer, 0, 100) <= 35


def test_an_address_beyond_its_rate_is_held_and_then_ended(peer: Peer) -> None:
    quotas = peer._listener._quotas
    quotas.follow({(("ip", None),): ClientQuota({"connection_creation_rate": 1.0})})
    with socket.create_server(("127.0.0.1", 0)) as server:

        def connect() -> socket.socket:
            client = socket.create_connection(server.getsockname(), timeout=5)
            peer._listener._accept(server.accept()[0], "127.0.0.1")
            return client

        welcome = [connect(), connect()]
        assert len(peer._listener._transports) == 3
        held = connect()
        ((delay_s, end, sock),) = [timer for timer in peer._loop.timers if len(timer) == 3]
        assert len(peer._listener._transports) == 3 and 0.5 < delay_s <= 1
        end(sock)
        assert held.recv(1) == b"" and not peer._listener._turned_away
        again = connect()
        peer._listener._sock = server
        peer._listener.close()
        assert again.recv(1) == b"", "the listener's end is theirs"
        for client in (*welcome, held, again):
            client.close()
