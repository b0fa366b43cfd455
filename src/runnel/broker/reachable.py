"""Can clients follow the addresses that they are told? The commonest mistake with containers.

A client connects, asks for the brokers, and then uses the addresses it was told. If those are wrong
it waits for nobody, and the broker sees nothing of that. So what can be known here is said here:
a name that does not resolve, and a loopback address told to clients of other machines. Looked at
in a thread of its own, because a resolver may take its time, and never in the way of a start.
"""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Final

from runnel.config.listeners import Listener

_log = logging.getLogger(__name__)
Resolve = Callable[[str], bool]
_FIX: Final = "say --advertised-host NAME, or advertised.listeners if there are several listeners"


def look_after(bound: Sequence[Listener], told: Sequence[Listener]) -> None:
    """Warn of what looks wrong, some time after this returns."""
    if not all(_is_loopback(each.host) for each in bound):

        def look() -> None:
            for doubt in doubts(bound, told, resolves):
                _log.warning("%s", doubt)

        threading.Thread(target=look, name="advertised", daemon=True).start()


def doubts(bound: Sequence[Listener], told: Sequence[Listener], resolve: Resolve) -> list[str]:
    """Of several listeners one may be for this machine: two of them are no accident."""
    found: list[str] = []
    for own, other in zip(bound, told, strict=True):
        shown = f"{other.host}:{other.port}"
        if _is_loopback(other.host):
            if not _is_loopback(own.host) and len(bound) == 1:
                found.append(
                    f"clients of other machines and containers are told {shown}, which is"
                    f" themselves: only clients of this machine can connect; {_FIX}"
                )
        elif not _is_address(other.host) and not resolve(other.host):
            found.append(
                f"clients of listener {other.name} are told {shown}, and this machine cannot"
                f" resolve {other.host}; if they cannot either, {_FIX}"
            )
    return found


def resolves(host: str) -> bool:
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, host)
            return True
    return False
