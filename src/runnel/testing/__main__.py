"""`python -m runnel.testing COMMAND ...`: tests of any language beside a broker of their own.

The command finds the broker's address in BOOTSTRAP_SERVERS; its exit status is ours. Without a
command the address is printed, and the broker serves until Ctrl-C.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence

from runnel.testing.broker import RunnelBroker

VARIABLE = "BOOTSTRAP_SERVERS"


def main(command: Sequence[str]) -> int:
    if command and command[0] in ("-h", "--help"):
        sys.stdout.write(f"{(__doc__ or '').strip()}\n")
        return 0
    with RunnelBroker() as broker:
        if command:
            return _run(command, broker.bootstrap_servers)
        sys.stdout.write(f"{broker.bootstrap_servers}\n")
        sys.stdout.flush()
        try:
            while broker.is_running:
                time.sleep(0.2)
        except KeyboardInterrupt:
            return 130
        sys.stderr.write(f"runnel.testing: the broker ended:\n{broker.logs}")
        return 1


def _run(command: Sequence[str], bootstrap_servers: str) -> int:
    try:
        return subprocess.run(command, env={**os.environ, VARIABLE: bootstrap_servers}).returncode
    except OSError as error:
        sys.stderr.write(f"runnel.testing: cannot run {command[0]}: {error.strerror}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
