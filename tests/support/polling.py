"""For tests of `BusyPolling`: a loop that keeps what is to be called soon, a clock that is set."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from runnel.broker import polling as polling_module
from runnel.broker.polling import BusyPolling, Pollable

FOR_US = 200
CLOSE_S = 100e-6


class Loop:
    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        due, self.soon = self.soon, []
        for callback in due:
            callback()


class Time:
    def __init__(self) -> None:
        self.now_s = 1.0

    def monotonic(self) -> float:
        return self.now_s


class Client(Pollable):
    """Its socket has something to read when a test says so."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.is_local = True
        self.is_reading = True
        self.reads = 0

    def on_readable(self) -> None:
        self.reads += 1


class Vigil:
    def __init__(self, _loop: object) -> None:
        self.is_kept = False

    def begin(self) -> None:
        self.is_kept = True

    def end(self) -> None:
        self.is_kept = False

    close = end


class Bench:
    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        cpus: int = 2,
        quota: float = math.inf,
        for_us: int = FOR_US,
    ) -> None:
        self.time, self.loop = Time(), Loop()
        self.clients = [Client(5 + number) for number in range(3)]
        self.looked_at: list[tuple[int, int]] = []
        self.found = 0
        monkeypatch.setattr(polling_module, "time", self.time)
        monkeypatch.setattr(polling_module, "usable_cpus", lambda: cpus)
        monkeypatch.setattr(polling_module, "cpu_quota", lambda: quota)
        monkeypatch.setattr(polling_module, "_look", self._look)
        monkeypatch.setattr(polling_module, "Vigil", Vigil)
        loop: Any = self.loop
        self.polling = BusyPolling(loop, for_us, is_awake=True)

    def _look(self, fd: int, other_fd: int, times: int) -> int:
        assert times > 0
        self.looked_at.append((fd, other_fd))
        found, self.found = self.found, 0
        return found

    @property
    def vigil(self) -> Any:  # noqa: ANN401  # the one of this test
        return self.polling._vigil

    def requests(
        self,
        count: int,
        *,
        apart_s: float = CLOSE_S,
        size: int = 200,
        clients: int = 1,
        handled_s: float = 0.0,
    ) -> None:
        """`apart_s`: from when one was handled until the next one comes."""
        for number in range(count):
            self.time.now_s += apart_s
            self.loop.turn()
            self.polling.received(self.clients[number % clients], size)
            self.time.now_s += handled_s
            self.loop.turn()

    def late(self) -> None:
        """Nothing came in time."""
        self.time.now_s += FOR_US / 1e6 + 1e-6
        self.loop.turn()

    @property
    def is_awake(self) -> bool:
        return bool(self.loop.soon)
