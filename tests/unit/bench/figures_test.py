"""Figures say what was measured: rates, the broker's CPU per unit of them, percentiles."""

import pytest

from bench.figures import latency_figures, megabytes_figure, requests_figure
from bench.growth import Grown, kilobytes_each
from bench.restart import Answered
from runnel.bench.latency import Latency, percentiles
from runnel.bench.load import Result
from runnel.bench.usage import Cost

COST = Cost(user_s=1.5, system_s=0.5, switches=10, rss_mb=40.0)
RESULT = Result(seconds=4.0, request_count=1000, byte_count=8_000_000, busy=0.25, cost=COST)


def test_requests_have_microseconds_each() -> None:
    figure = requests_figure(RESULT)
    assert (figure.value, figure.cpu, figure.generator_busy) == (250.0, 2000.0, 0.25)


def test_bytes_have_seconds_per_gigabyte() -> None:
    figure = megabytes_figure(RESULT)
    assert (figure.value, figure.cpu, figure.cost) == (2.0, 250.0, COST)


def test_a_broker_whose_process_is_not_known_has_no_cost() -> None:
    result = RESULT._replace(cost=None)
    assert requests_figure(result).cpu is None
    assert megabytes_figure(result).cpu is None


def test_percentiles_are_of_the_whole_sample() -> None:
    times = [number / 1e6 for number in range(1000, 0, -1)]
    assert percentiles(times) == pytest.approx(Latency(501, 991, 1000))


def test_latencies_are_three_figures() -> None:
    figures = latency_figures("sync", Latency(1, 2, 3), COST)
    assert {name: figure.value for name, figure in figures.items()} == {
        "sync p50": 1,
        "sync p99": 2,
        "sync p99.9": 3,
    }


def test_memory_of_a_partition_is_that_of_one_more() -> None:
    opened = Answered(1.0, COST)
    assert kilobytes_each(Grown(1000, opened, 40.0), Grown(10_000, opened, 130.0)) == 10.0
