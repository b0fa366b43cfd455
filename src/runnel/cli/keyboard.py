"""Single keys, as they are pressed, while a command has the terminal."""

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager


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
    """Keys without the return key, and without their echo; as it was afterwards."""
    if not sys.stdin.isatty():
        yield Keyboard(None)
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
