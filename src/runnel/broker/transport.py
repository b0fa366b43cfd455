"""The socket side of a connection: `recv_into` in, `send` and `sendfile` out, on one event loop.

Record bytes go from file to socket inside the kernel, but for a few kilobytes, which are read and
leave with their header in one call. Where `sendfile` is impossible (TLS, or a file without a
descriptor) slices are read and sent in chunks: the same class with `sendfile=False`.
Before bytes of a file are sent, the file is asked whether they are in memory; if not, the queue
stands still until they have come (`warming.py`), and the loop goes on with everybody else.
The transport never looks into a frame.
"""

import asyncio
import fcntl
import os
import socket
import termios
import time
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Final

from runnel.broker.complaints import tell_closed
from runnel.broker.connection import Connection, Part
from runnel.broker.courtesy import TURN_BYTES_MAX
from runnel.broker.polling import BusyPolling, Pollable
from runnel.broker.warming import FOUND_MAX, Warming
from runnel.native import calls
from runnel.native.calls import WOULD_BLOCK
from runnel.types import FileSlice

_receive: Final = calls.receive
_send_at_once: Final = calls.send_at_once
_INT: Final = Struct("i")
COPY_CHUNK_BYTES: Final = 256 * 1024
JOINED_BYTES_MAX: Final = 64 * 1024  # small replies are joined to save a system call each
COPIED_SLICE_BYTES_MAX: Final = 16 * 1024  # up to here one read is cheaper than its own sendfile


