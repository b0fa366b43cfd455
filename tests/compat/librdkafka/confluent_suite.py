"""confluent-kafka against a broker: create, produce, read back by assignment, list and delete.

Run as `python -m tests.compat.librdkafka.confluent_suite HOST:PORT`. Partitions are assigned; no
group is joined and no offset committed.
"""

import sys
import time
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic

from tests.compat.checks import (
    COMPRESSIONS,
    FIRST_TIMESTAMP_MS,
    PATIENCE_S,
    Checks,
    Placed,
    Record,
    make_record,
    require_equal,
    require_soon,
    topic_name,
)

COUNT = 2_000
PARTITION_COUNT = 2

# The package is typed, these three functions of it are not.
EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
MAX_TIMESTAMP: OffsetSpec = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]


class Suite:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def create(self, purpose: str, config: Mapping[str, str] | None = None) -> str:
        topic = topic_name("confluent", purpose)
        new = NewTopic(topic, PARTITION_COUNT, 1, config=dict(config or {}))
        _result(self._admin.create_topics([new])[topic])
        return topic

    def describes_cluster(self) -> None:
        cluster = self._admin.describe_cluster(request_timeout=PATIENCE_S).result(PATIENCE_S)
        assert len(cluster.nodes) == 1, cluster.nodes
        assert cluster.cluster_id, "no cluster id"

    def refuses_topics(self) -> None:
        topic = self.create("twice")
        again = self._admin.create_topics([NewTopic(topic, 1, 1)])[topic]
        _require_error(again, KafkaError.TOPIC_ALREADY_EXISTS)
        bad = self._admin.create_topics([NewTopic("no spaces", 1, 1)])["no spaces"]
        _require_error(bad, KafkaError.TOPIC_EXCEPTION)

    def reads_back_equal(self, settings: Mapping[str, str | bool]) -> None:
        """Records over both partitions, each found again at the place it was acknowledged for."""
        topic = self.create("-".join(str(value) for value in settings.values()))
        sent = self._produce(topic, COUNT, settings)
        require_equal(sent, self._read(topic, len(sent)))

    def keeps_nulls(self) -> None:
        topic = self.create("nulls")
        records = [
            Record(None, b"no key", FIRST_TIMESTAMP_MS, ()),
            Record(b"no value", None, FIRST_TIMESTAMP_MS + 1, (("", b""),)),
            Record(b"", b"", FIRST_TIMESTAMP_MS + 2, (("schlüssel", "wert ✓".encode()),)),
        ]
        sent: list[Placed] = []
        producer = self._producer({})
        for record in records:
            _send(producer, topic, record, sent, partition=0)
        producer.flush(PATIENCE_S)
        require_equal(sent, self._read(topic, len(records)))

    def lists_offsets(self) -> None:
        topic = self.create("offsets")
        self._fill(topic, 1_000)
        middle_ms = FIRST_TIMESTAMP_MS + 400
        assert self._offset(topic, EARLIEST) == 0
        assert self._offset(topic, LATEST) == 1_000
        assert self._offset(topic, MAX_TIMESTAMP) == 999
        assert self._offset(topic, OffsetSpec.for_timestamp(middle_ms)) == 400
        consumer = self._consumer()
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S) == (0, 1_000)
        [found] = consumer.offsets_for_times([TopicPartition(topic, 0, middle_ms)], PATIENCE_S)
        assert found.offset == 400, found
        consumer.close()

    def deletes_records(self) -> None:
        topic = self.create("delete-records")
        self._fill(topic, 1_000)
        partition = TopicPartition(topic, 0, 300)
        deleted = _result(next(iter(self._admin.delete_records([partition]).values())))
        assert deleted.low_watermark == 300, deleted.low_watermark
        assert self._offset(topic, EARLIEST) == 300
        first = self._read(topic, 700)[0]
        assert first.offset == 300, first

    def deletes_topic(self) -> None:
        topic = self.create("deleted")
        _result(self._admin.delete_topics([topic])[topic])
        require_soon(lambda: topic not in self._admin.list_topics().topics, "still listed")
        _require_error(self._admin.delete_topics([topic])[topic], KafkaError.UNKNOWN_TOPIC_OR_PART)

    def _producer(self, settings: Mapping[str, str | bool]) -> Producer:
        ours = {"bootstrap.servers": self._bootstrap, "message.timeout.ms": int(PATIENCE_S * 1_000)}
        return Producer({**ours, **settings})

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "unused: librdkafka wants a name even where no group is joined",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
            }
        )

    def _produce(
        self, topic: str, count: int, settings: Mapping[str, str | bool], partition: int = -1
    ) -> list[Placed]:
        sent: list[Placed] = []
        producer = self._producer(settings)
        for index in range(count):
            _send(producer, topic, make_record(index), sent, partition)
        left = producer.flush(PATIENCE_S)
        assert left == 0 and len(sent) == count, f"{count - len(sent)} not acknowledged"
        return sent

    def _fill(self, topic: str, count: int) -> None:
        self._produce(topic, count, {"enable.idempotence": True}, partition=0)

    def _read(self, topic: str, count: int) -> list[Placed]:
        consumer = self._consumer()
        indexes = range(PARTITION_COUNT)
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in indexes])
        read: list[Placed] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(read) < count:
            assert time.monotonic() < deadline, f"{len(read)} of {count} records read"
            for message in consumer.consume(count, timeout=0.2):
                read.append(_placed(message))
        consumer.close()
        return read

    def _offset(self, topic: str, spec: OffsetSpec) -> int:
        asked = {TopicPartition(topic, 0): spec}
        offset: int = _result(next(iter(self._admin.list_offsets(asked).values()))).offset
        return offset


