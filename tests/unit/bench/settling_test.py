"""Waiting for brokers to have nothing left to do."""

import subprocess
import sys

import pytest

from bench import settling
from bench.model import Target
from bench.settling import settle


@pytest.fixture(autouse=True)
def _sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "LEFT_OVER_S", 0.0)
    monkeypatch.setattr(settling, "WAIT_S_MAX", 1.0)


def test_who_is_quiet_is_not_waited_for() -> None:
    assert settle([Target("elsewhere", ("127.0.0.1", 1))]) < 1


def test_who_is_busy_is_waited_for_but_not_forever() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        waited_s = settle([Target("busy", ("127.0.0.1", 1), busy.pid)])
    finally:
        busy.kill()
        busy.wait()
    assert 1 <= waited_s < 3
