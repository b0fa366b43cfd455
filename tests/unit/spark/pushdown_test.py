"""Filters as ranges: never a row too few, also where timestamps are in no order."""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from runnel.arrow import connections
from runnel.native.columns import Record
from runnel.spark.reads.pushdown import PushdownReader
from tests.support.spark_brokers import Broker, spark_broker
from tests.support.spark_readers import batch_reader, pieces, rows_of
from tests.support.spark_topics import T0_MS, make_topic, send

_RNG = random.Random(7)
STAMPS = [T0_MS + offset * 10 + _RNG.randint(-50, 50) for offset in range(300)]
DISORDER_MS = 100


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with spark_broker() as running:
        for topic in ("a", "b"):
            make_topic(running.bootstrap_servers, topic, 2)
            for index in (0, 1):
                records = [Record(None, b"%d" % number, STAMPS[number]) for number in range(300)]
                send(
                    running.bootstrap_servers, topic, records[: 300 - 100 * index], partition=index
                )
        yield running


@pytest.fixture
def servers(broker: Broker) -> Iterator[str]:
    yield broker.bootstrap_servers
    connections.close_all()


def pushed(
    servers: str, *filters: Filter, **options: object
) -> tuple[list[dict[str, Any]], list[Filter], int]:
    """The rows, the filters that are left to Spark, and how many offsets were to be read."""
    reader = batch_reader(servers, {"subscribe": "a,b", "pushdown": "true", **options})
    left = list(reader.pushFilters(list(filters)))
    partitions = list(reader.partitions())
    planned = sum(piece.end - piece.start for piece in pieces(partitions))
    return rows_of(reader, partitions), left, planned


def at(stamp_ms: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=stamp_ms)


def test_trap_06_only_a_reader_that_is_asked_to_has_push_filters(servers: str) -> None:
    plain = batch_reader(servers, {"subscribe": "a"})
    assert type(plain).pushFilters is DataSourceReader.pushFilters
    assert isinstance(batch_reader(servers, {"subscribe": "a", "pushdown": "true"}), PushdownReader)


def test_topic_partition_and_offset_are_exact(servers: str) -> None:
    filters = [
        IsNotNull(("topic",)),
        EqualTo(("topic",), "b"),
        In(("partition",), (1, 5)),
        GreaterThan(("offset",), 10),
        LessThanOrEqual(("offset",), 15),
    ]
    rows, left, planned = pushed(servers, *filters)
    assert left == []
    assert planned == 5
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [
        ("b", 1, offset) for offset in range(11, 16)
    ]


def test_some_offsets_are_left_to_spark_but_narrow_what_is_read(servers: str) -> None:
    among = In(("offset",), (7, 9))
    rows, left, planned = pushed(servers, EqualTo(("topic",), "a"), among)
    assert left == [among]
    assert planned == 6
    assert {row["offset"] for row in rows} == {7, 8, 9}


def test_what_is_not_understood_is_left_to_spark(servers: str) -> None:
    unknown = [
        Not(EqualTo(("partition",), 0)),
        EqualTo(("value",), b"x"),
        EqualTo(("timestamp",), datetime(2023, 11, 14, 22)),  # without a zone
        EqualTo(("offset",), None),
    ]
    rows, left, _ = pushed(servers, *unknown)
    assert left == unknown
    assert len(rows) == 2 * 500


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("disorder", [None, DISORDER_MS])
def test_times_give_the_same_rows_as_a_filter(
    servers: str, seed: int, disorder: int | None
) -> None:
    rng = random.Random(seed)
    low, high = sorted(T0_MS + rng.randint(-2000, 60_000) / 10 for _ in range(2))
    above = rng.choice([GreaterThan, GreaterThanOrEqual])
    below = rng.choice([LessThan, LessThanOrEqual])
    options = {} if disorder is None else {"timestampDisorder": f"{disorder}ms"}
    filters = [above(("timestamp",), at(low)), below(("timestamp",), at(high))]
    rows, left, _ = pushed(servers, EqualTo(("topic",), "a"), *filters, **options)
    assert left == []
    compare: dict[type, Callable[[float], bool]] = {
        GreaterThan: lambda stamp: stamp > low,
        GreaterThanOrEqual: lambda stamp: stamp >= low,
        LessThan: lambda stamp: stamp < high,
        LessThanOrEqual: lambda stamp: stamp <= high,
    }
    expected = [
        (index, offset)
        for index in (0, 1)
        for offset, stamp in enumerate(STAMPS[: 300 - 100 * index])
        if compare[above](stamp) and compare[below](stamp)
    ]
    assert [(row["partition"], row["offset"]) for row in rows] == expected


def test_a_lower_bound_saves_reading_and_an_upper_one_if_disorder_is_known(servers: str) -> None:
    one = EqualTo(("topic",), "a"), EqualTo(("partition",), 0)
    late = GreaterThanOrEqual(("timestamp",), at(T0_MS + 2500))
    early = LessThan(("timestamp",), at(T0_MS + 500))
    assert pushed(servers, *one, late)[2] < 70
    assert pushed(servers, *one, early)[2] == 300
    assert pushed(servers, *one, early, timestampDisorder="100ms")[2] < 90


@pytest.mark.parametrize("stamp_ms", [0, -1, -2, -3, -4, -5, -6, -3_600_000])
def test_times_before_1970_are_times(servers: str, stamp_ms: int) -> None:
    """To ListOffsets they would be other questions: for the latest offset, for the earliest."""
    bound = at(stamp_ms)
    rows, left, _ = pushed(servers, GreaterThanOrEqual(("timestamp",), bound))
    assert (len(rows), left) == (2 * 500, [])
    before = LessThan(("timestamp",), bound)
    assert pushed(servers, before, timestampDisorder="0ms")[:2] == ([], [])


def test_a_time_after_everything_reads_nothing(servers: str) -> None:
    rows, _, planned = pushed(servers, GreaterThan(("timestamp",), at(T0_MS + 99_999_999)))
    assert (rows, planned) == ([], 0)
