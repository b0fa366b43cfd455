"""Single keys, as they are pressed, while a command has the terminal."""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from signal import SIGHUP, SIGTERM
from types import FrameType


class Keyboard:
    """Owns the terminal's mode; see `listening`."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def wait(self, seconds: float) -> str:
        """The keys pressed, or nothing when the time is over. Ctrl-C raises KeyboardInterrupt."""
        if self._descriptor is None:
            select.select([], [], [], seconds)
            return ""
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return ""
        pressed = os.read(self._descriptor, 64).decode(errors="replace")
        if not pressed:  # the terminal has gone
            raise KeyboardInterrupt
        return pressed


@contextmanager
def listening() -> Iterator[Keyboard]:
    """Keys without the return key, and without their echo; afterwards all is as it was.

    So it is when we are told to end (SIGTERM, or a window that is closed): that leaves the block
    with SystemExit, and whoever owns the screen gives it back too.
    """
    if not sys.stdin.isatty():
        yield Keyboard(None)
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    handlers = {number: signal.signal(number, _leave) for number in (SIGTERM, SIGHUP)}
    try:
        tty.setcbreak(descriptor)
        yield Keyboard(descriptor)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        with suppress(termios.error):  # the terminal has gone
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
