"""The load must be faster than the faster broker, not than the slower one."""

from bench.goals import Median
from bench.load_cells import LOAD_CELLS
from bench.model import Figure
from bench.perf_cells import CONSUMED, PERF_CELLS, PRODUCED
from bench.trust import (
    SINK_MEASURES,
    Trust,
    against_perf_tools,
    against_sink,
    neighbour_of_perf_tools,
)

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


def test_tools_by_themselves_are_held_against_the_table() -> None:
    runs = [{PRODUCED: Figure(rate), CONSUMED: Figure(400.0)} for rate in (90.0, 100.0, 300.0)]
    lines = against_perf_tools(runs, {PRODUCED: Median(79.0, None), CONSUMED: Median(400.0, None)})
    assert [(line.ratio, line.met) for line in lines] == [(0.79, False), (1.0, True)]
    assert against_perf_tools([], {PRODUCED: Median(79.0, None)}) == []


def test_tools_are_asked_beside_what_is_held_against_them() -> None:
    assert neighbour_of_perf_tools([*LOAD_CELLS, *PERF_CELLS]) is PERF_CELLS[0]
    assert neighbour_of_perf_tools(LOAD_CELLS) is LOAD_CELLS[0]
    assert neighbour_of_perf_tools([]) is None
