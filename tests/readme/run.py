"""The README's own blocks, typed as a newcomer would: `make readme` (`python -m tests.readme.run`).

Twice, each time in a fresh clone of the last commit and in a home of its own:

- *with downloads*: nothing is there; pip's cache is empty. At most five minutes.
- *without*: a second clone; the packages come out of pip's cache as the first pass left it, and
  everything is installed anew from there. At most a minute.

Each command is compared with what the README shows (`tests/support/examples.py`). What starts a
broker goes on in the background, as in a terminal of its own, and is stopped at the end. Its port
is a free one, so that nobody's broker is in the way; that is all that differs from what is typed. A
block that is not run, for whatever reason, is a failure.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.blocks import blocks_of
from tests.support.examples import ADDRESS, OTHER_ADDRESS, Example, agrees, examples_of

ROOT = Path(__file__).resolve().parents[2]
LIMITS_S = {"with downloads": 300.0, "without": 60.0}
COMMAND_TIMEOUT_S = 600.0
# These change the shell itself, so that every later command has to begin with them.
_CHANGES_SHELL = re.compile(r"(source|cd|export) ")


class Mismatch(Exception):
    """The README shows something else than what happened."""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="runnel-readme-") as scratch:
        slow = []
        for name, limit_s in LIMITS_S.items():
            clone = Path(scratch) / name.replace(" ", "-")
            try:
                total_s = _pass(name, clone, Path(scratch) / "home")
            except Mismatch as mismatch:
                print(f"{name}: {mismatch}")
                return 1
            finally:
                shutil.rmtree(clone, ignore_errors=True)
            print(f"{total_s:8.1f} s  {name} in all; at most {limit_s:.0f} s\n", flush=True)
            if total_s > limit_s:
                slow.append(name)
    if slow:
        print(f"too slow: {', '.join(slow)}")
    return 1 if slow else 0


def _pass(name: str, clone: Path, home: Path) -> float:
    print(f"{name}:", flush=True)
    home.mkdir(exist_ok=True)
    began = time.monotonic()
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    print(f"{time.monotonic() - began:8.1f} s  git clone", flush=True)
    terminal = _Terminal(clone, home)
    refuse_skipped(clone / "README.md")
    try:
        for example in examples_of(clone / "README.md"):
            started = time.monotonic()
            terminal.run(example)
            first_line = example.command.partition("\n")[0]
            print(f"{time.monotonic() - started:8.1f} s  {first_line}", flush=True)
    finally:
        terminal.close()
    return time.monotonic() - began


def refuse_skipped(document: Path) -> None:
    """In other documents a block may be left to another target, or be no code; not here."""
    for block in blocks_of(document):
        if block.run_by is not None or block.is_shown_only:
            raise Mismatch(f"{document.name}:{block.line}: this block is not run")


class _Terminal:
    """Runs one command after the other, brokers beside them."""

    def __init__(self, clone: Path, home: Path) -> None:
        self._clone = clone
        self._address = f"localhost:{_free_port()}"
        self._log = clone.with_suffix(".log")
        self._changes: list[str] = []
        self._brokers: list[subprocess.Popen[bytes]] = []
        kept = {
            variable: text
            for variable, text in os.environ.items()
            if not variable.startswith(("RUNNEL_", "PYTHON", "VIRTUAL_ENV", "MAKE", "MFLAGS"))
        }
        port = self._address.rpartition(":")[2]
        self._environment = {
            **kept,
            "HOME": str(home),
            "PIP_CACHE_DIR": str(home / "pip"),
            "RUNNEL_LISTENERS": f"PLAINTEXT://localhost:{port}",
            "RUNNEL_BOOTSTRAP_SERVER": self._address,
        }

    def run(self, example: Example) -> None:
        if example.starts_a_broker:
            printed, status = self._start(example), 0
        else:
            printed, status = self._finish(example)
        if status != 0 and not example.has_to_fail:
            raise Mismatch(
                f"line {example.line}: {example.command}\nended with {status}:\n{printed}"
            )
        if not agrees(example.output, printed.replace(self._address, ADDRESS)):
            raise Mismatch(f"line {example.line}: {example.command}\nprinted:\n{printed}")
        if _CHANGES_SHELL.match(example.command):
            self._changes.append(example.command)

    def _finish(self, example: Example) -> tuple[str, int]:
        command = example.command.replace(OTHER_ADDRESS, ADDRESS).replace(ADDRESS, self._address)
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", "\n".join([*self._changes, command])],
            cwd=self._clone,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
        )
        return done.stdout, done.returncode

    def _start(self, example: Example) -> str:
        """Returns the line that says it is ready."""
        with self._log.open("wb") as log:
            broker = subprocess.Popen(
                ["bash", "-c", example.command],
                cwd=self._clone,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that make and what it started can be ended together
            )
        self._brokers.append(broker)
        deadline = time.monotonic() + COMMAND_TIMEOUT_S
        while True:
            said = self._log.read_text()
            ready = [line for line in said.splitlines() if "is ready" in line]
            if ready:
                return f"{ready[0]}\n".replace(OTHER_ADDRESS.split(":")[0], "localhost")
            if broker.poll() is not None or time.monotonic() > deadline:
                raise Mismatch(f"line {example.line}: {example.command}: no broker:\n{said}")
            time.sleep(0.05)

    def close(self) -> None:
        for broker in self._brokers:
            if broker.poll() is None:
                os.killpg(broker.pid, signal.SIGTERM)
                broker.wait(30)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
