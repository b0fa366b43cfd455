"""Accepts connections on one listening socket, within limits, and sweeps those that went quiet.

Limits before anything is read: connections in all and per address. After that a peer is let go
that is idle, that gets on with a frame it began too slowly, or that takes nothing of its replies.
What counts is progress, not total time; while somebody waits for receive memory, those that hold
some have a tenth of the time.
"""

import asyncio
import errno
import logging
import socket
from collections import Counter
from typing import Final

from runnel.broker.congestion import choose, unpace
from runnel.broker.connection import Connection, Mute
from runnel.broker.polling import BusyPolling
from runnel.broker.server import Broker
from runnel.broker.ticks import tick_in_s
from runnel.broker.transport import SocketTransport
from runnel.config.listeners import Listener as Endpoint
from runnel.config.listeners import host_and_port
from runnel.metrics import Slot

_log = logging.getLogger(__name__)
SWEEP_EVERY_MS: Final = 1000
FRAME_BYTES_PER_S_MIN: Final = 4 * 1024  # slower is no transfer but a way to hold memory
PRESSED_TIMEOUT_DIVISOR: Final = 10
ACCEPTED_AT_ONCE_MAX: Final = 64
ACCEPT_PAUSE_S: Final = 1.0
TURNED_AWAY_MAX: Final = 1000
# Nothing is left to accept with. The peer stays in the backlog, so asking again at once would spin.
_OUT_OF: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Listener:
    """Owns a listening socket and every connection accepted from it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        sock: socket.socket,
        broker: Broker,
        polling: BusyPolling,
        *,
        sendfile: bool = True,
    ) -> None:
        self._polling = polling
        self._loop = loop
        self.name = name
        self._sock = sock
        self._broker = broker
        self._buffers = broker.buffers
        self._metrics = broker.metrics
        self._quotas = broker.quotas
        self._sendfile = sendfile
        self._system_control = b""
        self._transports: dict[SocketTransport, None] = {}
        self._per_host: Counter[str] = Counter()
        self._turned_away: dict[socket.socket, None] = {}  # over the quota of their address
        self._tick = 0
        self._second = 0
        self._accepted_in_second = 0
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._sock.getsockname()[:2]
        return host, port

    def start(self) -> None:
        self._system_control = unpace(self._sock)
        self._sock.listen(self._broker.settings.socket_listen_backlog_size)
        self._sock.setblocking(False)
        self._accept_again()
        self._schedule_sweep()

    def _accept_again(self) -> None:
        if self._sock.fileno() >= 0:
            self._loop.add_reader(self._sock.fileno(), self._on_acceptable)

    def _on_acceptable(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE_MAX):
            if not self._may_accept():
                return
            try:
                sock, address = self._sock.accept()
            except BlockingIOError:
                return
            except OSError as error:  # out of descriptors, or the peer was quicker than we
                _log.warning(
                    "cannot accept on %s: %s", self.name, error, extra={"listener": self.name}
                )
                if error.errno in _OUT_OF:
                    self._loop.remove_reader(self._sock.fileno())
                    self._loop.call_later(ACCEPT_PAUSE_S, self._accept_again)
                return
            self._accept(sock, str(address[0]))

    def _may_accept(self) -> bool:
        """`max.connection.creation.rate`: whoever is too many waits in the backlog for a second."""
        now = self._loop.time()
        if int(now) != self._second:
            self._second, self._accepted_in_second = int(now), 0
        if self._accepted_in_second < self._broker.settings.max_connection_creation_rate:
            return True
        self._loop.remove_reader(self._sock.fileno())
        self._loop.call_later(self._second + 1 - now, self._accept_again)
        return False

    def _accept(self, sock: socket.socket, host: str) -> None:
        self._accepted_in_second += 1
        refusal = self._refusal(host)
        if refusal:
            self._metrics.add(Slot.CONNECTIONS_REFUSED)
            extra = {"peer": host, "listener": self.name}
            _log.warning("connection from %s refused: %s", host, refusal, extra=extra)
            sock.close()
            return
        if self._quotas.limits_connections:
            wait_ms = self._quotas.connection_wait_ms(host, self._broker.clock.monotonic_ms())
            if wait_ms:
                self._turn_away(sock, host, wait_ms)
                return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        choose(sock, host, self._system_control)
        for option, size in (
            (socket.SO_SNDBUF, self._broker.settings.socket_send_buffer_bytes),
            (socket.SO_RCVBUF, self._broker.settings.socket_receive_buffer_bytes),
        ):
            if size >= 0:
                sock.setsockopt(socket.SOL_SOCKET, option, size)
        transport = SocketTransport(
            self._loop,
            sock,
            host,
            self._on_closed,
            self._broker.warming,
            self._polling,
            sendfile=self._sendfile,
            is_local=sock.getsockname()[0] == host,
        )
        connection = Connection(
            self._broker.handle,
            transport,
            self._buffers,
            listener=self.name,
            host=host,
            frame_bytes_max=self._broker.settings.socket_request_max_bytes,
            in_flight_max=self._broker.settings.max_in_flight_requests,
            before_replies=self._broker.wake_few,
        )
        connection.active_tick = connection.frame_tick = self._tick
        self._transports[transport] = None
        self._per_host[host] += 1
        self._metrics.add(Slot.CONNECTIONS_ACCEPTED)
        transport.start(connection)

    def _turn_away(self, sock: socket.socket, host: str, wait_ms: int) -> None:
        """Closed after a while, as Kafka does: a client that is refused at once is soon back."""
        self._metrics.add(Slot.CONNECTIONS_THROTTLED)
        extra = {"peer": host, "listener": self.name}
        _log.debug("connection from %s: connection_creation_rate is exceeded", host, extra=extra)
        if len(self._turned_away) >= TURNED_AWAY_MAX:
            sock.close()
            return
        self._turned_away[sock] = None
        self._loop.call_later(wait_ms / 1000, self._end_turned_away, sock)

    def _end_turned_away(self, sock: socket.socket) -> None:
        self._turned_away.pop(sock, None)
        sock.close()

    def _refusal(self, host: str) -> str:
        settings = self._broker.settings
        if len(self._transports) >= settings.max_connections:
            return f"max.connections={settings.max_connections} are open; raise it, or close some"
        limit = settings.max_connections_per_ip_overrides.get(host, settings.max_connections_per_ip)
        if self._per_host[host] >= limit:
            return f"max.connections.per.ip={limit} are open; raise it, or look for a leak there"
        return ""

    def _on_closed(self, transport: SocketTransport) -> None:
        host = transport.peer
        del self._transports[transport]
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]
        self._metrics.add(Slot.CONNECTIONS_CLOSED)

    # Sweeping

    def _schedule_sweep(self) -> None:
        wait_s = tick_in_s(self._loop, SWEEP_EVERY_MS / 1000)
        self._sweeper = self._loop.call_later(wait_s, self._sweep)

    def _sweep(self) -> None:
        self._schedule_sweep()
        self._tick += 1
        self._broker.warming.look_again()
        for transport in list(self._transports):
            if transport.gets_on(self._tick):
                continue
            reason = self._reason_to_let_go(transport)
            if reason:
                transport.connection.close(reason)

    def _reason_to_let_go(self, transport: SocketTransport) -> str:
        connection, settings = transport.connection, self._broker.settings
        if transport.received_since_sweep() or connection.mute & Mute.THROTTLE:
            connection.active_tick = self._tick
        divisor = 1
        if self._buffers.pressed and connection.frame_bytes:
            divisor = PRESSED_TIMEOUT_DIVISOR
        if self._is_too_slow(connection, settings.frame_timeout_ms // divisor):
            return "a frame was begun and not finished"
        if transport.sweeps_stuck() * SWEEP_EVERY_MS > settings.send_timeout_ms // divisor:
            return "the peer does not read its replies"
        quiet_ms = (self._tick - connection.active_tick) * SWEEP_EVERY_MS
        if quiet_ms > settings.connections_max_idle_ms > 0 and not connection.is_waiting:
            return "idle"
        return ""

    def _is_too_slow(self, connection: Connection, timeout_ms: int) -> bool:
        """In each span of the timeout a frame under way must have got on by so much."""
        span_ms = (self._tick - connection.frame_tick) * SWEEP_EVERY_MS
        got_bytes = connection.frame_bytes - connection.frame_bytes_at_tick
        if not _peer_may_take_its_time(connection):
            if span_ms <= timeout_ms:
                return False
            if got_bytes * 1000 < FRAME_BYTES_PER_S_MIN * span_ms:
                return True
        connection.swept(self._tick)
        return False

    def close(self) -> None:
        """Stop accepting, then end every connection."""
        self.stop_accepting()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for transport in list(self._transports):
            transport.close("")
        for sock in self._turned_away:
            sock.close()

    def stop_accepting(self) -> None:
        """No new connections, and no new requests on the old ones; replies still leave."""
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock.fileno())
            self._sock.close()
        for transport in self._transports:
            transport.connection.take_no_more()


def _peer_may_take_its_time(connection: Connection) -> bool:
    """No frame is under way, it began since the last sweep, or it is we who do not read on."""
    return connection.finished_frame or not connection.is_mid_frame or bool(connection.mute)


def bind(host: str, port: int) -> socket.socket:
    """A bound socket. Raises OSError with a reason that says which address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from None
    return sock