class SocketTransport(Pollable):
    """Owns one accepted socket. Ends itself on end of file, error, or `close`."""

    __slots__ = (
        "_courtesy",
        "_found",
        "_is_warming",
        "_on_closed",
        "_polling",
        "_queued_at_sweep_bytes",
        "_received",
        "_sendfile",
        "_sends_cold",
        "_slice_sent",
        "_stuck_sweeps",
        "_taken",
        "_unsent",
        "_unsent_bytes",
        "_waits_to_write",
        "_warmed_to",
        "_warming",
        "connection",
        "loop",
        "peer",
        "sock",
    )

    connection: Connection
    monotonic = staticmethod(time.monotonic)  # the loop's own time stands still within a turn

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        peer: str,
        on_closed: Callable[["SocketTransport"], None],
        warming: Warming,
        polling: BusyPolling,
        *,
        sendfile: bool = True,
        is_local: bool = False,
    ) -> None:
        self.loop = loop
        self.sock = sock
        self.fd = sock.fileno()
        self.peer = peer
        self._on_closed = on_closed
        self._warming = warming
        self._polling = polling
        self._courtesy = warming.courtesy
        self._found = warming.found
        self._sendfile = sendfile
        self._unsent: deque[Part] = deque()
        self._unsent_bytes = 0
        self._slice_sent = 0  # of the slice that is next
        self._waits_to_write = False
        self._warmed_to = 0  # the position up to which the slice that is next was warmed
        self._is_warming = False
        self._sends_cold = False  # something in the queue had to be warmed
        self._received = False
        self._stuck_sweeps = 0
        self._taken = False  # since the last sweep, by the peer
        self._queued_at_sweep_bytes = 0
        self.is_reading = False
        self.is_local = is_local

    def start(self, connection: Connection) -> None:
        self.connection = connection
        self.resume_reading()

    def resume_reading(self) -> None:
        if not self.is_reading and self.fd >= 0:
            self.is_reading = True
            self.loop.add_reader(self.fd, self.on_readable)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.loop.call_soon(callback)

    def on_readable(self) -> None:
        connection = self.connection
        if connection.wants_bytes:
            try:
                count = _receive(self.fd, connection.receive_into())
            except OSError as error:
                self.close(f"{error.strerror}")
                return
            if count <= 0:
                if count != WOULD_BLOCK:
                    self.close("")
                return
            self._received = True
            self._polling.received(self, count)
            connection.received(count)
        if not connection.wants_bytes and self.is_reading:
            self.is_reading = False  # only now, so that a muted but quiet peer costs no system call
            self.loop.remove_reader(self.fd)

    def send(self, parts: list[Part]) -> int:
        """Send at once what the socket takes, keep the rest in order."""
        if self.fd < 0:
            return 0
        if not self._unsent:
            if len(parts) == 1 and type(parts[0]) is bytearray:
                return self._send_one(parts[0])
            try:
                parts = _join_small(parts)
            except OSError as error:
                self.close(f"{error.strerror}")
                return 0
        self._unsent.extend(parts)
        for part in parts:
            self._unsent_bytes += part.size if isinstance(part, FileSlice) else len(part)
        if not self._waits_to_write and not self._is_warming:
            self._write()
        return self._unsent_bytes

    def _send_one(self, part: bytearray) -> int:
        """The common case: one small reply and an empty queue."""
        try:
            sent = _send_at_once(self.fd, part)
        except OSError as error:
            self.close(f"{error.strerror}")
            return 0
        if sent == len(part):
            return 0
        sent = max(sent, 0)  # if it would block
        self._unsent.append(memoryview(part)[sent:])
        self._unsent_bytes = len(part) - sent
        self._wait_to_write()
        return self._unsent_bytes

    def _write(self) -> None:
        """A socket that takes less than it is offered is full: to ask again would only fail."""
        unsent = self._unsent
        turn_bytes = self._turn_bytes()
        crumb_bytes = turn_bytes >> 4  # what is left of a turn after a batch is not worth a call
        try:
            while unsent and turn_bytes > crumb_bytes:
                part = unsent[0]
                if isinstance(part, FileSlice):
                    if (offered := self._offered_bytes(part, turn_bytes)) == 0:
                        self._warm(part)
                        return
                    sent = self._send_slice(part, offered)
                    turn_bytes -= sent
                    self._slice_sent += sent
                    is_whole = self._slice_sent == part.size
                else:
                    offered = len(part)
                    sent = self.sock.send(part, socket.MSG_MORE if len(unsent) > 1 else 0)
                    is_whole = sent == offered
                    if not is_whole:
                        unsent[0] = memoryview(part)[sent:]
                self._unsent_bytes -= sent
                if is_whole:
                    unsent.popleft()
                    self._slice_sent = self._warmed_to = 0
                if sent < offered:
                    break
        except BlockingIOError:
            self._wait_to_write()
            return
        except OSError as error:
            self.close(f"{error.strerror}")
            return
        if unsent:
            self._wait_to_write()
        else:
            self._sends_cold = False
            self._wait_no_more()

    def _turn_bytes(self) -> int:
        if self._sends_cold:
            return self._courtesy.cold_turn_bytes()
        if self._unsent_bytes > TURN_BYTES_MAX and self._sendfile:
            return self._courtesy.warm_turn_bytes()
        return TURN_BYTES_MAX

    def _offered_bytes(self, part: FileSlice, turn_bytes: int) -> int:
        """How much of the slice the socket is given now; 0 if it must come from the disk first."""
        size = self._warm_bytes(part)
        if size > turn_bytes:
            size = turn_bytes
        if size > COPY_CHUNK_BYTES and not self._is_sent_by_kernel(part):
            size = COPY_CHUNK_BYTES
        return size

    def _is_sent_by_kernel(self, part: FileSlice) -> bool:
        return self._sendfile and part.file.fileno() >= 0

    def _warm_bytes(self, part: FileSlice) -> int:
        """How much of the slice can be sent now without waiting for the disk."""
        position = part.position + self._slice_sent
        if position < self._warmed_to:
            return self._warmed_to - position
        size = min(part.size - self._slice_sent, TURN_BYTES_MAX)
        key = (id(part.file), position, size)
        if key not in self._found:
            if not part.file.is_cached(position, size):
                return 0
            if len(self._found) < FOUND_MAX:
                self._found.add(key)
        self._warmed_to = position + size  # the socket takes it in bits: it is asked once
        return size

    def _warm(self, part: FileSlice) -> None:
        position = part.position + self._slice_sent
        size = min(part.size - self._slice_sent, self._courtesy.cold_bytes())
        self._wait_no_more()
        self._is_warming = self._sends_cold = True
        self._warmed_to = position + size
        self._warming.request(self, FileSlice(part.file, position, size))

    def warmed(self, error: OSError | None) -> None:
        if self.fd < 0:
            return
        if error is not None:
            self.close(f"a slice cannot be read: {error.strerror}")
            return
        self._is_warming = False
        self._write()
        if self.fd >= 0:
            self.connection.sent(self._unsent_bytes)

    def _send_slice(self, part: FileSlice, size: int) -> int:
        position = part.position + self._slice_sent
        self._polling.sends_much(self)
        if self._is_sent_by_kernel(part):
            sent = os.sendfile(self.fd, part.file.fileno(), position, size)
        else:
            sent = self.sock.send(part.file.read_at(position, size))
        if sent == 0:
            raise OSError(0, f"{part.file.path} ends before the slice at {position}")
        return sent

    def _wait_no_more(self) -> None:
        if self._waits_to_write:
            self._waits_to_write = False
            self.loop.remove_writer(self.fd)

    def _wait_to_write(self) -> None:
        if not self._waits_to_write:
            self._waits_to_write = True
            self.loop.add_writer(self.fd, self._on_writable)

    def _on_writable(self) -> None:
        self._taken = True
        self._write()
        if self.fd >= 0:
            self.connection.sent(self._unsent_bytes)

    def gets_on(self, tick: int) -> bool:
        """Whole frames came since the last sweep and no reply waits: there is nothing to look into.

        Asked of every peer each second, and true of nearly all. Notes this sweep for the next.
        """
        connection = self.connection
        if not self._received or self._waits_to_write or not connection.finished_frame:
            return False
        self._received = False
        self._stuck_sweeps = 0
        connection.active_tick = tick
        connection.swept(tick)
        return True

    def received_since_sweep(self) -> bool:
        received, self._received = self._received, False
        return received

    def sweeps_stuck(self) -> int:
        """How many sweeps in a row found bytes waiting of which the peer took none."""
        if not self._waits_to_write:
            self._stuck_sweeps = 0
            return 0
        queued_bytes = _queued_in_kernel_bytes(self.sock)
        if self._taken or queued_bytes != self._queued_at_sweep_bytes:
            self._stuck_sweeps = 0
        else:
            self._stuck_sweeps += 1
        self._taken = False
        self._queued_at_sweep_bytes = queued_bytes
        return self._stuck_sweeps

    def close(self, reason: str) -> None:
        """An empty reason is the peer's own orderly end and is not worth a line."""
        if self.fd < 0:
            return
        if self.is_reading:
            self.loop.remove_reader(self.fd)
        if self._waits_to_write:
            self.loop.remove_writer(self.fd)
        self.fd = -1
        self.is_reading = self._waits_to_write = False
        self._polling.forget(self)
        if self._is_warming:
            self._warming.forget(self)
        if reason:
            tell_closed(self.connection, self.sock, reason)
        self.sock.close()
        self._unsent.clear()
        self._unsent_bytes = 0
        self.connection.closed()
        self._on_closed(self)


