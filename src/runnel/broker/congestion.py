"""Which congestion control a connection gets: the system's, but none that paces on one machine.

BBR, which some systems have by default, spaces packets by a timer each. Between two processes of
one machine there is no link to be kind to, and the timers cost three times what sending does. A
socket that was paced once stays paced, so the listening socket must not be: whoever connects
inherits its unpaced control, and peers on other machines are given the system's own (ADR 11).
"""

import socket
from typing import Final

_UNPACED: Final = (b"cubic", b"reno")
_NAME_BYTES_MAX: Final = 16


def unpace(listening: socket.socket) -> bytes:
    """Returns what the system would have chosen; empty if nothing was changed."""
    if not hasattr(socket, "TCP_CONGESTION"):
        return b""
    option = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_BYTES_MAX)
    chosen = option.split(b"\0")[0]
    if chosen in _UNPACED:
        return b""
    for name in _UNPACED:
        try:
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
        except OSError:
            continue  # not in this kernel, or not allowed
        return chosen
    return b""


def choose(accepted: socket.socket, peer: str, system_control: bytes) -> None:
    """`system_control` is what `unpace` gave for the socket that accepted it."""
    if system_control and accepted.getsockname()[0] != peer:
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, system_control)
