"""Retention: how long messages are kept, by age and by size, whether anybody has read them or not.

A topic is kept in files (segments), and the oldest go as a whole: what is left is at least what was
asked for. It can be changed at any time: runnel topic alter NAME --config retention.ms=600000

It prints:

    temperatures, an hour is kept: offsets 3 to 4 of 0 to 4
    pictures, 3 MB are kept: offsets 6 to 9 of 0 to 9
"""

import time
from datetime import UTC, datetime, timedelta

from runnel.client import Consumer, ConsumerConfig, Producer, ProducerConfig
from runnel.testing import RunnelBroker


def await_offsets(topic: str, first: int, last: int) -> str:
    """Wait until these are what is left to read."""
    for _ in range(100):
        with Consumer(ConsumerConfig(servers)) as consumer:
            consumer.subscribe(topic)
            offsets = [message.offset for message in consumer.until_end()]
        if (offsets[0], offsets[-1]) == (first, last):
            return f"offsets {first} to {last} of 0 to {last}"
        time.sleep(0.1)
    raise TimeoutError(f"{topic} still has {offsets}")


# By default a broker looks every five minutes. This one does ten times a second.
with RunnelBroker({"log.retention.check.interval.ms": 100}) as broker:
    servers = broker.bootstrap_servers
    producer = Producer(ProducerConfig(servers)).start()
    now = datetime.now(UTC)

    # By age: what counts is the timestamp of the messages. A new file begins every five minutes.
    topic = broker.create_topic(
        "temperatures", config={"retention.ms": 3_600_000, "segment.ms": 300_000}
    )
    for minutes_ago in (180, 120, 90, 30, 0):
        producer.send(topic, "21.5", timestamp=now - timedelta(minutes=minutes_ago)).result()
    print("temperatures, an hour is kept:", await_offsets(topic, 3, 4))

    # By size: the oldest files go while at least this much is left. Both can be set.
    topic = broker.create_topic(
        "pictures", config={"retention.bytes": 3_000_000, "segment.bytes": 1_048_576}
    )
    for _ in range(10):
        producer.send(topic, bytes(900_000)).result()
    print("pictures, 3 MB are kept:", await_offsets(topic, 6, 9))

    producer.close()
