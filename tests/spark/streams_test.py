"""Windows, sessions and duplicates in Spark equal what plain Python computes of the records."""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from runnel.pipelines.kinds.dedup import first_ones, in_order
from runnel.pipelines.kinds.sessions import sessions
from runnel.pipelines.kinds.traffic import traffic
from runnel.pipelines.streams.identity import parse_by
from runnel.pipelines.streams.session_intervals import Session, merged
from runnel.pipelines.streams.storage_report import Retention, look, scanned, summed_up
from runnel.pipelines.streams.traffic_windows import Rules, Traffic
from runnel.spark.reads.source import RunnelDataSource
from tests.spark.conftest import MakeTopic
from tests.support.mixed_log import MixedWriter, wanted
from tests.support.process import BrokerProcess
from tests.support.traffic import Seen, windows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    MakeStream = Callable[[str], DataFrame]

KEPT = {"retention.ms": "-1"}  # the records are years old
BATCH = 400  # offsets in a batch, so that there are several


@pytest.fixture(scope="module", autouse=True)
def registered(spark: "SparkSession") -> None:
    spark.dataSource.register(RunnelDataSource)


@pytest.fixture
def stream(spark: "SparkSession", broker: BrokerProcess) -> "MakeStream":
    def make(topic: str) -> "DataFrame":
        options = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "subscribe": topic,
            "queryId": topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(BATCH),
            "includeHeaders": "true",
            "isolation": "read_committed",
        }
        return spark.readStream.format("runnel").options(**options).load()

    return make


