"""Goal: system calls made in C say and do what Python's own do.

Method: real sockets and files; both ways where both were built.
"""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runnel.native import calls
from runnel.native.calls import WOULD_BLOCK
from tests.unit.native.conftest import load

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture(params=["compiled", "python"])
def made(request: pytest.FixtureRequest) -> Any:  # noqa: ANN401  # a module, or what looks like it
    if request.param == "compiled":
        return load("_calls")
    return SimpleNamespace(
        receive=calls._receive, send_at_once=calls._send_at_once, write_on_loop=os.pwrite
    )


@pytest.fixture
def pair() -> Iterator[Pair]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        theirs = socket.create_connection(listening.getsockname())
        ours, _ = listening.accept()
    ours.setblocking(False)
    theirs.settimeout(5)
    with ours, theirs:
        yield ours, theirs


def wait_readable(sock: socket.socket) -> None:
    sock.settimeout(5)
    sock.recv(1, socket.MSG_PEEK)
    sock.setblocking(False)


@pytest.mark.parametrize("room_bytes", [16, 300_000])
def test_what_came_is_received_and_no_more(made: Any, pair: Pair, room_bytes: int) -> None:  # noqa: ANN401
    ours, theirs = pair
    room = memoryview(bytearray(room_bytes))
    assert made.receive(ours.fileno(), room) == WOULD_BLOCK
    theirs.sendall(b"hello")
    wait_readable(ours)
    assert made.receive(ours.fileno(), room[2:]) == 5
    assert bytes(room[:8]) == b"\0\0hello\0"
    theirs.close()
    wait_readable(ours)
    assert made.receive(ours.fileno(), room) == 0, "the end"


def test_what_the_socket_takes_is_sent(made: Any, pair: Pair) -> None:  # noqa: ANN401
    ours, theirs = pair
    assert made.send_at_once(ours.fileno(), b"ab") == 2
    assert made.send_at_once(ours.fileno(), bytearray(b"cd")) == 2
    assert made.send_at_once(ours.fileno(), memoryview(b"xef")[1:]) == 2
    assert theirs.recv(100) == b"abcdef"
    taken = 0
    while (count := made.send_at_once(ours.fileno(), bytes(200_000))) != WOULD_BLOCK:
        assert count > 0
        taken += count
    got = 0
    while got < taken:
        got += len(theirs.recv(1 << 20))
    assert got == taken


def test_a_peer_that_is_gone_is_an_error_and_no_signal(made: Any, pair: Pair) -> None:  # noqa: ANN401
    ours, theirs = pair
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    theirs.close()
    with pytest.raises(ConnectionResetError):
        wait_readable(ours)
    with pytest.raises(BrokenPipeError):
        made.send_at_once(ours.fileno(), b"x")


def test_a_descriptor_that_is_none_is_an_error(made: Any) -> None:  # noqa: ANN401
    room = memoryview(bytearray(8))
    for call, given in (
        (made.receive, (room,)),
        (made.send_at_once, (b"x",)),
        (made.write_on_loop, (b"x", 0)),
    ):
        with pytest.raises(OSError, match="Bad file descriptor"):
            call(-1, *given)


@pytest.mark.parametrize("size", [3, 300_000])
def test_bytes_are_written_where_they_belong(made: Any, tmp_path: Path, size: int) -> None:  # noqa: ANN401
    path = tmp_path / "file"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        assert made.write_on_loop(fd, b"y" * size, 5) == size
        assert made.write_on_loop(fd, memoryview(b"ab"), 0) == 2
    finally:
        os.close(fd)
    assert path.read_bytes() == b"ab\0\0\0" + b"y" * size
    fd = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            made.write_on_loop(fd, b"x", 0)
    finally:
        os.close(fd)


def test_a_look_finds_whose_socket_has_something(pair: Pair) -> None:
    look = load("_calls").look
    ours, theirs = pair
    fds = ours.fileno(), theirs.fileno()
    assert look(*fds, 3) == 0
    theirs.sendall(b"x")
    wait_readable(ours)
    assert look(*fds, 3) == 1
    assert look(fds[1], fds[0], 1) == 2
    assert look(-1, fds[1], 3) == 0, "who shall not be read"
    ours.send(b"y")
    wait_readable(theirs)
    assert look(*fds, 1) == 3
    assert look(-1, -1, 3) == 0


def test_a_look_in_python_leaves_it_to_the_loop(pair: Pair) -> None:
    ours, theirs = pair
    theirs.sendall(b"x")
    wait_readable(ours)
    assert calls._look(ours.fileno(), theirs.fileno(), 3) == 0
