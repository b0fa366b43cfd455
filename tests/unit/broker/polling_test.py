"""Goal: the loop looks for the next request only while one client or two send closely, one by one.

Method: a loop that only keeps what is to be called soon, and a clock that the test sets.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest

from runnel.broker import polling as polling_module
from runnel.broker.polling import (
    LOST_BY_ONE,
    SMALL_BYTES_MAX,
    TRUST_MAX,
    TRUSTED,
    BusyPolling,
    Pollable,
)
from runnel.wire.hot import COMPILED

pytestmark = pytest.mark.skipif(COMPILED, reason="the clock of compiled code cannot be set")
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


@pytest.mark.parametrize("clients", [1, 2])
def test_close_requests_of_few_clients_keep_the_loop_awake(
    monkeypatch: pytest.MonkeyPatch, clients: int
) -> None:
    """Two: a producer, and the consumer that gets what it sent."""
    bench = Bench(monkeypatch)
    bench.requests(clients, clients=clients)  # it does not know them yet
    bench.requests(TRUSTED - 1, clients=clients)
    assert not bench.is_awake
    bench.requests(1, clients=clients)
    assert bench.is_awake
    bench.requests(100, clients=clients)
    assert bench.is_awake
    bench.late()
    assert not bench.is_awake, "the next one did not come in time"


def test_a_client_that_is_late_now_and_then_is_still_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(monkeypatch)
    bench.requests(1 + TRUST_MAX)
    bench.late()
    bench.requests(1)
    assert bench.is_awake
    for _ in range(TRUST_MAX // LOST_BY_ONE):
        bench.late()
        bench.requests(1)
    assert not bench.is_awake, "it is late every time"


def test_what_the_broker_takes_is_not_the_delay_of_its_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A slow moment of the machine shall not make it sleep, and so slower still."""
    bench = Bench(monkeypatch)
    bench.requests(1 + TRUSTED)
    for _ in range(100):
        bench.requests(1, apart_s=150e-6, handled_s=120e-6)
        assert bench.is_awake


def test_others_may_run_between_two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that was woken on this processor shall not wait until the looking is over."""
    yields = list[int]()
    monkeypatch.setattr(polling_module, "_let_others_run", lambda: yields.append(1))
    bench = Bench(monkeypatch)
    bench.requests(1 + TRUSTED)
    yields.clear()
    for _ in range(3):
        bench.loop.turn()
    assert len(yields) == 3
    bench.late()
    assert len(yields) == 3, "nobody is kept from running by who sleeps"


@pytest.mark.parametrize("apart_s", [0.0003, 0.002, 1.0])
def test_a_client_that_takes_its_time_lets_the_loop_sleep(
    monkeypatch: pytest.MonkeyPatch, apart_s: float
) -> None:
    bench = Bench(monkeypatch)
    bench.requests(100, apart_s=apart_s)
    assert not bench.is_awake


def test_large_requests_let_it_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    bench.requests(100, size=SMALL_BYTES_MAX + 1)
    assert not bench.is_awake


def test_many_clients_let_it_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    for number in range(100):
        bench.time.now_s += 10e-6
        bench.polling.received(bench.clients[number % 3], 200)
    assert not bench.is_awake


@pytest.mark.parametrize(
    ("cpus", "quota", "for_us"),
    [(1, math.inf, FOR_US), (2, math.inf, 0), (4, 1.5, FOR_US)],
)
def test_it_is_off(monkeypatch: pytest.MonkeyPatch, cpus: int, quota: float, for_us: int) -> None:
    """On one processor the client runs only if the broker sleeps; a quota would be used up."""
    bench = Bench(monkeypatch, cpus=cpus, quota=quota, for_us=for_us)
    bench.requests(100)
    assert not bench.is_awake
    assert bench.vigil is None


def test_what_is_found_is_read_by_whoever_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    bench.requests(2 + TRUSTED, clients=2)
    first, second, _ = bench.clients
    for found, reads in ((1, (0, 1)), (2, (1, 1)), (3, (2, 2)), (0, (2, 2))):
        bench.found = found
        bench.loop.turn()
        assert (first.reads, second.reads) == reads
    assert bench.looked_at[-1] == (second.fd, first.fd), "who came last is looked at first"


def test_who_shall_not_be_read_or_is_gone_is_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(monkeypatch)
    bench.requests(2 + TRUSTED, clients=2)
    first, second, _ = bench.clients
    first.is_reading = False
    bench.loop.turn()
    assert bench.looked_at[-1] == (second.fd, -1)
    bench.polling.forget(second)
    bench.loop.turn()
    assert bench.looked_at[-1] == (-1, -1)


def test_processors_are_awake_only_meanwhile_and_for_clients_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(monkeypatch)
    bench.requests(TRUSTED)
    assert not bench.vigil.is_kept
    bench.requests(1)
    assert bench.vigil.is_kept
    bench.late()
    assert not bench.vigil.is_kept
    bench.clients[0].is_local = False
    bench.requests(TRUSTED)
    assert bench.is_awake
    assert not bench.vigil.is_kept
