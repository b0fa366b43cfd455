"""Reading a topic by assignment with confluent-kafka, which is other people's code."""

import time
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

READ_TIMEOUT_S = 60.0


class Place(NamedTuple):
    partition: int
    offset: int


def place_of(message: Message) -> Place:
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None
    return Place(partition, offset)


def read_topic(bootstrap: str, topic: str, partition_count: int) -> list[Message]:
    """Every record from the beginning of each partition to its end; the client checks each CRC."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "log_level": 0,
        }
    )
    found: list[Message] = []
    try:
        wanted = 0
        for index in range(partition_count):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, index), 10)
            wanted += high - low
        partitions = range(partition_count)
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in partitions])
        deadline = time.monotonic() + READ_TIMEOUT_S
        while len(found) < wanted:
            assert time.monotonic() < deadline, f"read {len(found)} of {wanted} records"
            for message in consumer.consume(10_000, timeout=0.1):
                assert message.error() is None, message.error()
                found.append(message)
    finally:
        consumer.close()
    return found
