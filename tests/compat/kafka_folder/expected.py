"""What a broker serves from a data folder: ids, watermarks and committed records, as plain JSON.

The recorder asks Kafka and the integration test asks Runnel, with this same code. Bytes are kept
as text in Latin-1, one character per byte.
"""

import time
from typing import TypedDict, cast

from confluent_kafka import Consumer, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

PATIENCE_S = 20.0


class ExpectedRecord(TypedDict):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: str | None
    value: str | None
    headers: list[tuple[str, str | None]]


class ExpectedTopic(TypedDict):
    topic_id: str
    watermarks: list[tuple[int, int]]  # low and high, by partition


class Folder(TypedDict):
    cluster_id: str
    topics: dict[str, ExpectedTopic]
    records: list[ExpectedRecord]


def read_folder(bootstrap: str, topics: list[str]) -> Folder:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    cluster = admin.describe_cluster(request_timeout=PATIENCE_S).result(PATIENCE_S)
    described = admin.describe_topics(TopicCollection(topics), request_timeout=PATIENCE_S)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused: librdkafka wants a name even where no group is joined",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    folder = Folder(cluster_id=cluster.cluster_id, topics={}, records=[])
    for name in sorted(topics):
        topic = described[name].result(PATIENCE_S)
        partitions = [TopicPartition(name, index) for index in range(len(topic.partitions))]
        watermarks = [_watermarks(consumer, partition) for partition in partitions]
        folder["topics"][name] = ExpectedTopic(topic_id=str(topic.topic_id), watermarks=watermarks)
        for partition, (low, _) in zip(partitions, watermarks, strict=True):
            folder["records"].extend(_read(consumer, partition, low))
    consumer.close()
    return folder


def _watermarks(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    found = consumer.get_watermark_offsets(partition, timeout=PATIENCE_S)
    assert found is not None, f"no watermarks of {partition}"
    return found


def _read(consumer: Consumer, partition: TopicPartition, low: int) -> list[ExpectedRecord]:
    """Every record up to the end, which the consumer marks with an event of its own."""
    consumer.assign([TopicPartition(partition.topic, partition.partition, low)])
    read: list[ExpectedRecord] = []
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is None:
            continue
        error = message.error()
        if error is None:
            read.append(_record(message))
        elif error.name() == "_PARTITION_EOF":
            return read
        else:
            raise KafkaException(error)
    raise AssertionError(f"{partition}: {len(read)} records and no end within {PATIENCE_S} s")


def _record(message: "Message[bytes, bytes]") -> ExpectedRecord:
    headers = cast(list[tuple[str, bytes | None]], message.headers() or [])
    timestamp_type, timestamp_ms = message.timestamp()
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None and partition is not None and offset is not None
    return ExpectedRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp_ms=timestamp_ms,
        timestamp_type=timestamp_type,
        key=_text(message.key()),
        value=_text(message.value()),
        headers=[(name, _text(value)) for name, value in headers],
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
