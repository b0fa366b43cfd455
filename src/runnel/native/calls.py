"""System calls of the hot path: compiled where that was built, as Python has them elsewhere.

`receive` and `send_at_once` want a socket that does not block; they and `write_on_loop` raise
OSError. All of them are for the loop: with little to move, the compiled ones keep the interpreter.
"""

import os
from collections.abc import Callable
from typing import Final

from runnel.ports import Readable

try:
    from runnel.native import _calls as _compiled  # type: ignore[attr-defined]  # only where built
except ImportError:
    _compiled = None

WOULD_BLOCK: Final = -1


def _receive(fd: int, into: memoryview) -> int:
    try:
        return os.readv(fd, [into])
    except BlockingIOError:
        return WOULD_BLOCK


def _send_at_once(fd: int, data: Readable) -> int:
    try:
        return os.write(fd, data)
    except BlockingIOError:
        return WOULD_BLOCK


def _look(fd: int, other_fd: int, times: int) -> int:
    """In Python it would be no quicker than a turn of the loop, which finds the same."""
    return 0


# How many bytes came, 0 at the end, WOULD_BLOCK if none are there.
receive: Final[Callable[[int, memoryview], int]] = _compiled.receive if _compiled else _receive
# How many bytes the socket took, WOULD_BLOCK if it is full.
send_at_once: Final[Callable[[int, Readable], int]] = (
    _compiled.send_at_once if _compiled else _send_at_once
)
# How many bytes were written at that position. A worker, who may wait for the disk, takes another.
write_on_loop: Final[Callable[[int, Readable, int], int]] = (
    _compiled.write_on_loop if _compiled else os.pwrite
)
# Whether one of two sockets has something to read, asked so many times: bit 0 and bit 1.
look: Final[Callable[[int, int, int], int]] = _compiled.look if _compiled else _look