def run(rows: "DataFrame", folder: Path) -> "list[Row]":
    """All that the stream has, in several batches."""
    found: list[Row] = []
    query = (
        rows.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return found


def test_traffic_equals_plain_python(
    broker: BrokerProcess,
    make_topic: MakeTopic,
    stream: "MakeStream",
    tmp_path: Path,
) -> None:
    """Of a log with every codec, and transactions that were committed and aborted."""
    topic = make_topic("traffic", config=KEPT)
    writer = MixedWriter(broker.bootstrap, topic, seed=3, keyed=False)
    writer.write(80)
    writer.leave_open()
    records = [
        Seen(at_ms, len(key or b"") + len(value or b""), None if key is None else key.decode())
        for _, key, value, at_ms, _ in wanted(broker.bootstrap, topic).committed
    ]
    rules = Rules(window_ms=600_000, late_after_ms=30_000_000, labels_max=30)
    rows = run(traffic(stream(topic), rules, "key", updates=False), tmp_path)
    found = [
        Traffic(
            round(row.window_start.timestamp() * 1000),
            row.label,
            *(row.records, row.bytes, row.p50_bytes, row.p99_bytes, row.late, row.final),
        )
        for row in rows
    ]
    assert len(records) > 2 * BATCH and found
    assert Counter(found) == Counter(windows_of(records, rules))
    assert {(row.topic, row.partition) for row in rows} == {(topic, 0)}


def test_sessions_equal_plain_python(
    producer: Producer, make_topic: MakeTopic, stream: "MakeStream", tmp_path: Path
) -> None:
    topic = make_topic("clicks", 2, KEPT)
    rng = random.Random(4)
    now, gap_ms, delay_ms = 1_700_000_000_000, 60_000, 300_000
    times: defaultdict[str, list[int]] = defaultdict(list)
    for count in range(1000):
        now += rng.randrange(8000)
        user, at_ms = f"user {rng.randrange(30)}", now - rng.randrange(delay_ms // 4)
        times[user].append(at_ms)
        value = json.dumps({"user": {"id": user}})
        producer.produce(topic, value, partition=count % 2, timestamp=at_ms)
    producer.flush(30)
    rows = run(
        sessions(
            stream(topic),
            by="json:user.id",
            time="sql:timestamp",
            gap_ms=gap_ms,
            watermark_ms=delay_ms,
        ),
        tmp_path,
    )
    newest = max(at for found in times.values() for at in found)
    over = [
        (user, session)
        for user, found in times.items()
        for session in merged([Session(at, at, 1) for at in found], gap_ms)
        if session.end_ms + gap_ms < newest - delay_ms
    ]
    found = [
        (
            row.key,
            Session(
                round(row.session_start.timestamp() * 1000),
                round(row.session_end.timestamp() * 1000),
                row.events,
            ),
        )
        for row in rows
    ]
    assert len(over) > 300
    assert Counter(found) == Counter(over)


@pytest.mark.parametrize("by", ["json:id", "header:id"])
def test_each_record_stays_once(
    producer: Producer,
    make_topic: MakeTopic,
    stream: "MakeStream",
    tmp_path: Path,
    by: str,
) -> None:
    topic = make_topic("repeated", 3, KEPT)
    rng = random.Random(by)
    for _ in range(600):
        number = str(rng.randrange(150))
        producer.produce(
            topic,
            json.dumps({"id": number}),
            number if by == "key" else str(rng.random()),
            headers={"id": number.encode()},
            timestamp=1_700_000_000_000 + rng.randrange(10_000_000),
        )
        if rng.random() < 0.01:  # no key, no header, no JSON, which is nobody's duplicate
            producer.produce(topic, b"none" if by != "value" else None)
    producer.flush(30)
    rows = run(
        first_ones(stream(topic), parse_by(by), 3_600_000, by_arrival=True).select(
            "key", "value", "headers"
        ),
        tmp_path,
    )
    numbers = Counter(
        json.loads(row.value)["id"] for row in rows if row.value not in (None, b"none")
    )
    assert set(numbers.values()) == {1}
    assert len(numbers) == len({str(number) for number in numbers}) >= 140
    others = [row for row in rows if row.value in (None, b"none")]
    assert others


@pytest.mark.parametrize("keeps_partition", [False, True])
def test_a_batch_is_written_in_the_order_of_offsets(
    spark: "SparkSession", keeps_partition: bool
) -> None:
    rng = random.Random(2)
    places = [(partition, offset) for partition in range(2) for offset in range(100)]
    rng.shuffle(places)
    columns = "topic string, partition int, offset long, key binary, value binary, headers string"
    rows = [
        ("t", partition, offset, b"%d" % (partition * 7 + offset % 7), b"%d" % offset, None)
        for partition, offset in places
    ]
    written = in_order(spark.createDataFrame(rows, columns), keeps_partition=keeps_partition)
    assert ("partition" in written.columns) == keeps_partition
    order: defaultdict[bytes, list[int]] = defaultdict(list)
    for row in written.collect():
        order[bytes(row.key)].append(int(row.value))
    assert sum(map(len, order.values())) == len(rows)
    assert all(found == sorted(found) for found in order.values())


def test_storage_equals_plain_python(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    """With every codec, and transactions that ended either way, over several segments and days."""
    topic = make_topic("stored", config=KEPT | {"segment.bytes": "1048576"})
    writer = MixedWriter(broker.bootstrap, topic, seed=9, keyed=False)
    writer.write(150)
    writer.leave_open()
    days: defaultdict[date | None, list[tuple[bytes | None, bytes | None]]] = defaultdict(list)
    for _, key, value, at_ms, _ in wanted(broker.bootstrap, topic).all:
        days[None].append((key, value))
        days[datetime.fromtimestamp(at_ms / 1000, UTC).date()].append((key, value))
    folders = [str(broker.data_dir)]
    files = look(folders, re.compile(f"^{topic}$"), Retention(0, -1), now_ms=2_000_000_000_000)
    segments = files[topic].segments
    assert len(segments) > 1
    assert files[topic].freed_bytes == sum(each.size_bytes for each in segments)
    scan = scanned(spark, segments, 2)
    rows = {row.day: row for row in summed_up(scan, exact=True).collect()}
    nearly = {row.day: row for row in summed_up(scan, exact=False).collect()}
    assert {day: row.records for day, row in rows.items() if row.records} == {
        day: len(found) for day, found in days.items()
    }
    for day, found in days.items():
        row = rows[day]
        assert row.keys == len({key for key, _ in found if key is not None})
        assert row.different_records == len(set(found))
        assert row.message_bytes == sum(len(k or b"") + len(v or b"") for k, v in found)
        assert nearly[day].different_records == pytest.approx(row.different_records, rel=0.1)
    assert rows[None].disk_bytes == sum(each.size_bytes for each in segments)
