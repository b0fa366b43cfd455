"""A range read through a broker: the same rows as a consumer sees, whatever happens meanwhile."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from runnel.arrow import connections
from runnel.arrow.fetching import EMPTY_ANSWERS_MAX, _Fetcher
from runnel.arrow.losses import DataLossError, ReadError
from runnel.arrow.ranges import COLUMNS, Range
from runnel.arrow.rows import BATCH_ROWS, arrow_schema
from runnel.arrow.scan import read
from runnel.client.cluster import Cluster, addresses_of
from runnel.client.raw import WireClient
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.testing import RunnelBroker
from runnel.wire.messages.fetch import FetchRequest, PartitionData
from tests.support.spark_topics import (
    T0_MS,
    make_topic,
    numbered,
    remove_topic,
    rows_of,
    scan_of,
    send,
    send_in_transaction,
)


@pytest.fixture(scope="module")
def broker() -> Iterator[RunnelBroker]:
    with RunnelBroker() as running:
        yield running
    connections.close_all()


@pytest.fixture
def servers(broker: RunnelBroker) -> Iterator[str]:
    yield broker.bootstrap_servers
    connections.close_all()


def values(servers: str, piece: Range, **settings: object) -> list[bytes]:
    return [row["value"] for row in rows_of(scan_of(servers, ["value"], **settings), piece)]


def test_a_row_has_the_columns_of_the_connector(servers: str) -> None:
    make_topic(servers, "columns", 2)
    headers = [("a", b"1"), ("b", None)]
    records = [Record(b"k", b"v", T0_MS + 7, headers), Record(None, None, T0_MS)]
    send(servers, "columns", records, partition=1)
    first, second = rows_of(scan_of(servers, COLUMNS), Range("columns", 1, 0, 2))
    assert first == {
        "key": b"k",
        "value": b"v",
        "topic": "columns",
        "partition": 1,
        "offset": 0,
        "timestamp": datetime.fromtimestamp((T0_MS + 7) / 1000, UTC),
        "timestampType": 0,
        "headers": [{"key": "a", "value": b"1"}, {"key": "b", "value": None}],
    }
    assert (second["key"], second["value"], second["headers"]) == (None, None, None)


def test_batches_have_the_schema_that_spark_wants(servers: str) -> None:
    make_topic(servers, "schema")
    send(servers, "schema", numbered(3))
    (batch,) = read(scan_of(servers, COLUMNS), Range("schema", 0, 0, 3))
    assert batch.schema.equals(arrow_schema(COLUMNS))
    assert batch.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")
    assert all(field.nullable for field in batch.schema)
    batch.validate(full=True)


@pytest.mark.parametrize("codec", list(Compression))
def test_ranges_put_together_are_the_whole(servers: str, codec: Compression) -> None:
    topic = f"ranges-{codec.name.lower()}"
    make_topic(servers, topic)
    send(servers, topic, numbered(5000), codec=codec)
    cuts = [0, 1, 2, 777, 778, 4999, 5000]
    found = [
        value
        for start, end in pairwise(cuts)
        for value in values(servers, Range(topic, 0, start, end))
    ]
    assert found == [record.value for record in numbered(5000)]


def test_only_what_is_wanted_in_the_order_wanted(servers: str) -> None:
    make_topic(servers, "order")
    send(servers, "order", numbered(2))
    (batch,) = read(scan_of(servers, ["offset", "topic", "key"]), Range("order", 0, 0, 2))
    assert batch.to_pydict() == {
        "offset": [0, 1],
        "topic": ["order", "order"],
        "key": [b"k0", b"k1"],
    }


def test_batches_are_bounded_and_in_order(servers: str) -> None:
    make_topic(servers, "many")
    send(servers, "many", numbered(100_000))
    scan = scan_of(servers, ["offset"], client={"max.partition.fetch.bytes": "1000000"})
    batches = list(read(scan, Range("many", 0, 0, 100_000)))
    assert max(batch.num_rows for batch in batches) <= BATCH_ROWS
    offsets = [offset for batch in batches for offset in batch["offset"].to_pylist()]
    assert offsets == list(range(100_000))


def test_log_append_time_is_told(servers: str) -> None:
    make_topic(servers, "appended", configs={"message.timestamp.type": "LogAppendTime"})
    send(servers, "appended", numbered(1))
    (row,) = rows_of(scan_of(servers), Range("appended", 0, 0, 1))
    assert row["timestampType"] == 1
    assert abs(row["timestamp"] - datetime.now(UTC)).total_seconds() < 3600


def test_aborted_transactions_are_hidden_from_readers_of_what_is_committed(servers: str) -> None:
    make_topic(servers, "tx")
    send_in_transaction(servers, "tx", [b"a", b"b"], commit=True)
    send_in_transaction(servers, "tx", [b"c", b"d"], commit=False)
    send(servers, "tx", [Record(None, b"e", T0_MS)])
    piece = Range("tx", 0, 0, 7)  # two markers among them
    assert values(servers, piece, read_committed=True) == [b"a", b"b", b"e"]
    assert values(servers, piece) == [b"a", b"b", b"c", b"d", b"e"]


def test_a_range_may_end_with_a_marker(servers: str) -> None:
    make_topic(servers, "marker")
    send_in_transaction(servers, "marker", [b"a"], commit=True)
    assert values(servers, Range("marker", 0, 0, 2)) == [b"a"]
    assert values(servers, Range("marker", 0, 1, 2)) == []


def test_an_empty_range_asks_nobody() -> None:
    assert values("localhost:1", Range("nowhere", 0, 5, 5)) == []


def test_a_restart_of_the_broker_is_waited_for() -> None:
    with RunnelBroker() as broker:
        servers = broker.bootstrap_servers
        make_topic(servers, "again")
        send(servers, "again", numbered(20_000, size=100))
        small = {"max.partition.fetch.bytes": "100000"}
        batches = read(scan_of(servers, client=small), Range("again", 0, 0, 20_000))
        rows = next(batches).num_rows
        broker.kill()
        broker.start()
        rows += sum(batch.num_rows for batch in batches)
        assert rows == 20_000
        connections.close_all()


def test_an_answer_is_given_though_the_next_request_cannot_be_sent(
    servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker may die between the two: what it had sent was read and is not asked for again."""
    make_topic(servers, "cut")
    send(servers, "cut", numbered(20_000, size=100))
    fetches = 0
    whole = WireClient.send

    def send_or_fail(self: WireClient, request: object, *rest: int) -> None:
        nonlocal fetches
        fetches += isinstance(request, FetchRequest)
        if isinstance(request, FetchRequest) and fetches in (2, 4, 5):
            raise ConnectionResetError("cut by the test")
        whole(self, request, *rest)

    monkeypatch.setattr(WireClient, "send", send_or_fail)
    small = {"max.partition.fetch.bytes": "100000"}
    rows = rows_of(scan_of(servers, ["offset"], client=small), Range("cut", 0, 0, 20_000))
    assert fetches > 6
    assert [row["offset"] for row in rows] == list(range(20_000))


