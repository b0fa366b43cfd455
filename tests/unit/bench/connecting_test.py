"""The generator's connections on one machine: not paced, and with the buffer that was asked for."""

import socket

import pytest

from runnel.bench.connecting import UNPACED, connected

has_choice = pytest.mark.skipif(
    not hasattr(socket, "TCP_CONGESTION"), reason="the system has one congestion control"
)


@has_choice
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_on_one_machine_nothing_is_paced(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = host, listening.getsockname()[1]
        with connected(address) as sock:
            option = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            assert option.split(b"\0")[0] == UNPACED
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_consumers_buffer_is_of_the_size_that_was_asked_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        with connected(address) as usual, connected(address, 8192) as asked:
            own, wanted = (
                sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) for sock in (usual, asked)
            )
    assert wanted in (8192, 2 * 8192)  # Linux doubles what it is asked for
    assert own not in (8192, 2 * 8192)


def test_nobody_there_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
    with pytest.raises(ConnectionRefusedError):
        connected(address)
