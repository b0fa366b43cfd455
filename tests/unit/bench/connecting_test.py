"""The generator's connections are not paced on one machine."""

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


def test_nobody_there_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
    with pytest.raises(ConnectionRefusedError):
        connected(address)
