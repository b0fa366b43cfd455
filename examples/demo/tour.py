"""How the story is told: chapters, commands that are typed and run, a picture that changes."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

REFRESH_S = 0.25
TOLD_EVERY_S = 10.0  # where nobody sees a picture change
COMMAND_TIMEOUT_S = 120.0
WIDTH = 100


class Tour:
    """What is said, typed and shown; `fast` leaves the pauses out.

    Without a terminal the same is told in plain lines. All is recorded, for the picture of it.
    """

    def __init__(self, folder: Path, fast: bool) -> None:
        self.folder = folder  # where commands are typed
        self.fast = fast
        is_terminal = sys.stdout.isatty()
        self.console = Console(
            highlight=False, record=True, width=None if is_terminal else WIDTH, soft_wrap=False
        )
        self.began = time.monotonic()

    def chapter(self, title: str, *lines: str) -> None:
        self.console.print()
        self.console.rule(f"[bold cyan]{title}", align="left")
        self.say(*lines)

    def say(self, *lines: str) -> None:
        for line in lines:
            self.console.print(line, style="dim")
        self.pause(0.8 * len(lines))

    def result(self, line: str) -> None:
        self.console.print(f"[bold green]{line}[/bold green]")

    def pause(self, seconds: float) -> None:
        sys.stdout.flush()
        if not self.fast:
            time.sleep(seconds)

    def show_command(self, arguments: Sequence[str]) -> None:
        """As one would type it."""
        words = [f'"{word}"' if " " in word or "\n" in word else word for word in arguments]
        self.console.print()
        self.console.print(Text("$ runnel " + " ".join(words), style="green"))

    def type(self, *arguments: str, seconds: float = 1.5) -> str:
        """Show a command, run it and show what it printed."""
        self.show_command(arguments)
        printed = self.run(*arguments)
        self.console.print(Text(printed.rstrip("\n")))
        self.pause(seconds)
        return printed

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "runnel", *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
        )
        if done.returncode != 0:
            raise RuntimeError(f"runnel {' '.join(arguments)}: {done.stderr or done.stdout}")
        return done.stdout

    def watch(
        self,
        picture: Callable[[], RenderableType],
        is_over: Callable[[], bool],
        patience_s: float,
        what: str,
    ) -> None:
        """Show it again and again until it is over; raises RuntimeError if that takes too long."""
        began = told = time.monotonic()
        shown = Live(console=self.console, auto_refresh=False)
        is_live = self.console.is_terminal
        with shown if is_live else nullcontext():
            while not is_over():
                now = time.monotonic()
                if now - began > patience_s:
                    raise RuntimeError(f"{what} took more than {patience_s:.0f} s")
                if is_live:
                    shown.update(picture(), refresh=True)
                elif now - told > TOLD_EVERY_S:
                    self.console.print(picture())
                    told = now
                time.sleep(REFRESH_S)
            if is_live:
                shown.update(picture(), refresh=True)
        if not is_live:
            self.console.print(picture())
