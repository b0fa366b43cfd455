"""Tells a service manager how the start comes on: one datagram each, where systemd asks for it.

`Type=notify` units give a socket in NOTIFY_SOCKET; without one nothing happens. A long recovery
asks for more time, so that a start which makes progress is not ended by the manager's time-out.
"""

import contextlib
import os
import socket
from typing import Final

VARIABLE: Final = "NOTIFY_SOCKET"
MORE_TIME_S: Final = 60


def ready(addresses: list[str]) -> None:
    _send(f"READY=1\nSTATUS=ready on {', '.join(addresses)}")


def opening(done: int, total: int) -> None:
    _send(f"EXTEND_TIMEOUT_USEC={MORE_TIME_S * 1_000_000}\nSTATUS=opening logs: {done} of {total}")


def stopping() -> None:
    _send("STOPPING=1\nSTATUS=answering what is under way")


def _send(state: str) -> None:
    """A manager that does not listen is no reason to fail."""
    path = os.environ.get(VARIABLE)
    if not path or path[0] not in "/@":
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.connect("\0" + path[1:] if path[0] == "@" else path)
        sock.send(state.encode())
