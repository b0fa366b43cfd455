"""Goal: the loop looks for the next request only while one client or two send closely, one by one.

Method: a loop that only keeps what is to be called soon, and a clock that the test sets.
"""

import math

import pytest

from runnel.broker import polling as polling_module
from runnel.broker.polling import LOST_BY_ONE, SMALL_BYTES_MAX, TRUST_MAX, TRUSTED
from runnel.wire.hot import COMPILED
from tests.support.polling import FOR_US, Bench

pytestmark = pytest.mark.skipif(COMPILED, reason="the clock of compiled code cannot be set")


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


def test_whoever_is_sent_files_lets_it_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its requests are small and follow closely, but what it asks for is megabytes."""
    bench = Bench(monkeypatch)
    bench.requests(1 + TRUSTED)
    assert bench.is_awake
    bench.polling.sends_much(bench.clients[2])
    assert bench.is_awake, "somebody else"
    bench.polling.sends_much(bench.clients[0])
    bench.loop.turn()
    assert not bench.is_awake
    for _ in range(100):
        bench.requests(1)
        bench.polling.sends_much(bench.clients[0])
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
