"""Rates between two scrapes, and quantiles as Prometheus estimates them."""

import math

import pytest

from runnel.cli.exposition import Scrape, parse
from runnel.cli.rates import Distribution, Interval, by_label, distributions


def scrape(**values: float) -> Scrape:
    lines = [f"{name} {value}" for name, value in values.items()]
    return parse("\n".join(lines))


def test_a_counter_has_a_rate() -> None:
    before = parse('x_total{a="1"} 10\nx_total{a="2"} 5\n')
    after = parse('x_total{a="1"} 30\nx_total{a="2"} 5\nx_total{a="3"} 4\n')
    span = Interval(before, after, 2.0)
    assert span.rates("x_total") == {'a="1"': 10, 'a="2"': 0, 'a="3"': 2}
    assert span.rate("x_total") == 12
    assert span.rate("y_total") is None


def test_the_first_scrape_has_no_rates() -> None:
    span = Interval(None, scrape(x_total=5), 1.0)
    assert span.rate("x_total") is None and span.rates("x_total") == {}


def test_a_restart_between_two_scrapes_makes_no_rate() -> None:
    before = scrape(x_total=1000, runnel_start_time_seconds=100)
    after = scrape(x_total=3000, runnel_start_time_seconds=200)
    assert Interval(before, after, 1.0).rate("x_total") is None


LAG = Distribution((0.001, 0.01, 0.1, math.inf), (50, 90, 100, 100), 1.5)


@pytest.mark.parametrize(
    ("quantile", "expected"),
    [(0.25, 0.0005), (0.5, 0.001), (0.7, 0.0055), (0.9, 0.01), (0.95, 0.055), (1.0, 0.1)],
)
def test_quantiles_are_interpolated(quantile: float, expected: float) -> None:
    assert LAG.quantile(quantile) == pytest.approx(expected)


def test_beyond_the_last_bound_the_bound_is_all_that_is_known() -> None:
    assert Distribution((1.0, math.inf), (0, 10), 90).quantile(0.5) == 1.0


def test_nothing_observed_has_no_quantile() -> None:
    empty = Distribution((1.0, math.inf), (0, 0), 0)
    assert empty.quantile(0.5) is None and empty.mean is None


def test_only_what_was_observed_in_between_counts() -> None:
    def text(fast: int, slow: int) -> str:
        return (
            f'h_bucket{{api="P",le="0.001"}} {fast}\nh_bucket{{api="P",le="1"}} {fast + slow}\n'
            f'h_bucket{{api="P",le="+Inf"}} {fast + slow}\nh_sum{{api="P"}} {fast + slow}\n'
        )

    span = Interval(parse(text(1000, 0)), parse(text(1000, 10)), 1.0)
    (lately,) = span.distributions("h").values()
    assert lately.count == 10 and lately.mean == 1
    assert (lately.quantile(0.01) or 0) > 0.001
    (whole,) = distributions(span.after, "h").values()
    assert whole.count == 1010 and (whole.quantile(0.5) or 1) < 0.001


def test_series_are_summed_up_by_a_label() -> None:
    series = {'g="a",p="0"': 1.0, 'g="a",p="1"': 5.0, 'g="b",p="0"': 2.0}
    assert by_label(series, "g") == {"a": 6, "b": 2}
    assert by_label(series, "g", max) == {"a": 5, "b": 2}
