"""`python -m runnel.testing COMMAND ...`: tests of any language beside a broker of their own.

The command finds the broker's address in BOOTSTRAP_SERVERS; its exit status is ours. Without a
command the address is printed, and the broker serves until Ctrl-C or SIGTERM. With `--until-eof` in
the command's place it also ends with its standard input: a helper in another language reads one
line, keeps the pipe open, and leaves no broker behind however it ends.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from runnel.testing.broker import RunnelBroker

VARIABLE = "BOOTSTRAP_SERVERS"
UNTIL_EOF = "--until-eof"
LOOK_S = 0.2


def main(command: Sequence[str]) -> int:
    if command and command[0] in ("-h", "--help"):
        sys.stdout.write(f"{(__doc__ or '').strip()}\n")
        return 0
    # An orderly end, in which the broker stops and its folder goes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return _beside_a_broker(command)
    except KeyboardInterrupt:  # the command has heard it too
        return 128 + signal.SIGINT


def _beside_a_broker(command: Sequence[str]) -> int:
    with RunnelBroker() as broker:
        if command and command != [UNTIL_EOF]:
            return _run(command, broker.bootstrap_servers)
        sys.stdout.write(f"{broker.bootstrap_servers}\n")
        sys.stdout.flush()
        while broker.is_running:
            if command and _has_ended(sys.stdin.fileno()):
                return 0
            if not command:
                time.sleep(LOOK_S)
        sys.stderr.write(f"runnel.testing: the broker ended:\n{broker.logs}")
        return 1


def _has_ended(descriptor: int) -> bool:
    """Whether this input is at its end, after a short wait for it; what comes is thrown away."""
    readable, _, _ = select.select([descriptor], [], [], LOOK_S)
    return bool(readable) and not os.read(descriptor, 4096)


def _run(command: Sequence[str], bootstrap_servers: str) -> int:
    try:
        return subprocess.run(command, env={**os.environ, VARIABLE: bootstrap_servers}).returncode
    except OSError as error:
        sys.stderr.write(f"runnel.testing: cannot run {command[0]}: {error.strerror}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
