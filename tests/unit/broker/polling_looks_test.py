"""Goal: while it looks, what comes is read at once, only who may be read is looked at, and it ends.

Method: as `polling_test.py`; what a look finds is what the test says.
"""

import pytest

from runnel.broker.polling import TRUSTED
from runnel.wire.hot import COMPILED
from tests.support.polling import Bench

pytestmark = pytest.mark.skipif(COMPILED, reason="the clock of compiled code cannot be set")


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


def test_who_fails_to_read_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop survives what its callbacks raise, and so must the looking."""
    bench = Bench(monkeypatch)
    bench.requests(1 + TRUSTED)

    def fail() -> None:
        raise MemoryError

    monkeypatch.setattr(bench.clients[0], "on_readable", fail, raising=False)
    bench.found = 1
    with pytest.raises(MemoryError):
        bench.loop.turn()
    assert bench.is_awake
    bench.late()
    assert not bench.vigil.is_kept
    bench.requests(TRUSTED)
    assert bench.is_awake, "it begins again"


def test_with_its_broker_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    bench.requests(1 + TRUSTED)
    assert bench.vigil.is_kept
    bench.polling.close()
    assert not bench.vigil.is_kept
    bench.loop.turn()
    assert not bench.is_awake