def test_a_task_that_stops_early_leaves_nothing_for_the_next(servers: str) -> None:
    make_topic(servers, "early")
    send(servers, "early", numbered(50_000))
    scan = scan_of(servers, ["offset"], client={"max.partition.fetch.bytes": "100000"})
    batches = read(scan, Range("early", 0, 0, 50_000))
    next(batches)
    batches.close()  # type: ignore[attr-defined]  # a generator, as Spark's task drops it
    assert sum(batch.num_rows for batch in read(scan, Range("early", 0, 0, 50_000))) == 50_000


def test_nobody_there_is_an_error_that_names_the_place() -> None:
    with pytest.raises(ReadError, match=r"nowhere-3 from offset 5 .*kafka.bootstrap.servers"):
        values("localhost:1", Range("nowhere", 3, 5, 9), poll_timeout_ms=200)


def test_offsets_that_are_gone_are_a_loss(servers: str) -> None:
    make_topic(servers, "short")
    send(servers, "short", numbered(3))
    with pytest.raises(DataLossError, match=r"Some data may have been lost.*short-0.*0 to 2"):
        values(servers, Range("short", 0, 10, 20))
    assert values(servers, Range("short", 0, 10, 20), fail_on_data_loss=False) == []


def test_an_end_beyond_the_partition_is_a_loss_after_a_while(servers: str) -> None:
    make_topic(servers, "beyond")
    send(servers, "beyond", numbered(3))
    piece = Range("beyond", 0, 1, 10)
    with pytest.raises(DataLossError, match=r"beyond-0.*ends at 3"):
        values(servers, piece, poll_timeout_ms=300)
    found = values(servers, piece, poll_timeout_ms=300, fail_on_data_loss=False)
    assert found == [b"0000000001", b"0000000002"]


