"""Where the same assertions are made of Spark's Kafka connector and of Runnel's source.

A stage is a session, one of the formats `kafka` and `runnel`, and a broker of either kind. A case
(`spark_cases.py` and the others) does something on a stage, asserts what has to come of it, and
returns what it saw, without anything that differs between stages by its nature: so that what the
connector makes of Kafka can be compared with what Runnel's source makes of Runnel.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader

PATIENCE_S = 60.0
FIRST_MS = 1_790_000_000_000  # a time in 2026, the same on every stage
KEPT = {"retention.ms": "-1"}  # whatever the clock says
COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]

Header = tuple[str, bytes | None]


class Sent(NamedTuple):
    """A record as it was sent, at the place that it was given."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[Header, ...]


@dataclass
class Stage:
    spark: "SparkSession"
    format: str  # kafka or runnel
    bootstrap: str
    folder: Path  # for checkpoints
    _names: dict[str, str] = field(default_factory=dict)  # of topics here: as the case calls them

    def topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """A new topic; the same broker may be another stage's too."""
        here = f"{name}-{self.format}-{os.urandom(3).hex()}"
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        topic = NewTopic(here, partitions, 1, config={**KEPT, **(config or {})})
        admin.create_topics([topic])[here].result(PATIENCE_S)
        self._names[here] = name
        return here

    def plain(self, text: str) -> str:
        """With the names of topics as the case calls them."""
        for here, name in self._names.items():
            text = text.replace(here, name)
        return text

    def send(
        self, topic: str, per_partition: int, partitions: int = 1, first: int = 0
    ) -> list[Sent]:
        """Records of every kind: without key, without value, with headers, one of them null."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, "log_level": 0})
        sent = []
        for offset in range(first, first + per_partition):
            for partition in range(partitions):
                record = make(partition, offset)
                producer.produce(
                    topic,
                    key=record.key,
                    value=record.value,
                    partition=partition,
                    timestamp=record.timestamp_ms,
                    headers=list(record.headers),
                )
                sent.append(record)
        assert producer.flush(PATIENCE_S) == 0, "not everything was acknowledged"
        return sorted(sent)

    def transact(self, topic: str, values: Sequence[str], commit: bool) -> None:
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "transactional.id": f"t-{topic}", "log_level": 0}
        )
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value=value.encode(), partition=0, timestamp=FIRST_MS)
        producer.flush(PATIENCE_S)
        if commit:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)

    def delete_records(self, topic: str, before: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        place = TopicPartition(topic, 0, before)
        for future in admin.delete_records([place]).values():
            future.result(PATIENCE_S)

    def read(self, **options: object) -> "DataFrame":
        """Options with `_` for `.`; `kafka.bootstrap.servers` is there."""
        return self.spark.read.format(self.format).options(**self.options(options)).load()

    def options(self, options: Mapping[str, object]) -> dict[str, Any]:
        named = {name.replace("_", "."): str(value) for name, value in options.items()}
        return {"kafka.bootstrap.servers": self.bootstrap, **named}

    def stream(self, **options: object) -> "DataStreamReader":
        """A stream of Runnel's has to have a name; that is the one difference to the connector."""
        if self.format == "runnel":
            options.setdefault("queryId", f"q-{os.urandom(4).hex()}")
        return self.spark.readStream.format(self.format).options(**self.options(options))

    def drain(self, stream: "DataStreamReader", checkpoint: str) -> "Drained":
        """What one run until now gives: rows, and the offsets at which each batch ended."""
        rows: list[tuple[object, ...]] = []

        def keep(batch: "DataFrame", number: int) -> None:
            rows.extend(rows_of(self, batch))

        query: StreamingQuery = (
            stream.load()
            .writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(self.folder / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(round(PATIENCE_S)), "the stream did not come to its end"
        finally:
            query.stop()
        batches = [
            self.offsets(progress["sources"][0]["endOffset"])
            for progress in query.recentProgress
            if progress["numInputRows"]
        ]
        return Drained(sorted(rows, key=lambda row: row[2:5]), batches)

    def offsets(self, text: str | Mapping[str, Any]) -> dict[str, dict[str, int]]:
        """As a checkpoint has them; Runnel's carry more beside the topics."""
        found = json.loads(text) if isinstance(text, str) else text
        return {self._names[name]: found[name] for name in sorted(found) if name in self._names}


class Drained(NamedTuple):
    rows: list[tuple[object, ...]]
    batches: list[dict[str, dict[str, int]]]


class Case(NamedTuple):
    name: str
    run: Callable[[Stage], object]


def make(partition: int, offset: int) -> Sent:
    key = None if offset % 5 == 0 else f"key {offset % 11}".encode()
    value = None if offset % 7 == 3 else f"value {offset} of {partition}".encode()
    headers: tuple[Header, ...] = ()
    if offset % 3 == 0:
        headers = (("trace", str(offset).encode()), ("null", None), ("trace", b"again \xff"))
    return Sent(partition, offset, key, value, FIRST_MS + 1000 * offset + partition, headers)


def rows_of(stage: Stage, frame: "DataFrame", *more: str) -> list[tuple[object, ...]]:
    """All columns in the order of places, names of topics as the case calls them."""
    named = [name if name != "timestamp" else "unix_millis(timestamp) AS ms" for name in COLUMNS]
    found = frame.selectExpr(*named, *more).orderBy("topic", "partition", "offset").collect()
    return [
        tuple(
            stage.plain(value) if isinstance(value, str) else _bytes(value) for value in tuple(row)
        )
        for row in found
    ]


def _bytes(value: object) -> object:
    return bytes(value) if isinstance(value, bytearray) else value


def as_row(topic: str, record: Sent) -> tuple[object, ...]:
    """The row that has to come of a record."""
    partition, offset, key, value, timestamp_ms, _ = record
    return (key, value, topic, partition, offset, timestamp_ms, 0)


def refusal(act: Callable[[], object], *words: str) -> str:
    """Runs what has to fail, and gives the words that the error has of those that it must have."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        act()
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        missing = [word for word in words if not re.search(word, text, re.IGNORECASE)]
        assert not missing, f"the error does not say {missing}: {text[:600]}"
        return "refused"
    raise AssertionError("it was not refused")
