"""A terminal with a program in it that goes on: keys are pressed, and the screen is watched."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

PATIENCE_S = 30.0


class Terminal:
    """Use as a context manager; what is still running at its end is killed."""

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        columns: int = 120,
        lines: int = 40,
    ) -> None:
        self._ours, self._theirs = pty.openpty()
        self.resize(columns, lines)
        self.mode = termios.tcgetattr(self._theirs)  # before the program
        self._process = subprocess.Popen(
            list(command),
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env={**environ, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        self.screen = ""  # all that was ever written to it
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(PATIENCE_S)
        os.close(self._theirs)
        os.close(self._ours)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def send_signal(self, number: signal.Signals) -> None:
        """Ctrl-C too: this terminal is not the one that controls the program's session."""
        self._process.send_signal(number)

    def expect(self, text: str) -> None:
        """Returns when this appears after what the last call found."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.screen.find(text, self._seen)) < 0:
            assert time.monotonic() < deadline, f"no {text!r} in {self.screen[self._seen :]!r}"
            self._read(0.1)
        self._seen = found + len(text)

    def wait(self) -> int:
        """The exit status, once the program has ended."""
        deadline = time.monotonic() + PATIENCE_S
        while self._process.poll() is None:
            assert time.monotonic() < deadline, "the program still runs"
            self._read(0.05)
        self._read(0.05)
        return self._process.returncode

    def mode_now(self) -> list[object]:
        return termios.tcgetattr(self._theirs)

    def _read(self, seconds: float) -> None:
        while select.select([self._ours], [], [], seconds)[0]:
            self.screen += os.read(self._ours, 65536).decode(errors="replace")
            seconds = 0.0