class Listeners:
    """Every listener of the configuration, bound together and closed together."""

    def __init__(self, broker: Broker, *, sendfile: bool = True) -> None:
        self._broker = broker
        self._sendfile = sendfile
        self._listeners: list[Listener] = []
        self._polling: BusyPolling | None = None

    def bind(self) -> tuple[Endpoint, ...]:
        """Take the addresses; returns what clients are to be told. Raises OSError."""
        broker = self._broker
        loop = asyncio.get_running_loop()
        settings = broker.settings
        polling = BusyPolling(loop, settings.busy_poll_us, is_awake=settings.busy_poll_awake)
        self._polling = polling
        advertised: list[Endpoint] = []
        for endpoint, told in zip(
            broker.settings.listeners, broker.settings.advertised_listeners, strict=True
        ):
            listener = Listener(
                loop,
                endpoint.name,
                bind(endpoint.host, endpoint.port),
                broker,
                polling,
                sendfile=self._sendfile,
            )
            self._listeners.append(listener)
            port = listener.address[1] if told.port == 0 else told.port
            advertised.append(told._replace(host=told.host or socket.gethostname(), port=port))
        return tuple(advertised)

    def start(self) -> None:
        for listener in self._listeners:
            listener.start()

    @property
    def addresses(self) -> list[str]:
        """Where clients on this machine can connect, as `host:port`."""
        return [host_and_port(*listener.address) for listener in self._listeners]

    def stop_accepting(self) -> None:
        for listener in self._listeners:
            listener.stop_accepting()

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        if self._polling is not None:
            self._polling.close()
