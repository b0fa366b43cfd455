"""The writers as Spark calls them, against a real broker, without Spark."""

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from runnel.arrow import connections
from runnel.arrow.errors import OptionError, SinkError
from runnel.client import admin
from runnel.client.cluster import Cluster, RefusedError
from runnel.client.partitioner import partition_of
from runnel.errors import ErrorCode
from runnel.spark.writes.producing import Batch, Producing
from runnel.spark.writes.topic_sink import batch_writer, stream_writer
from runnel.testing import RunnelBroker
from runnel.wire.messages.produce import PartitionProduceResponse
from tests.support.spark_rows import options_of, rows, schema

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(scope="module")
def broker() -> Iterator[RunnelBroker]:
    with RunnelBroker({"auto.create.topics.enable": "false"}) as running:
        yield running
        connections.close_all()


def write(broker: RunnelBroker, batches: list[pa.RecordBatch], ddl: str, **more: str) -> Any:  # noqa: ANN401  # what a task would send to the driver
    writer = batch_writer(options_of(broker, **more), schema(ddl), overwrite=False)
    writer = pickle.loads(pickle.dumps(writer))
    message = writer.write(iter(batches))
    writer.commit([pickle.loads(pickle.dumps(message))])
    return message


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keys_values_and_headers_arrive_as_they_are(broker: RunnelBroker, codec: str) -> None:
    topic = f"all-{codec}"
    broker.create_topic(topic, partitions=3)
    keys = [f"k{number}".encode() if number % 3 else None for number in range(500)]
    values = [
        b"" if number == 7 else None if number == 8 else b"v%d" % number for number in range(500)
    ]
    pairs = [
        [{"key": "n", "value": b"%d" % number}, {"key": "ü", "value": None}]
        for number in range(500)
    ]
    batch = pa.record_batch(
        [pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(pairs, HEADERS)],
        names=["key", "value", "headers"],
    )
    ddl = "key binary, value binary, headers headers"
    message = write(broker, [batch], ddl, topic=topic, **{"kafka.compression.type": codec})
    assert message.records == 500
    found = rows(broker, topic)
    wanted = {
        (keys[number], values[number], (("n", b"%d" % number), ("ü", None)))
        for number in range(500)
    }
    assert {
        (row.key, row.value, tuple(row.headers)) for part in found.values() for row in part
    } == wanted
    for at, part in found.items():
        assert all(row.key is None or partition_of(row.key, 3) == at for row in part)
        numbers = [int(row.headers[0][1] or b"") for row in part if row.key is not None]
        assert numbers == sorted(numbers), "the order of a key is lost"


def test_the_column_topic_says_where_each_row_goes(broker: RunnelBroker) -> None:
    for name in ("east", "west"):
        broker.create_topic(name)
    batch = pa.record_batch(
        [pa.array(["east", "west", "east"]), pa.array(["1", "2", "3"])], names=["topic", "value"]
    )
    write(broker, [batch, batch], "topic string, value string")
    assert [row.value for row in rows(broker, "east")[0]] == [b"1", b"3", b"1", b"3"]
    assert [row.value for row in rows(broker, "west")[0]] == [b"2", b"2"]


def test_the_option_topic_goes_before_the_column(broker: RunnelBroker) -> None:
    broker.create_topic("by-option")
    batch = pa.record_batch([pa.array(["elsewhere"]), pa.array(["1"])], names=["topic", "value"])
    write(broker, [batch], "topic string, value string", topic="by-option")
    assert [row.value for row in rows(broker, "by-option")[0]] == [b"1"]


def test_the_column_partition_says_the_partition(broker: RunnelBroker) -> None:
    broker.create_topic("parts", partitions=3)
    columns = [
        pa.array([b"k"] * 4),
        pa.array(["a", "b", "c", "d"]),
        pa.array([2, 0, None, 2], pa.int32()),
    ]
    batch = pa.record_batch(columns, names=["key", "value", "partition"])
    write(broker, [batch], "key binary, value string, partition int", topic="parts")
    found = {at: [row.value for row in part] for at, part in rows(broker, "parts").items()}
    hashed = partition_of(b"k", 3)
    wanted: dict[int, list[bytes]] = {0: [b"b"], 1: [], 2: [b"a", b"d"]}
    wanted[hashed] = sorted([*wanted[hashed], b"c"])
    assert found == wanted


def test_a_partition_that_is_not_there_is_refused(broker: RunnelBroker) -> None:
    broker.create_topic("two", partitions=2)
    batch = pa.record_batch(
        [pa.array(["a"]), pa.array([2], pa.int32())], names=["value", "partition"]
    )
    with pytest.raises(SinkError, match=r"2 is not in the range \[0\.\.\.2\) of topic two"):
        write(broker, [batch], "value string, partition int", topic="two")


def test_rows_without_a_key_are_spread(broker: RunnelBroker) -> None:
    broker.create_topic("spread", partitions=4)
    batch = pa.record_batch([pa.array([b"x" * 1000] * 1000)], names=["value"])
    write(broker, [batch], "value binary", topic="spread")
    counts = [len(part) for part in rows(broker, "spread").values()]
    assert sum(counts) == 1000
    assert min(counts) > 100


def test_a_batch_that_the_topic_refuses_is_parted(broker: RunnelBroker) -> None:
    broker.create_topic("small", config={"max.message.bytes": "20000"})
    values = [b"%06d" % number + b"x" * 1000 for number in range(200)]
    batch = pa.record_batch([pa.array(values)], names=["value"])
    write(broker, [batch], "value binary", topic="small")
    assert [row.value for row in rows(broker, "small")[0]] == values


