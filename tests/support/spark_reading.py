"""What a topic holds after Spark has written to it, as librdkafka's consumer sees it."""

from confluent_kafka import Consumer, Message, TopicPartition

from tests.support.process import BrokerProcess

PATIENCE_S = 30.0


def messages_in(broker: BrokerProcess, topic: str) -> list[Message]:
    """All that is committed, partition by partition; waits for transactions that are open."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "tests",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    try:
        partitions = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, index, 0) for index in partitions])
        found: list[Message] = []
        ended = 0
        while ended < len(partitions):
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"{topic}: nothing came for {PATIENCE_S} s"
            if message.error() is None:
                found.append(message)
            else:
                ended += 1
        return found
    finally:
        consumer.close()


def values_in(broker: BrokerProcess, topic: str) -> list[bytes]:
    return [message.value() or b"" for message in messages_in(broker, topic)]
