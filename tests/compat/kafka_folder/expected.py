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
    starts: list[TopicPartition] = []
    for name in sorted(topics):
        topic = described[name].result(PATIENCE_S)
        partitions = [TopicPartition(name, index) for index in range(len(topic.partitions))]
        watermarks = [_watermarks(consumer, partition) for partition in partitions]
        folder["topics"][name] = ExpectedTopic(topic_id=str(topic.topic_id), watermarks=watermarks)
        starts += [TopicPartition(name, index, low) for index, (low, _) in enumerate(watermarks)]
    folder["records"] = _read(consumer, starts)
    consumer.close()
    return folder


def _watermarks(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    found = consumer.get_watermark_offsets(partition, timeout=PATIENCE_S)
    assert found is not None, f"no watermarks of {partition}"
    return found


def _read(consumer: Consumer, starts: list[TopicPartition]) -> list[ExpectedRecord]:
    """Every record up to the ends, which the consumer marks with events; sorted by their place."""
    consumer.assign(starts)
    ended: set[tuple[str | None, int | None]] = set()
    read: list[ExpectedRecord] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(ended) < len(starts):
        assert time.monotonic() < deadline, f"{len(ended)} of {len(starts)} partitions ended"
        for message in consumer.consume(1_000, timeout=0.1):
            error = message.error()
            if error is None:
                read.append(_record(message))
            elif error.name() == "_PARTITION_EOF":
                ended.add((message.topic(), message.partition()))
            else:
                raise KafkaException(error)
    read.sort(key=lambda record: (record["topic"], record["partition"], record["offset"]))
    return read


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
