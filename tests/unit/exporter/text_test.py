"""What Prometheus is given: read back by its own parser, whatever the names, however many rows."""

import time

import pytest

from runnel.broker.shared_rows import SharedNames, SharedRows
from runnel.exporter.layout import (
    BUCKET_COUNT,
    GROUPS,
    LOOP_LAG,
    OFFSETS,
    PARTITIONS,
    PartitionRow,
    bound_s,
)
from runnel.exporter.text import pieces
from runnel.metrics import Metrics, Slot
from tests.support.scraping import Scrape, parsed
from tests.unit.exporter.reading_test import shared_metrics, snapshot

ODD_NAMES = ("plain", 'with "quotes"', "back\\slash", "two\nlines", "ünïcödé", "", " ", "{}=,#")


def told(metrics: Metrics, *, open_metrics: bool = False) -> Scrape:
    text = "".join(pieces(snapshot(metrics), open_metrics=open_metrics))
    return parsed(text, open_metrics=open_metrics)


def partition_row(topic: int, partition: int, **known: int) -> PartitionRow:
    return PartitionRow(topic, partition, *[0] * 10)._replace(**known)


@pytest.mark.parametrize("open_metrics", [False, True])
def test_any_name_comes_through(open_metrics: bool) -> None:
    metrics = shared_metrics()
    assert metrics.shared is not None
    names = SharedNames(metrics.shared, metrics)
    groups = SharedRows(metrics.shared, GROUPS, metrics)
    for members, name in enumerate(ODD_NAMES):
        groups.write(groups.take(), names.take(name), 0, 0, members, 1)
    found = told(metrics, open_metrics=open_metrics)
    for members, name in enumerate(ODD_NAMES):
        assert found.value("runnel_group_members", group=name) == members


def test_lag_is_what_is_left_to_the_high_watermark() -> None:
    metrics = shared_metrics()
    assert metrics.shared is not None
    names = SharedNames(metrics.shared, metrics)
    partitions = SharedRows(metrics.shared, PARTITIONS, metrics)
    offsets = SharedRows(metrics.shared, OFFSETS, metrics)
    topic, group, gone = names.take("t"), names.take("g"), names.take("gone")
    partitions.write(partitions.take(), *partition_row(topic, 3, high_watermark=100))
    partitions.write(partitions.take(), *partition_row(topic, 4, high_watermark=5))
    offsets.write(offsets.take(), group, topic, 3, 40)
    offsets.write(offsets.take(), group, topic, 4, 9)
    offsets.write(offsets.take(), group, gone, 0, 7)
    found = told(metrics)
    assert found.value("runnel_group_lag", group="g", topic="t", partition="3") == 60
    assert found.value("runnel_group_lag", group="g", topic="t", partition="4") == 0, "never below"
    assert found.value("runnel_group_committed_offset", group="g", topic="gone", partition="0") == 7
    assert not found.has("runnel_group_lag", group="g", topic="gone", partition="0")


def test_what_is_not_known_is_not_told() -> None:
    metrics = shared_metrics()
    assert metrics.shared is not None
    names = SharedNames(metrics.shared, metrics)
    partitions = SharedRows(metrics.shared, PARTITIONS, metrics)
    partitions.write(partitions.take(), *partition_row(names.take("t"), 0, oldest_ms=-1))
    partitions.write(partitions.take(), *partition_row(names.take("t"), 1, oldest_ms=2500))
    found = told(metrics)
    oldest = "runnel_partition_oldest_record_timestamp_seconds"
    assert not found.has(oldest, topic="t", partition="0")
    assert found.value(oldest, topic="t", partition="1") == 2.5


def test_times_fall_into_the_buckets_that_hold_them() -> None:
    metrics = shared_metrics()
    observed_us = [0, 15, 16, 17, 1000, 10**6, 10**12]
    for took_us in observed_us:
        metrics.observe_us(LOOP_LAG, took_us)
    found = told(metrics)
    assert found.value("runnel_loop_lag_seconds_count") == len(observed_us)
    assert found.value("runnel_loop_lag_seconds_sum") == pytest.approx(sum(observed_us) / 1e6)
    for bucket in range(BUCKET_COUNT - 1):
        bound = bound_s(bucket)
        count = found.value("runnel_loop_lag_seconds_bucket", le=repr(bound))
        assert count == sum(took_us < bound * 1e6 for took_us in observed_us), bound
    assert found.value("runnel_loop_lag_seconds_bucket", le="+Inf") == len(observed_us)


def test_errors_are_counted_by_code_and_unknown_ones_do_no_harm() -> None:
    metrics = shared_metrics()
    for code in (-1, 3, 3, 254, 255, 30_000, -2):
        metrics.add_error(code)
    found = told(metrics)
    assert found.value("runnel_request_errors_total", error="-1") == 1
    assert found.value("runnel_request_errors_total", error="3") == 2
    assert len(found.labels_of("runnel_request_errors_total")) == 3


def test_nothing_is_told_before_it_is_published() -> None:
    metrics = shared_metrics()
    before = snapshot(metrics)
    metrics.add(Slot.PRODUCED_BATCHES, 7)
    assert before.slot(Slot.PRODUCED_BATCHES) == 0
    assert snapshot(metrics).slot(Slot.PRODUCED_BATCHES) == 7


def test_ten_thousand_partitions_take_less_than_a_second() -> None:
    """Here with patience for a busy machine; `make bench` holds the second itself."""
    metrics = shared_metrics()
    assert metrics.shared is not None
    names = SharedNames(metrics.shared, metrics)
    partitions = SharedRows(metrics.shared, PARTITIONS, metrics)
    count = 10_000
    for number in range(count):
        topic = names.take(f"topic-{number // 10}")
        partitions.write(
            partitions.take(), *partition_row(topic, number % 10, high_watermark=10**9)
        )
    began_s = time.monotonic()
    sizes = [len(piece) for piece in pieces(snapshot(metrics), open_metrics=False)]
    assert time.monotonic() - began_s < 5
    assert sum(sizes) > 4e6
    assert max(sizes) < 200_000, "never much at once"
    found = told(metrics)
    assert found.value("runnel_partitions") == count
    assert found.value("runnel_partition_high_watermark", topic="topic-999", partition="9") == 1e9
