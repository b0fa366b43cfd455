"""The exporter's HTTP: what it answers, and what it does not put up with."""

import gzip
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from runnel.exporter import http
from runnel.exporter.http import Answer, Request, Server, parse, plain

Address = tuple[str, int]
LINES = [f"line {number}\n" for number in range(20_000)]


def answer(request: Request) -> Answer:
    if request.path == "/long":
        return Answer(200, "text/plain", iter(LINES))
    return plain(404, f"not {request.path}")


@pytest.fixture
def address() -> Iterator[Address]:
    listening = socket.create_server(("127.0.0.1", 0))
    ours, theirs = socket.socketpair()
    serving = threading.Thread(target=Server(listening, theirs, answer).run)
    serving.start()
    yield listening.getsockname()
    ours.close()
    serving.join()
    listening.close()
    theirs.close()


def said(address: Address, request: bytes) -> bytes:
    """All that comes until the server closes."""
    with socket.create_connection(address, timeout=20) as sock:
        sock.sendall(request)
        return b"".join(iter(lambda: sock.recv(65536), b""))


def test_a_long_answer_comes_whole_and_packed_if_asked_for(address: Address) -> None:
    url = f"http://{address[0]}:{address[1]}/long?a=b"
    with urllib.request.urlopen(url) as response:
        assert response.read().decode() == "".join(LINES)
    asked = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(asked) as response:
        assert response.headers["Content-Encoding"] == "gzip"
        packed = response.read()
    assert gzip.decompress(packed).decode() == "".join(LINES)


def test_old_clients_get_no_chunks(address: Address) -> None:
    head, _, body = said(address, b"GET /long HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body.decode() == "".join(LINES)


def test_head_has_no_body(address: Address) -> None:
    head, _, body = said(address, b"HEAD /long HTTP/1.1\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK") and body == b""


def test_nothing_there_is_said_with_its_status(address: Address) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"http://{address[0]}:{address[1]}/nowhere")
    with caught.value as error:
        assert (error.code, error.read()) == (404, b"not /nowhere\n")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET nowhere HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + b"x: " + b"y" * http.REQUEST_BYTES_MAX, 431),
        (b"\x00\xff\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_is_refused(address: Address, request_: bytes, status: int) -> None:
    assert said(address, request_).startswith(f"HTTP/1.1 {status} ".encode())


def test_the_slow_are_cut_off_and_keep_nobody_from_an_answer(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "PATIENCE_S", 0.2)
    slow = [socket.create_connection(address, timeout=20) for _ in range(5)]
    for sock in slow[:3]:
        sock.sendall(b"GET /long HT")  # and no more
    for sock in slow[3:]:
        sock.sendall(b"GET /long HTTP/1.1\r\n\r\n")  # and takes nothing of the answer
    assert said(address, b"GET / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 404")
    for sock in slow[:3]:
        assert sock.recv(1) == b""
    for sock in slow:
        sock.close()


def test_more_connections_than_are_served_are_told_so(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "CONNECTIONS_MAX", 2)
    held = [socket.create_connection(address) for _ in range(2)]
    for sock in held:
        sock.sendall(b"GET")
    assert said(address, b"GET / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 503")
    for sock in held:
        sock.close()


def test_a_flood_of_connections_is_not_even_told(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "CONNECTIONS_MAX", 1)
    monkeypatch.setattr(http, "REFUSED_MAX", 0)
    with socket.create_connection(address) as held, socket.create_connection(address) as other:
        held.sendall(b"GET")
        other.settimeout(10)
        assert other.recv(1) == b""


def test_names_of_headers_are_read_in_any_case() -> None:
    request = parse(b"GET /a?b HTTP/1.1\r\nAccept-ENCODING:  gzip ")
    assert request == Request("GET", "/a", True, {"accept-encoding": "gzip"})
