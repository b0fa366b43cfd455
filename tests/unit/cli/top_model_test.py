"""Scrapes in, numbers out: what `runnel top` would show."""

from collections.abc import Mapping

import pytest

from runnel.cli.exposition import Scrape, parse
from runnel.cli.top_frame import Frame, TopicOrder
from runnel.cli.top_model import TopModel
from tests.support.scrapes import BUSY, exposition, histogram

Series = Mapping[str, Mapping[str, float]]


def busy(more: Series | None = None, text: str = "") -> Scrape:
    return parse(exposition(BUSY, more or {}) + text)


def counted(produced: float, orders_end: float) -> Series:
    return {
        "runnel_produced_bytes_total": {"": produced},
        "runnel_requests_total": {'api="Produce"': produced / 10, 'api="Fetch"': 3},
        "runnel_partition_log_end_offset": {
            'topic="orders",partition="0"': orders_end,
            'topic="orders",partition="1"': 50,
            'topic="clicks",partition="0"': 7,
        },
    }


def after_two(first: Scrape, second: Scrape, apart_s: float = 2.0) -> Frame:
    model = TopModel()
    model.observe(first, 10.0)
    model.observe(second, 10.0 + apart_s)
    return model.frame(1_100.0)


def test_the_first_look_has_no_rates_but_all_else() -> None:
    model = TopModel()
    model.observe(busy(counted(1000, 100)), 10.0)
    frame = model.frame(1_100.0)
    assert frame.in_rate is None and frame.apis == [] and frame.in_history == []
    assert (
        frame.up_s == 100
        and frame.version == "0.1.0"
        and frame.broker == "7"
        and frame.connections == 42
    )
    assert [(row.topic, row.records_rate) for row in frame.topics] == [
        ("clicks", None),
        ("orders", None),
    ]


def test_rates_need_two_looks() -> None:
    times = histogram("runnel_request_seconds", [0, 0, 0], 'api="Produce"')
    slow = histogram("runnel_request_seconds", [0, 10, 10], 'api="Produce"')
    frame = after_two(busy(counted(1000, 100), times), busy(counted(5000, 300), slow))
    assert frame.in_rate == 2000 and frame.in_history == [2000]
    (row,) = frame.apis  # Fetch was not called
    assert row.api == "Produce" and row.rate == 200
    assert row.p50_s == pytest.approx(0.0015)
    orders = frame.topics[0]
    assert orders.topic == "orders" and orders.records_rate == 100 and orders.partitions == 2


@pytest.mark.parametrize(
    ("order", "first"),
    [
        (TopicOrder.WRITTEN, "orders"),
        (TopicOrder.SIZE, "clicks"),
        (TopicOrder.PARTITIONS, "orders"),
        (TopicOrder.NAME, "clicks"),
    ],
)
def test_topics_are_sorted_as_asked(order: TopicOrder, first: str) -> None:
    model = TopModel()
    model.observe(busy(counted(0, 100)), 1.0)
    model.observe(busy(counted(0, 200)), 2.0)
    assert model.frame(0.0, order).topics[0].topic == first


def test_every_order_is_reached_by_the_key() -> None:
    order, seen = TopicOrder.WRITTEN, set()
    for _ in TopicOrder:
        seen.add(order)
        order = order.next()
    assert seen == set(TopicOrder) and order is TopicOrder.WRITTEN


def test_groups_by_lag() -> None:
    def lags(value: float) -> Series:
        both = {f'group="billing",topic="orders",partition="{at}"': value for at in range(2)}
        return {"runnel_group_lag": both}

    frame = after_two(busy(lags(10)), busy(lags(20)))
    assert [(row.group, row.lag, row.lag_rate, row.members) for row in frame.groups] == [
        ("billing", 40, 10, 3),
        ("idle", 0, None, 0),
    ]
    assert frame.group_states == [("Empty", 1), ("Stable", 1)]
    assert frame.transaction_states == [("Ongoing", 2)]


def test_a_restart_forgets_what_was() -> None:
    restarted = {"runnel_start_time_seconds": {"": 1_050.0}}
    frame = after_two(busy(counted(9000, 100)), busy({**counted(10, 1), **restarted}))
    assert frame.in_rate is None and frame.up_s == 50


def test_a_healthy_broker_has_no_warnings() -> None:
    assert after_two(busy(counted(0, 1)), busy(counted(9, 2))).warnings == []


LATE = histogram("runnel_loop_lag_seconds", [0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 5])


@pytest.mark.parametrize(
    ("more", "text", "warning"),
    [
        ({"runnel_logs_offline": {"": 2}}, "", "2 logs are offline"),
        ({"runnel_ready": {"": 0}}, "", "not ready"),
        ({"runnel_cleaner_uncleanable_logs": {"": 1}}, "", "1 logs cannot be compacted"),
        ({"runnel_transaction_oldest_seconds": {"": 7300}}, "", "open for 2 h 1 min"),
        ({"runnel_connections_refused_total": {"": 30}}, "", "15.0 connections a second"),
        ({}, LATE, "the loop is late by up to 509 ms"),
        ({"runnel_log_dir_bytes": {'dir="/d",kind="total"': 1000, 'dir="/d",kind="free"': 99}}, "",
         "/d: only 99 B (10%)"),
    ],
)  # fmt: skip
def test_what_an_operator_should_know(more: Series, text: str, warning: str) -> None:
    (found,) = after_two(busy(), busy(more, text)).warnings
    assert warning in found


def lagging(*lags: float, apart_s: float = 20.0) -> list[str]:
    model = TopModel()
    for at, lag in enumerate(lags):
        series = {"runnel_group_lag": {'group="slow",topic="t",partition="0"': lag}}
        model.observe(busy(series), at * apart_s)
    return model.frame(1_100.0).warnings


def test_a_lag_that_grows_for_a_minute_is_told() -> None:
    (warning,) = lagging(0, 10, 20, 30, 40)
    assert "group slow falls behind: 30 records more" in warning


@pytest.mark.parametrize("lags", [(0, 10, 20), (0, 50, 10, 60, 70), (5, 5, 5, 5, 5), (9, 6, 4, 2)])
def test_a_lag_that_comes_and_goes_is_not(lags: tuple[float, ...]) -> None:
    assert lagging(*lags) == []


def test_histories_are_bounded() -> None:
    model = TopModel()
    for at in range(200):
        model.observe(busy(counted(at * 10, at)), float(at))
    assert len(model.frame(0.0).in_history) == 60