def test_a_topic_that_was_deleted_is_a_loss(servers: str) -> None:
    make_topic(servers, "gone")
    remove_topic(servers, "gone")
    piece = Range("gone", 0, 0, 10)
    with pytest.raises(DataLossError, match="no such topic"):
        values(servers, piece, poll_timeout_ms=300)
    assert values(servers, piece, poll_timeout_ms=300, fail_on_data_loss=False) == []


def test_a_wrong_client_option_is_named(servers: str) -> None:
    bad = {"max.partition.fetch.bytes": "many"}
    with pytest.raises(connections.ClientOptionError, match=r"kafka\.max\.partition\.fetch\.bytes"):
        values(servers, Range("short", 0, 0, 1), client=bad)


def test_a_topic_made_anew_is_a_loss(servers: str) -> None:
    make_topic(servers, "anew")
    with Cluster(addresses_of(servers)) as cluster:
        was = cluster.topic("anew").topic_id
    remove_topic(servers, "anew")
    make_topic(servers, "anew")
    send(servers, "anew", numbered(10))
    piece = Range("anew", 0, 0, 10, topic_id=was)
    with pytest.raises(DataLossError, match=r"anew-0.*deleted and made anew"):
        values(servers, piece, poll_timeout_ms=300)
    assert values(servers, piece, poll_timeout_ms=300, fail_on_data_loss=False) == []


def empty_answers(monkeypatch: pytest.MonkeyPatch, count: int, throttled_ms: int = 0) -> None:
    """As of Kafka, where records of remote storage do not come in time."""
    whole, left = _Fetcher._next_answer, count

    def slow(self: _Fetcher) -> tuple[PartitionData, int]:
        nonlocal left
        row, told_ms = whole(self)
        if left:
            left, row.records = left - 1, b""
        return row, told_ms or throttled_ms

    monkeypatch.setattr(_Fetcher, "_next_answer", slow)


def test_empty_answers_do_not_end_a_range(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_topic(servers, "remote")
    send(servers, "remote", numbered(10))
    piece = Range("remote", 0, 0, 10)
    empty_answers(monkeypatch, 2 * EMPTY_ANSWERS_MAX)
    assert len(values(servers, piece)) == 10
    empty_answers(monkeypatch, 10_000)
    with pytest.raises(DataLossError, match=r"remote-0.*gives none of them within 300 ms"):
        values(servers, piece, poll_timeout_ms=300)
    assert values(servers, piece, poll_timeout_ms=300, fail_on_data_loss=False) == []


def test_a_quota_is_waited_for_and_never_a_loss(
    servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(servers, "quota", configs={"cleanup.policy": "compact"})
    send(servers, "quota", numbered(10))
    piece = Range("quota", 0, 0, 10)
    empty_answers(monkeypatch, 2 * EMPTY_ANSWERS_MAX, throttled_ms=1)
    assert len(values(servers, piece)) == 10
    empty_answers(monkeypatch, 100_000, throttled_ms=1)
    with pytest.raises(ReadError, match=r"quota-0: THROTTLING_QUOTA_EXCEEDED; raise kafkaConsumer"):
        values(servers, piece, poll_timeout_ms=300, fail_on_data_loss=False)


def test_empty_answers_of_a_compacted_topic_end_a_range(
    servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(servers, "swept", configs={"cleanup.policy": "compact,delete"})
    send(servers, "swept", numbered(10))
    empty_answers(monkeypatch, EMPTY_ANSWERS_MAX)
    assert values(servers, Range("swept", 0, 0, 10)) == []


def test_what_was_deleted_at_the_front_is_a_loss_and_the_rest_is_there(servers: str) -> None:
    make_topic(servers, "front")
    send(servers, "front", numbered(10))
    admin = AdminClient({"bootstrap.servers": servers})
    (deleted,) = admin.delete_records([TopicPartition("front", 0, 4)]).values()
    deleted.result(30)
    piece = Range("front", 0, 1, 7)
    with pytest.raises(DataLossError, match=r"offsets 1 to 3 of front-0.*offsets 4 to 9"):
        values(servers, piece)
    found = values(servers, piece, fail_on_data_loss=False)
    assert found == [b"0000000004", b"0000000005", b"0000000006"]


def test_an_open_transaction_in_the_range_is_named(servers: str) -> None:
    make_topic(servers, "open")
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "open"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("open", b"a", partition=0)
    producer.flush(30)
    with pytest.raises(ReadError, match=r"open-0 from offset 0 .*open transaction.*offset 0"):
        values(servers, Range("open", 0, 0, 1), read_committed=True, poll_timeout_ms=300)
    producer.abort_transaction(30)