def _send(
    producer: Producer, topic: str, record: Record, sent: list[Placed], partition: int = -1
) -> None:
    def acknowledged(error: KafkaError | None, message: "Message[bytes, bytes]") -> None:
        if error is None:
            sent.append(Placed(*_place(message), record))

    producer.produce(
        topic,
        record.value,
        record.key,
        partition=partition,
        on_delivery=acknowledged,
        timestamp=record.timestamp_ms,
        headers=list(record.headers),
    )
    producer.poll(0)


def _placed(message: "Message[bytes, bytes]") -> Placed:
    if message.error() is not None:
        raise KafkaException(message.error())
    headers = cast(list[tuple[str, bytes | None]], message.headers() or [])
    record = Record(message.key(), message.value(), message.timestamp()[1], tuple(headers))
    return Placed(*_place(message), record)


def _place(message: "Message[bytes, bytes]") -> tuple[int, int]:
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None, "a message without a place"
    return partition, offset


def _result(future: "Future[Any]") -> Any:  # noqa: ANN401 - each admin call has its own answer
    return future.result(PATIENCE_S)


def _require_error(future: "Future[Any]", code: int) -> None:
    try:
        future.result(PATIENCE_S)
    except KafkaException as error:
        assert error.args[0].code() == code, f"wanted {code}, got {error}"
    else:
        raise AssertionError(f"wanted error {code}, got none")


def main() -> None:
    suite = Suite(sys.argv[1])
    checks = Checks((KafkaException,))
    checks.check("describe the cluster", suite.describes_cluster)
    checks.check("create a topic: exists, bad name", suite.refuses_topics)
    for compression in COMPRESSIONS:
        settings = {"compression.type": compression}
        checks.check(f"produce, read: {compression}", partial(suite.reads_back_equal, settings))
    more: dict[str, dict[str, str | bool]] = {
        "idempotent": {"enable.idempotence": True},
        "acks=1": {"acks": "1"},
    }
    for name, other in more.items():
        checks.check(f"produce, read: {name}", partial(suite.reads_back_equal, other))
    checks.check("null key, null and empty value, odd headers", suite.keeps_nulls)
    checks.check("list offsets: earliest, latest, max timestamp, by time", suite.lists_offsets)
    checks.check("delete records", suite.deletes_records)
    checks.check("delete a topic", suite.deletes_topic)
    checks.end()


if __name__ == "__main__":
    main()
