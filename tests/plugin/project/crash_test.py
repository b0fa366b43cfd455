"""Brokers of a test's own: with settings, in the test process, killed and started again."""

import os
from collections.abc import Callable

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from runnel.testing import RunnelBroker

Start = Callable[..., RunnelBroker]


def test_settings_are_honoured(start_runnel_broker: Start) -> None:
    broker = start_runnel_broker({"num.partitions": 4, "node.id": 7})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    topic = admin.list_topics("made-by-asking", timeout=10).topics["made-by-asking"]
    assert len(topic.partitions) in (0, 4)  # 0: the topic is being made
    assert list(admin.list_topics(timeout=10).brokers) == [7]


def test_what_was_acknowledged_survives_a_kill(start_runnel_broker: Start) -> None:
    broker = start_runnel_broker({"runnel.durability": "ack"}, in_process=False)
    assert broker.pid != os.getpid()
    topic = broker.create_topic("kept", partitions=1)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    producer.produce(topic, "tea")
    assert producer.flush(10) == 0
    broker.kill()
    broker.start()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "kept"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    (message,) = consumer.consume(1, timeout=10)
    assert message.value() == b"tea"
    consumer.close()


def test_a_broker_in_this_process(start_runnel_broker: Start) -> None:
    broker = start_runnel_broker(in_process=True)
    assert broker.pid == os.getpid()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    assert admin.list_topics(timeout=10).brokers
