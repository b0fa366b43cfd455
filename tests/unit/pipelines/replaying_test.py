"""A table back to a topic: records as they were, each once, whatever is killed when."""

import datetime
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from runnel.arrow.rows import spark_schema
from runnel.pipelines.replaying import Replay, Replayer, ReplayError
from runnel.spark import steps
from runnel.spark.lake import lake_options
from runnel.spark.lake.lake_options import TableError
from runnel.spark.lake.sink import RunnelLake
from runnel.testing import RunnelBroker

SCHEMA = spark_schema(("key", "value", "topic", "partition", "offset", "timestamp", "headers"))
AT = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


class Killed(BaseException):
    """As kill -9 would: nothing is cleaned up."""


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with RunnelBroker() as broker:
        yield broker.bootstrap_servers


def table(folder: Path, first: int, count: int) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    numbers = range(first, first + count)
    rows = [
        {
            "key": b"k%d" % n,
            "value": None if n % 7 == 0 else b"v%d" % n,
            "topic": "orders",
            "partition": n % 3,
            "offset": n,
            "timestamp": AT + datetime.timedelta(minutes=n),
            "headers": [{"key": "h", "value": b"%d" % n}] if n % 2 else None,
        }
        for n in numbers
    ]
    write(folder, SCHEMA, pa.RecordBatch.from_pylist(rows, to_arrow_schema(SCHEMA, timezone="UTC")))


def write(folder: Path, schema: StructType, batch: pa.RecordBatch) -> None:
    lake = RunnelLake({"table": str(folder)}).writer(schema, False)
    lake.commit([lake.write(iter([batch]))])


def messages(bootstrap: str, topic: str) -> list[Any]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "look", "log_level": 0}
    consumer = Consumer(
        {**settings, "isolation.level": "read_committed", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        found.append(message)
    consumer.close()
    return found


def replayer(
    bootstrap: str, folder: Path, topic: str, *, lines: "tuple[int, int] | None" = None
) -> Replayer:
    def ms(minute: int) -> int:
        return int((AT + datetime.timedelta(minutes=minute)).timestamp() * 1000)

    times = (None, None) if lines is None else (ms(lines[0]), ms(lines[1]))
    options = lake_options.parse({"table": str(folder / "t")})
    return Replayer(Replay(options, bootstrap, topic, *times), folder / "notes", lambda: False)


def test_a_time_that_was_counted_from_now_means_the_same_when_it_goes_on(
    bootstrap: str, tmp_path: Path
) -> None:
    create(bootstrap, "relative")
    table(tmp_path / "t", 0, 4)
    options = lake_options.parse({"table": str(tmp_path / "t")})
    begun_ms = int(AT.timestamp() * 1000) + 60_000
    first = Replay(options, bootstrap, "relative", begun_ms, None, 1.0, written="-2h None")
    assert Replayer(first, tmp_path / "notes", lambda: True).turn().lag == 3  # stopped after a row
    later = replace(first, from_ms=begun_ms + 120_000)
    assert Replayer(later, tmp_path / "notes", lambda: False).turn(60).rows == 3


def create(bootstrap: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)


def test_records_are_what_they_were(bootstrap: str, tmp_path: Path) -> None:
    create(bootstrap, "whole")
    table(tmp_path / "t", 0, 20)
    table(tmp_path / "t", 20, 5)
    report = replayer(bootstrap, tmp_path, "whole").turn(60)
    assert (report.rows, report.lag, report.has_more) == (25, 0, False)
    found = messages(bootstrap, "whole")
    assert [message.key() for message in found] == [b"k%d" % n for n in range(25)]
    assert (found[7].value(), found[8].value()) == (None, b"v8")
    assert found[1].timestamp()[1] == int(AT.timestamp() * 1000) + 60_000
    assert found[1].headers() == [
        ("h", b"1"),
        ("replay.topic", b"orders"),
        ("replay.partition", b"1"),
        ("replay.offset", b"1"),
    ]
    assert not (tmp_path / "notes/replay.json").exists()


@pytest.mark.parametrize("step", ["replaying", "replay committed"])
def test_a_kill_loses_and_repeats_nothing(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    topic = f"killed-{step.replace(' ', '-')}"
    create(bootstrap, topic)
    monkeypatch.setattr("runnel.pipelines.replaying.ROWS_PER_TRANSACTION", 10)
    table(tmp_path / "t", 0, 35)
    seen = 0

    def die(reached: str) -> None:
        nonlocal seen
        seen += reached == step
        if reached == step and seen == 2:
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(steps, "reached", die)
        replayer(bootstrap, tmp_path, topic).turn(60)
    table(tmp_path / "t", 35, 5)  # not of this replay
    second = replayer(bootstrap, tmp_path, topic)
    second.turn(60)
    assert second.total == 35
    assert [message.key() for message in messages(bootstrap, topic)] == [
        b"k%d" % n for n in range(35)
    ]


@pytest.mark.parametrize("step", ["replaying", "replay committed"])
def test_a_kill_of_the_broker_is_waited_out(
    start_runnel_broker: Callable[..., RunnelBroker],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    broker = start_runnel_broker()
    create(broker.bootstrap_servers, "again")
    monkeypatch.setattr("runnel.pipelines.replaying.ROWS_PER_TRANSACTION", 10)
    table(tmp_path / "t", 0, 35)

    def strike(reached: str) -> None:
        if reached == step:
            broker.kill()
            broker.start()

    monkeypatch.setattr(steps, "reached", strike)
    replaying = replayer(broker.bootstrap_servers, tmp_path, "again")
    # Not in this thread: no signal would end a call of librdkafka.
    thread = threading.Thread(target=lambda: replaying.turn(60), daemon=True)
    thread.start()
    thread.join(90)
    assert not thread.is_alive(), replaying.done
    found = [message.key() for message in messages(broker.bootstrap_servers, "again")]
    assert found == [b"k%d" % n for n in range(35)]


def test_rows_of_a_time_and_rows_of_columns(bootstrap: str, tmp_path: Path) -> None:
    create(bootstrap, "some")
    table(tmp_path / "t", 0, 20)
    replayer(bootstrap, tmp_path, "some", lines=(5, 8)).turn(60)
    assert [message.key() for message in messages(bootstrap, "some")] == [b"k5", b"k6", b"k7"]
    create(bootstrap, "typed")
    schema = StructType([StructField("id", LongType()), StructField("name", StringType())])
    schema.add(StructField("key", BinaryType()))
    write(tmp_path / "u/t", schema, pa.record_batch({"id": [1], "name": ["ä"], "key": [b"k"]}))
    replayer(bootstrap, tmp_path / "u", "typed").turn(60)
    (message,) = messages(bootstrap, "typed")
    assert (message.key(), json.loads(message.value())) == (b"k", {"id": 1, "name": "ä"})


def test_what_is_not_there_is_said(bootstrap: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="nothing to replay"):
        replayer(bootstrap, tmp_path, "whole")
    table(tmp_path / "t", 0, 1)
    missing = replayer(bootstrap, tmp_path, "missing")
    with pytest.raises(ReplayError, match="topic missing is not there"):
        missing.turn()
    create(bootstrap, "there")  # and the one that was misspelt is not in the way
    table(tmp_path / "t", 1, 1)
    slowly = Replay(
        lake_options.parse({"table": str(tmp_path / "t")}), bootstrap, "there", rows_per_second=1.0
    )
    assert Replayer(slowly, tmp_path / "notes", lambda: True).turn().lag == 1
    with pytest.raises(TableError, match="was begun and not finished"):
        replayer(bootstrap, tmp_path, "whole")
