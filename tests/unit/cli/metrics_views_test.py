"""What `runnel metrics` makes of two scrapes: rows for people, a document for programs."""

from typing import Any

import pytest

from runnel.cli.exposition import parse
from runnel.cli.metrics_views import SERIES_MAX, by_subject, chosen, document, lines_of, quantity
from runnel.cli.rates import Interval
from tests.support.scrapes import exposition, histogram

TIMES = "runnel_request_seconds"


def text(requests: int, fast: int) -> str:
    parts = {
        "runnel_produced_bytes_total": {"": 2048.0 * requests},
        "runnel_partition_bytes": {f'topic="t",partition="{n}"': float(n) for n in range(20)},
        "runnel_group_lag": {'group="a\\"b",topic="t",partition="0"': 5.0},
    }
    return exposition(parts) + histogram(TIMES, [fast, fast, fast], 'api="Fetch"')


SPAN = Interval(parse(text(1, 0)), parse(text(3, 10)), 2.0)


def test_names_choose() -> None:
    scrape = SPAN.after
    assert chosen(scrape.kinds, ["lag"]) == ["runnel_group_lag"]
    assert chosen(scrape.kinds, ["runnel_group_lag"]) == ["runnel_group_lag"]
    assert chosen(scrape.kinds, ["LAG", "produced"]) == [
        "runnel_produced_bytes_total",
        "runnel_group_lag",
    ]
    assert len(chosen(scrape.kinds, [])) == 4 and chosen(scrape.kinds, ["nothing"]) == []


def test_a_counter_has_its_total_and_its_rate() -> None:
    (line,) = lines_of(SPAN, "runnel_produced_bytes_total", whole=False)
    assert line.cells == ("produced_bytes_total", "", "6.0 KiB", "2.0 KiB/s")


def test_a_histogram_has_quantiles_since_the_start_and_now() -> None:
    (line,) = lines_of(SPAN, TIMES, whole=False)
    assert line.cells == (
        "request_seconds", "api=Fetch", "10, p50 500 us p99 990 us", "5/s, p50 500 us p99 990 us",
    )  # fmt: skip


def test_many_series_are_summed_up_unless_they_are_asked_for() -> None:
    (line,) = lines_of(SPAN, "runnel_partition_bytes", whole=False)
    assert line.labels == "20 series" and line.value == "max 19 B"
    lines = list(lines_of(SPAN, "runnel_partition_bytes", whole=True))
    assert len(lines) == 20 > SERIES_MAX and lines[1].name == ""


def test_every_metric_has_a_heading() -> None:
    subjects = by_subject(["runnel_group_lag", "runnel_produced_bytes_total", "runnel_new_thing"])
    assert subjects == [
        ("throughput", ["runnel_produced_bytes_total"]),
        ("groups", ["runnel_group_lag"]),
        ("other", ["runnel_new_thing"]),
    ]


def test_the_document() -> None:
    found: Any = document(
        SPAN, ["runnel_produced_bytes_total", "runnel_group_lag", TIMES], "http://x"
    )
    counter, gauge, times = found["metrics"]
    assert found["interval_seconds"] == 2.0
    assert counter["samples"] == [{"labels": {}, "value": 6144.0, "per_second": 2048.0}]
    assert gauge["samples"][0]["labels"] == {"group": 'a"b', "topic": "t", "partition": "0"}
    assert times["type"] == "histogram" and times["samples"][0]["interval"]["count"] == 10


@pytest.mark.parametrize(
    ("family", "value", "shown"),
    [
        ("runnel_topic_bytes", 1536, "1.5 KiB"),
        ("runnel_start_time_seconds", 0, ""),
        ("runnel_start_time_seconds", 1_700_000_000, "2023-11-14 22:13:20Z"),
        ("runnel_partition_oldest_record_timestamp_seconds", 1e300, ""),
        ("runnel_transaction_oldest_seconds", 7200, "2 h"),
        ("process_cpu_seconds_total", 1.5, "1.50 s"),
        ("runnel_connections", 12_345, "12,345"),
        ("runnel_cleaner_dirty_ratio_max", 0.25, "0.25"),
    ],
)
def test_quantities_have_their_unit(family: str, value: float, shown: str) -> None:
    assert quantity(family, value) == shown
