"""Goal: what recurs is due at the same moments, and never twice at one."""

from types import SimpleNamespace
from typing import Any

import pytest

from runnel.broker.ticks import tick_in_s


def tick_at(now_s: float, every_s: float) -> float:
    loop: Any = SimpleNamespace(time=lambda: now_s)
    return now_s + tick_in_s(loop, every_s)


@pytest.mark.parametrize("every_s", [0.25, 1.0, 60.0])
def test_all_who_come_as_often_come_together(every_s: float) -> None:
    for part in (0.0, 0.1, 0.5, 0.8):
        assert tick_at((1000 + part) * every_s, every_s) == pytest.approx(1001 * every_s)


def test_one_that_comes_a_millisecond_early_does_not_come_twice() -> None:
    assert tick_at(1000.999, 1.0) == pytest.approx(1002)
    assert tick_at(1001.0, 1.0) == pytest.approx(1002)
    assert tick_at(1001.001, 1.0) == pytest.approx(1002)


def test_an_interval_of_nothing_is_no_wait() -> None:
    assert tick_at(1000.3, 0.0) == 1000.3
