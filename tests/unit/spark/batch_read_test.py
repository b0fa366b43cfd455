"""A batch read without Spark: which offsets it comes to, and what it says of those not there."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import (
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from runnel.arrow import connections
from runnel.arrow.errors import OptionError, SourceError
from runnel.arrow.losses import DataLossError
from runnel.client.cluster import Cluster, addresses_of
from runnel.native.columns import Record
from tests.support.spark_brokers import Broker, spark_broker
from tests.support.spark_readers import batch_reader, batch_rows, pieces
from tests.support.spark_topics import (
    T0_MS,
    delete_records,
    make_topic,
    numbered,
    remove_topic,
    send,
    send_in_transaction,
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with spark_broker() as running:
        make_topic(running.bootstrap_servers, "orders", 2)
        send(running.bootstrap_servers, "orders", numbered(10))
        send(running.bootstrap_servers, "orders", numbered(4, first=100), partition=1)
        yield running


@pytest.fixture
def servers(broker: Broker) -> Iterator[str]:
    yield broker.bootstrap_servers
    connections.close_all()


def spans(servers: str, **options: object) -> list[tuple[int, int, int]]:
    reader = batch_reader(servers, {"subscribe": "orders", **options})
    return [(each.partition, each.start, each.end) for each in pieces(reader.partitions())]


def test_by_default_everything_is_read(servers: str) -> None:
    assert spans(servers) == [(0, 0, 10), (1, 0, 4)]
    rows = batch_rows(servers, {"subscribe": "orders"})
    assert [row["value"] for row in rows] == [r.value for r in numbered(10)] + [
        r.value for r in numbered(4, first=100)
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": '{"orders":{"0":3,"1":-2}}'}, [(0, 3, 10), (1, 0, 4)]),
        ({"endingOffsets": '{"orders":{"0":3,"1":-1}}'}, [(0, 0, 3), (1, 0, 4)]),
        ({"startingTimestamp": T0_MS + 8}, [(0, 8, 10), (1, 0, 4)]),
        ({"endingTimestamp": T0_MS + 8}, [(0, 0, 8)]),
        (
            {"startingTimestamp": T0_MS + 102, "startingOffsetsByTimestampStrategy": "latest"},
            [(1, 2, 4)],
        ),
        (
            {"endingOffsetsByTimestamp": f'{{"orders":{{"0":{T0_MS + 2},"1":{T0_MS + 500}}}}}'},
            [(0, 0, 2), (1, 0, 4)],
        ),
        ({"minPartitions": 4}, [(0, 0, 3), (0, 3, 6), (0, 6, 10), (1, 0, 4)]),
        ({"maxRecordsPerPartition": 5}, [(0, 0, 5), (0, 5, 10), (1, 0, 4)]),
    ],
)
def test_where_a_read_begins_and_ends(
    servers: str, options: dict[str, object], expected: list[tuple[int, int, int]]
) -> None:
    assert spans(servers, **options) == expected


def test_partitions_can_be_assigned(servers: str) -> None:
    rows = batch_rows(servers, {"assign": '{"orders":[1]}'})
    assert {row["partition"] for row in rows} == {1}


def test_a_pattern_finds_topics_but_no_internal_ones(servers: str) -> None:
    make_topic(servers, "other")
    reader = batch_reader(servers, {"subscribePattern": "rde"})
    topics = {each.topic for each in pieces(reader.partitions())}
    assert topics == {"orders"}
    none = batch_reader(servers, {"subscribePattern": "^_"})
    assert none.partitions() == []


def test_with_nothing_to_read_spark_hands_over_an_empty_partition(servers: str) -> None:
    reader = batch_reader(servers, {"subscribePattern": "nothing-is-called-this"})
    assert list(reader.read(InputPartition(None))) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"subscribe": "order"}, "there is no topic order; did you mean orders?"),
        ({"assign": '{"orders":[7]}'}, "topic orders has no partition 7; it has 2"),
        (
            {"subscribe": "orders", "startingOffsets": '{"orders":{"0":1}}'},
            "missing: orders-1",
        ),
        (
            {"subscribe": "orders", "startingTimestamp": T0_MS, "endingTimestamp": T0_MS - 9999999},
            "",
        ),
        (
            {"subscribe": "orders", "startingOffsets": '{"orders":{"0":11,"1":0}}'},
            "start offset 11 is greater than the resolved end offset 10",
        ),
        (
            {"subscribe": "orders", "endingOffsets": '{"orders":{"0":99,"1":0}}'},
            "orders-0 ends at 10, not at 99",
        ),
    ],
)
def test_what_is_not_there_is_told_on_the_driver(
    servers: str, options: dict[str, object], says: str
) -> None:
    if not says:  # both before the first record: empty, no error
        assert batch_reader(servers, options).partitions() == []
        return
    with pytest.raises((SourceError, DataLossError)) as caught:
        batch_reader(servers, options).partitions()
    assert says in str(caught.value)


def test_a_time_that_nothing_is_as_new_as_is_an_error_unless_told(servers: str) -> None:
    with pytest.raises(OptionError, match=r"No offset matched.*orders-0"):
        spans(servers, startingTimestamp=T0_MS + 50)


def test_expired_offsets_fail_or_are_skipped(servers: str) -> None:
    make_topic(servers, "expired")
    send(servers, "expired", numbered(10))
    with Cluster(addresses_of(servers)) as cluster:
        delete_records(cluster, "expired", {0: 6})
    options = {"subscribe": "expired", "startingOffsets": '{"expired":{"0":2}}'}
    with pytest.raises(DataLossError, match="expired-0 begins at 6, 2 was to be read"):
        batch_reader(servers, options).partitions()
    rows = batch_rows(servers, {**options, "failOnDataLoss": "false"})
    assert [row["offset"] for row in rows] == [6, 7, 8, 9]


def test_offsets_of_a_topic_that_was_made_anew_are_refused(servers: str) -> None:
    make_topic(servers, "anew")
    options = {
        "subscribe": "anew",
        "startingOffsets": '{"anew":{"0":0},"@topicIds":{"anew":"AAAAAAAAAAAAAAAAAAAAAQ"}}',
    }
    with pytest.raises(SourceError, match="topic anew was deleted and made anew"):
        batch_reader(servers, options).partitions()


def test_an_unreachable_broker_is_told_within_bounds() -> None:
    options = {"subscribe": "orders", "kafka.default.api.timeout.ms": "300"}
    with pytest.raises(SourceError, match=r"127\.0\.0\.1:9: no broker answers"):
        batch_reader("127.0.0.1:9", options).partitions()


def test_read_committed_leaves_out_what_was_aborted(servers: str) -> None:
    make_topic(servers, "tx")
    send_in_transaction(servers, "tx", [b"kept"], commit=True)
    send_in_transaction(servers, "tx", [b"aborted"], commit=False)
    options: dict[str, Any] = {"subscribe": "tx"}
    assert {row["value"] for row in batch_rows(servers, options)} == {b"kept", b"aborted"}
    for name in ("isolation", "kafka.isolation.level"):
        rows = batch_rows(servers, {**options, name: "read_committed"})
        assert [row["value"] for row in rows] == [b"kept"]


def test_a_schema_prunes_columns_in_its_own_order(servers: str) -> None:
    schema = StructType([StructField("offset", LongType()), StructField("key", BinaryType())])
    rows = batch_rows(servers, {"subscribe": "orders"}, schema)
    assert list(rows[0].items()) == [("offset", 0), ("key", b"k0")]


@pytest.mark.parametrize(
    ("field", "says"),
    [
        (StructField("ofset", LongType()), "there is no column ofset; did you mean offset?"),
        (StructField("offset", StringType()), "column offset is bigint, not string"),
        (StructField("offset", LongType(), nullable=False), "column offset must be nullable"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(servers: str, field: StructField, says: str) -> None:
    with pytest.raises(OptionError) as caught:
        batch_reader(servers, {"subscribe": "orders"}, StructType([field]))
    assert says in str(caught.value)


def test_headers_are_there_if_asked_for(servers: str) -> None:
    make_topic(servers, "headers")
    send(servers, "headers", [Record(None, b"v", T0_MS, [("h", b"1")])])
    (row,) = batch_rows(servers, {"subscribe": "headers", "includeHeaders": "true"})
    assert row["headers"] == [{"key": "h", "value": b"1"}]
    (row,) = batch_rows(servers, {"subscribe": "headers"})
    assert "headers" not in row


def test_a_topic_deleted_between_is_gone(servers: str) -> None:
    make_topic(servers, "short-lived")
    remove_topic(servers, "short-lived")
    with pytest.raises(SourceError, match="there is no topic short-lived"):
        batch_reader(servers, {"subscribe": "short-lived"}).partitions()