def test_a_row_that_is_too_large_is_named_with_what_to_do(broker: RunnelBroker) -> None:
    broker.create_topic("tiny", config={"max.message.bytes": "20000"})
    batch = pa.record_batch([pa.array([b"x" * 30_000])], names=["value"])
    with pytest.raises(SinkError, match=r"no row of 300\d\d bytes; raise max\.message\.bytes"):
        write(broker, [batch], "value binary", topic="tiny")


def test_a_row_without_a_topic_is_refused(broker: RunnelBroker) -> None:
    batch = pa.record_batch(
        [pa.array([None], pa.string()), pa.array(["1"])], names=["topic", "value"]
    )
    with pytest.raises(SinkError, match="null topic present in the data"):
        write(broker, [batch], "topic string, value string")


def test_a_missing_topic_is_told_on_the_driver(broker: RunnelBroker) -> None:
    with pytest.raises(SinkError, match="cannot write to topic nowhere: there is no topic nowhere"):
        batch_writer(options_of(broker, topic="nowhere"), schema("value string"), overwrite=False)


def test_more_bytes_than_the_buffer_and_many_batches(broker: RunnelBroker) -> None:
    broker.create_topic("many", partitions=3)
    values = [b"%08d" % number + b"y" * 200 for number in range(30_000)]
    batches = [
        pa.record_batch(
            [pa.array(values[at : at + 5000]), pa.array(values[at : at + 5000])],
            names=["key", "value"],
        )
        for at in range(0, 30_000, 5000)
    ]
    small = {"kafka.batch.size": "50000", "kafka.buffer.memory": "1000000"}
    message = write(broker, batches, "key binary, value binary", topic="many", **small)
    found = rows(broker, "many")
    assert message.records == 30_000
    assert sorted(row.value or b"" for part in found.values() for row in part) == values


def test_partitions_that_are_added_meanwhile_get_no_rows_of_this_task(
    broker: RunnelBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lanes are as many as there were; the leaders are looked up again, and are more."""
    broker.create_topic("grows", partitions=2)
    settle, moved = Producing._settle, 0

    def settle_late(
        self: Producing, batch: Batch, row: PartitionProduceResponse
    ) -> tuple[list[Batch], RefusedError | None]:
        nonlocal moved
        moved += 1
        if moved > 1:
            return settle(self, batch, row)
        with Cluster([("127.0.0.1", broker.port)]) as cluster:
            admin.add_partitions(cluster, "grows", 500)
        return [batch], RefusedError(ErrorCode.NOT_LEADER_OR_FOLLOWER, None, "grows")

    monkeypatch.setattr(Producing, "_settle", settle_late)
    values = [b"%06d" % number for number in range(5000)]
    batches = [
        pa.record_batch(
            [pa.array(values[at : at + 1000]), pa.array(values[at : at + 1000])],
            names=["key", "value"],
        )
        for at in range(0, 5000, 1000)
    ]
    small = {"kafka.buffer.memory": "1000"}
    message = write(broker, batches, "key binary, value binary", topic="grows", **small)
    found = rows(broker, "grows")
    assert (message.records, moved > 1, len(found)) == (5000, True, 500)
    assert sorted(row.value or b"" for at in (0, 1) for row in found[at]) == values


@pytest.mark.parametrize(
    ("ddl", "more", "words"),
    [
        ("value string", {}, "topic option required when no 'topic' attribute is present"),
        ("key string", {"topic": "t"}, "Required attribute 'value' not found"),
        ("value int", {"topic": "t"}, "value attribute unsupported type int. value must be a"),
        ("key int, value string", {"topic": "t"}, "key attribute unsupported type int"),
        ("value string, topic int", {}, "topic attribute unsupported type int"),
        ("value string, partition string", {"topic": "t"}, "partition attribute unsupported type"),
        ("value string, headers string", {"topic": "t"}, "headers attribute unsupported type"),
        ("value string", {"topic": "t", "topik": "x"}, "unknown option topik; did you mean topic"),
        ("value string", {"topic": "t", "kafka.akcs": "1"}, "unknown option kafka.akcs"),
        ("value string", {"topic": "t", "kafka.acks": "0"}, "kafka.acks=0"),
        ("value string", {"topic": "t", "kafka.compression.type": "brotli"}, "brotli is not one"),
        ("value string", {"topic": "t", "kafka.key.serializer": "X"}, "key.serializer"),
        ("value string", {"topic": "t", "kafka.sasl.password": "hush"}, "kafka.sasl.password"),
        ("value string", {"topic": "t", "exactlyOnce": "true"}, "needs the option queryId"),
        ("value string", {"topic": "t", "exactlyOnce": "yes"}, "exactlyOnce=yes is not true or"),
        (
            "value string",
            {"topic": "t", "exactlyOnce": "true", "queryId": "a b"},
            "queryId=a b: up to 100 letters",
        ),
        (
            "value string",
            {"topic": "t", "transactionTimeout": "soon"},
            "transactionTimeout=soon is not a time",
        ),
        ("value string", {"topic": "t", "batchId": "3"}, "batchId=3"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    broker: RunnelBroker, ddl: str, more: dict[str, str], words: str
) -> None:
    with pytest.raises(OptionError) as refused:
        stream_writer(options_of(broker, **more), schema(ddl), overwrite=False)
    assert words in str(refused.value)
    assert "hush" not in str(refused.value)


def test_a_topic_is_never_overwritten(broker: RunnelBroker) -> None:
    with pytest.raises(OptionError, match="only appended"):
        batch_writer(options_of(broker, topic="t"), schema("value string"), overwrite=True)


def test_servers_are_required() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers' must be specified"):
        batch_writer({"topic": "t"}, schema("value string"), overwrite=False)
