"""A very small HTTP server: GET and HEAD, one answer per connection, and nothing to be sent to it.

One thread waits for all connections at once; an answer is made in pieces, each when the one before
has left. Everything has a limit: a request its size and its time, a reader the time in which it
must take something, the number of connections. Whoever does not keep to one is cut off.
"""

import select
import socket
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

REQUEST_BYTES_MAX: Final = 16 * 1024
CONNECTIONS_MAX: Final = 32
REFUSED_MAX: Final = 32  # that are told so; those beyond are closed without a word
PATIENCE_S: Final = 5.0  # for the request, and for each piece that the peer has to take
ANSWER_S_MAX: Final = 60.0
GZIP_LEVEL: Final = 1
_GZIP_FRAME: Final = 31  # of zlib: deflate with a gzip header
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


class Request(NamedTuple):
    method: str
    path: str
    is_newer: bool  # HTTP/1.1 or later: it knows chunks
    headers: dict[str, str]  # names in lower case


class Answer(NamedTuple):
    status: int
    content_type: str
    pieces: Iterator[str]


Handler = Callable[[Request], Answer]


def plain(status: int, text: str) -> Answer:
    return Answer(status, "text/plain; charset=utf-8", iter([text + "\n"]))


class Server:
    """Serves on a listening socket until the other end of `lifeline` is closed."""

    def __init__(self, sock: socket.socket, lifeline: socket.socket, handler: Handler) -> None:
        self._sock = sock
        self._lifeline = lifeline
        self._handler = handler
        self._connections: dict[int, _Connection] = {}
        self._poll = select.poll()

    def run(self) -> None:
        self._sock.setblocking(False)
        listening, lifeline = self._sock.fileno(), self._lifeline.fileno()
        for fd in (listening, lifeline):
            self._poll.register(fd, select.POLLIN)
        while True:
            wait_ms = 1000 if self._connections else None
            for fd, event in self._poll.poll(wait_ms):
                if fd == lifeline:
                    self._end_all()
                    return
                if fd == listening:
                    self._accept()
                elif (connection := self._connections.get(fd)) is not None:
                    self._go_on(connection, event)
            self._cut_off_the_slow(time.monotonic())

    def _accept(self) -> None:
        try:
            sock, _ = self._sock.accept()
        except OSError:  # the peer was quicker, or there are no descriptors just now
            return
        if len(self._connections) >= CONNECTIONS_MAX + REFUSED_MAX:
            sock.close()
            return
        sock.setblocking(False)
        connection = _Connection(sock, self._handler)
        if len(self._connections) >= CONNECTIONS_MAX:
            connection.refuse(503, "too many connections at once")
        self._connections[sock.fileno()] = connection
        self._poll.register(sock.fileno(), connection.events)

    def _go_on(self, connection: "_Connection", event: int) -> None:
        before = connection.events
        if event & (select.POLLERR | select.POLLNVAL):
            connection.is_over = True
        else:
            connection.go_on()
        if connection.is_over:
            self._end(connection)
        elif connection.events != before:
            self._poll.modify(connection.sock.fileno(), connection.events)

    def _cut_off_the_slow(self, now_s: float) -> None:
        for connection in list(self._connections.values()):
            if now_s > connection.deadline_s:
                self._end(connection)

    def _end_all(self) -> None:
        for connection in list(self._connections.values()):
            self._end(connection)

    def _end(self, connection: "_Connection") -> None:
        fd = connection.sock.fileno()
        self._poll.unregister(fd)
        del self._connections[fd]
        connection.sock.close()


class _Connection:
    def __init__(self, sock: socket.socket, handler: Handler) -> None:
        self.sock = sock
        self.events = select.POLLIN
        self.is_over = False
        self.deadline_s = time.monotonic() + PATIENCE_S
        self._last_s = self.deadline_s + ANSWER_S_MAX
        self._handler = handler
        self._received = bytearray()
        self._unsent = memoryview(b"")
        self._rest: Iterator[bytes] = iter(())

    def refuse(self, status: int, why: str) -> None:
        self._begin(Request("GET", "", False, {}), plain(status, why))

    def go_on(self) -> None:
        try:
            if self.events == select.POLLIN:
                self._receive()
            else:
                self._send()
        except BlockingIOError:
            pass
        except OSError:
            self.is_over = True

    def _receive(self) -> None:
        data = self.sock.recv(REQUEST_BYTES_MAX)
        if not data:
            self.is_over = True
            return
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end >= 0:
            request = parse(bytes(self._received[:end]))
            if request is None:
                self.refuse(400, "this is not a request")
            else:
                self._begin(request, self._handler(request))
        elif len(self._received) > REQUEST_BYTES_MAX:
            self.refuse(431, f"a request has at most {REQUEST_BYTES_MAX} bytes")

    def _begin(self, request: Request, answer: Answer) -> None:
        self._rest = encoded(request, answer)
        self.events = select.POLLOUT

    def _send(self) -> None:
        if not self._unsent:
            piece = next(self._rest, None)
            if piece is None:
                self.sock.shutdown(socket.SHUT_WR)
                self.is_over = True
                return
            self._unsent = memoryview(piece)
        self._unsent = self._unsent[self.sock.send(self._unsent) :]
        self.deadline_s = min(time.monotonic() + PATIENCE_S, self._last_s)


def parse(head: bytes) -> Request | None:
    """The request line and the headers; None if it is none."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        return None
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, text = line.partition(":")
        if not colon:
            return None
        headers[name.strip().lower()] = text.strip()
    path = words[1].partition("?")[0]
    return Request(words[0], path, words[2] != "HTTP/1.0", headers)


def encoded(request: Request, answer: Answer) -> Iterator[bytes]:
    """Everything that leaves the socket."""
    wants_gzip = "gzip" in request.headers.get("accept-encoding", "").lower()
    lines = [
        f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}",
        f"Content-Type: {answer.content_type}",
        "Cache-Control: no-store",
        "Connection: close",
        *(["Content-Encoding: gzip", "Vary: Accept-Encoding"] if wants_gzip else []),
        *(["Transfer-Encoding: chunked"] if request.is_newer else []),
        *(["Allow: GET, HEAD"] if answer.status == 405 else []),
    ]
    yield ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    if request.method == "HEAD":
        return
    body: Iterator[bytes] = (piece.encode() for piece in answer.pieces)
    if wants_gzip:
        body = _gzipped(body)
    if request.is_newer:
        body = _chunked(body)
    yield from body


def _gzipped(body: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_FRAME)
    for piece in body:
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()


def _chunked(body: Iterator[bytes]) -> Iterator[bytes]:
    """A body that ends early is seen to do so."""
    for piece in body:
        yield f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
    yield b"0\r\n\r\n"
