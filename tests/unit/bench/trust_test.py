"""The load must be faster than the faster broker, not than the slower one."""

from bench.goals import Median
from bench.trust import SINK_MEASURES, Trust, against_sink

MEASURE = SINK_MEASURES[0]


def rate(value: float) -> dict[str, Median]:
    return {MEASURE: Median(value, None)}


def test_the_better_broker_counts() -> None:
    (line,) = against_sink(rate(290.0), [rate(100.0), rate(200.0), {}])
    assert (line.ratio, line.met) == (1.45, False)
    (line,) = against_sink(rate(300.0), [rate(200.0)])
    assert line.met and "met" in str(line)


def test_without_a_broker_there_is_no_line() -> None:
    assert against_sink(rate(1.0), [{}]) == []


def test_both_bounds_hold() -> None:
    assert Trust("x", 0.8, 0.8, 1.2).met
    assert not Trust("x", 1.21, 0.8, 1.2).met
    assert "NOT MET" in str(Trust("x", 0.79, 0.8, 1.2))
