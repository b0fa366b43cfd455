"""Goal: what a listener does when it cannot accept, and which peers its sweep lets go.

Method: a Listener with a listening socket that fails, on a loop that only notes what it is told.
"""

import errno
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from runnel.broker.listener import Listener


class Loop:
    """Notes readers and timers; a test runs them."""

    def __init__(self) -> None:
        self.readers: dict[int, Any] = {}
        self.timers: list[tuple[float, Any]] = []

    def add_reader(self, fd: int, callback: Any) -> None:  # noqa: ANN401
        self.readers[fd] = callback

    def remove_reader(self, fd: int) -> None:
        self.readers.pop(fd, None)

    def call_later(self, delay_s: float, callback: Any) -> None:  # noqa: ANN401
        self.timers.append((delay_s, callback))


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
    def setblocking(self, flag: bool) -> None: ...


def listener_on(sock: ListeningSocket) -> tuple[Listener, Loop]:
    loop = Loop()
    broker: Any = SimpleNamespace(
        settings=SimpleNamespace(socket_listen_backlog_size=50), buffers=None, metrics=None
    )
    given: Any = (loop, "PLAINTEXT", sock, broker)
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