def _queued_in_kernel_bytes(sock: socket.socket) -> int:
    """What the peer has yet to acknowledge.

    A slow reader empties this long before the socket counts as writable again.
    """
    (queued_bytes,) = _INT.unpack(fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(_INT.size)))
    return int(queued_bytes)


def _join_small(parts: list[Part]) -> list[Part]:
    """Neighbouring small byte parts become one, so that pipelined replies leave in one call.

    Raises OSError for a slice that cannot be read whole: its reply has announced its size.
    """
    joined: list[Part] = []
    last: bytearray | None = None
    may_copy_bytes = COPY_CHUNK_BYTES  # what is not copied costs no memory while it waits
    for part in parts:
        if isinstance(part, FileSlice) and part.size <= COPIED_SLICE_BYTES_MAX <= may_copy_bytes:
            data = part.file.read_cached(part.position, part.size)
            if data is None:
                joined.append(part)
                last = None
                continue
            if len(data) != part.size:
                raise OSError(0, f"{part.file.path} ends before the slice at {part.position}")
            may_copy_bytes -= part.size
            part = data
        if isinstance(part, FileSlice) or len(part) > JOINED_BYTES_MAX:
            joined.append(part)
            last = None
        elif last is not None and len(last) < JOINED_BYTES_MAX:
            last += part
        else:
            last = part if isinstance(part, bytearray) else bytearray(part)
            joined.append(last)
    return joined
