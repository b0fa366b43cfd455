"""A client on the broker's own loop and thread, so that the kernel decides nothing about the order.

Between the two lies a pair of Unix sockets, which take and give the same bytes at the same moment
in every run; over TCP a large frame comes in pieces that depend on the time. A caller has one
request under way, so the broker never has to ask the clock whether a turn of frames is over.
"""

import asyncio
import fcntl
import socket
import struct
import termios

from runnel.broker.connection import Connection
from runnel.broker.polling import BusyPolling
from runnel.broker.server import Broker
from runnel.broker.transport import SocketTransport
from runnel.client.raw import ClosedError

REPLY_BYTES_MAX = 2 << 20
_SIZE = struct.Struct(">i")
_INT = struct.Struct("i")


class Caller:
    """One connection to a broker that runs on the same loop."""

    def __init__(self, broker: Broker) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock, accepted = socket.socketpair()
        self._sock.setblocking(False)
        accepted.setblocking(False)
        self._room = memoryview(bytearray(REPLY_BYTES_MAX))
        self._received_bytes = 0
        self._unsent = memoryview(b"")
        self._reply: asyncio.Future[memoryview] | None = None
        self._loop.add_reader(self._sock.fileno(), self._on_readable)
        polling = BusyPolling(self._loop, 0, is_awake=False)
        transport = SocketTransport(
            self._loop, accepted, "ratchet", lambda _: None, broker.warming, polling
        )
        transport.start(
            Connection(
                broker.handle,
                transport,
                broker.buffers,
                listener="PLAINTEXT",
                host="ratchet",
                frame_bytes_max=broker.settings.socket_request_max_bytes,
                before_replies=broker.wake_few,
            )
        )

    def call(self, frame: bytes) -> asyncio.Future[memoryview]:
        """The reply without its size, as a view that is valid until the next call."""
        assert self._reply is None, "one request at a time"
        self._reply = self._loop.create_future()
        self._unsent = memoryview(frame)
        self._write()
        return self._reply

    def close(self) -> None:
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()

    @property
    def is_taken(self) -> bool:
        """Whether the broker has received, and so handled, all that was sent."""
        (queued_bytes,) = _INT.unpack(fcntl.ioctl(self._sock, termios.TIOCOUTQ, bytes(_INT.size)))
        return not self._unsent and queued_bytes == 0

    def _write(self) -> None:
        try:
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except BlockingIOError:
            self._loop.add_writer(self._sock.fileno(), self._on_writable)
        else:
            if self._unsent:
                self._loop.add_writer(self._sock.fileno(), self._on_writable)

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._sock.fileno())
        self._write()

    def _on_readable(self) -> None:
        reply = self._reply
        assert reply is not None, "a reply that nobody asked for"
        count = self._sock.recv_into(self._room[self._received_bytes :])
        if count == 0:
            self._loop.remove_reader(self._sock.fileno())
            reply.set_exception(ClosedError("the broker ended the connection"))
            return
        self._received_bytes += count
        if self._received_bytes >= 4:
            (size,) = _SIZE.unpack_from(self._room)
            assert 4 + size <= REPLY_BYTES_MAX, f"a reply of {size} bytes"
            if self._received_bytes == 4 + size:
                self._received_bytes = 0
                self._reply = None
                reply.set_result(self._room[4 : 4 + size])
