"""Peers of this machine are not paced; others get what the system has."""

import socket
from collections.abc import Iterator

import pytest

from runnel.broker.congestion import choose, unpace

OPTION = (socket.IPPROTO_TCP, socket.TCP_CONGESTION)


def control_of(sock: socket.socket) -> bytes:
    return sock.getsockopt(*OPTION, 16).split(b"\0")[0]


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        sock.setsockopt(*OPTION, b"reno")
        yield sock


def accepted(listening: socket.socket) -> tuple[socket.socket, socket.socket]:
    client = socket.create_connection(listening.getsockname())
    return client, listening.accept()[0]


def test_a_control_that_does_not_pace_is_left_alone(listening: socket.socket) -> None:
    assert unpace(listening) == b""
    assert control_of(listening) == b"reno"


def test_a_paced_system_is_not_paced_here_but_for_others(listening: socket.socket) -> None:
    try:
        listening.setsockopt(*OPTION, b"bbr")
    except OSError:
        pytest.skip("this kernel has no bbr")
    system_control = unpace(listening)
    assert system_control == b"bbr"
    assert control_of(listening) in (b"cubic", b"reno")
    client, sock = accepted(listening)
    with client, sock:
        choose(sock, "127.0.0.1", system_control)
        assert control_of(sock) == control_of(listening)
        choose(sock, "192.0.2.1", system_control)
        assert control_of(sock) == b"bbr"
