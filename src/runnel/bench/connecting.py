"""Connections of the generator: on one machine they are not paced.

BBR, which some systems have by default, spaces packets by timers and by what it believes the peer
can take. Over the loopback that measures BBR: a bare sink took as little as 1.3 GB/s of one
connection, less than a broker that writes it down. Both brokers get the same connections; what they
send is paced or not as they have it themselves (Runnel: ADR 11). A consumer's receive buffer may be
of a fixed size, which on one machine is faster and steadier than one that the kernel lets grow
(ADR 60). Other machines are reached as the system has it.
"""

import contextlib
import ipaddress
import socket

from runnel.client.raw import Address

UNPACED = b"cubic"


def connected(address: Address, receive_buffer_bytes: int | None = None) -> socket.socket:
    """A blocking socket that sends small requests at once. Raises OSError."""
    found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    family, kind, protocol, _, place = found[0]
    if not ipaddress.ip_address(place[0]).is_loopback:
        sock = socket.create_connection(address)
    else:
        sock = socket.socket(family, kind, protocol)
        try:
            _unpace(sock)
            if receive_buffer_bytes is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
            sock.connect(place)
        except OSError:
            sock.close()
            raise
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _unpace(sock: socket.socket) -> None:
    if hasattr(socket, "TCP_CONGESTION"):
        with contextlib.suppress(OSError):  # not in this kernel, or not allowed
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, UNPACED)
