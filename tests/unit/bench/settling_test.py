"""Waiting for brokers to have nothing left to do."""

import subprocess
import sys

from bench.model import Target
from bench.settling import LEFT_OVER_S, WAIT_S_MAX, settle


def test_who_is_quiet_is_not_waited_for() -> None:
    unknown = Target("elsewhere", ("127.0.0.1", 1))
    assert settle([unknown]) < LEFT_OVER_S + 1


def test_who_is_busy_is_waited_for_but_not_forever() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        waited_s = settle([Target("busy", ("127.0.0.1", 1), busy.pid)])
    finally:
        busy.kill()
        busy.wait()
    assert WAIT_S_MAX <= waited_s < WAIT_S_MAX + 2
