"""Offsets of a group as confluent-kafka commits and reads them, over kill -9 and a clean stop."""

from pathlib import Path

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.process import BrokerProcess

TIMEOUT_S = 20.0
TOPIC = "orders"
PARTITIONS = 3


def _consumer(broker: BrokerProcess, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "reconnect.backoff.max.ms": 100,
        }
    )


def _create(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    created = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
    created[TOPIC].result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(300):
        producer.produce(TOPIC, value=str(number), partition=number % PARTITIONS)
    assert producer.flush(TIMEOUT_S) == 0


def _committed(broker: BrokerProcess, group: str) -> dict[int, tuple[int, str]]:
    consumer = _consumer(broker, group)
    asked = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    found = consumer.committed(asked, timeout=TIMEOUT_S)
    consumer.close()
    return {each.partition: (each.offset, each.metadata or "") for each in found}


@pytest.mark.parametrize("durability", ["interval", "ack"])
def test_assigned_consumers_commit_and_come_back_after_kill(
    tmp_path: Path, durability: str
) -> None:
    """`assign` and commit without being a member; each commit is answered, so none may be lost."""
    settings = {"runnel.durability": durability}
    with BrokerProcess(tmp_path / "data", settings=settings) as broker:
        _create(broker)
        for round_ in range(1, 4):
            consumer = _consumer(broker, "readers")
            consumer.assign([TopicPartition(TOPIC, index) for index in range(PARTITIONS)])
            read = 0
            while read < 30:
                message = consumer.poll(TIMEOUT_S)
                assert message is not None and message.error() is None
                read += 1
            offsets = [
                TopicPartition(TOPIC, index, round_ * 10 + index, metadata=f"round {round_}")
                for index in range(PARTITIONS)
            ]
            done = consumer.commit(offsets=offsets, asynchronous=False)
            assert done is not None
            assert [each.error for each in done] == [None] * PARTITIONS
            broker.kill()
            broker.start()
            consumer.close()
            assert _committed(broker, "readers") == {
                index: (round_ * 10 + index, f"round {round_}") for index in range(PARTITIONS)
            }
        broker.stop()
        broker.start()
        assert _committed(broker, "readers")[2] == (32, "round 3")
        consumer = _consumer(broker, "readers")
        consumer.assign([TopicPartition(TOPIC, 1)])
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        assert message.offset() == 31
        consumer.close()


def test_the_admin_client_lists_alters_and_deletes(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        _create(broker)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        wanted = ConsumerGroupTopicPartitions(
            "altered", [TopicPartition(TOPIC, 0, 7), TopicPartition(TOPIC, 1, 8)]
        )
        admin.alter_consumer_group_offsets([wanted])["altered"].result(TIMEOUT_S)
        listed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("altered")])
        found = listed["altered"].result(TIMEOUT_S).topic_partitions
        assert {(each.partition, each.offset) for each in found} == {(0, 7), (1, 8)}
        groups = admin.list_consumer_groups().result(TIMEOUT_S)
        assert [(each.group_id, each.state) for each in groups.valid] == [
            ("altered", ConsumerGroupState.EMPTY)
        ]
        described = admin.describe_consumer_groups(["altered"])["altered"].result(TIMEOUT_S)
        assert (described.state, described.members) == (ConsumerGroupState.EMPTY, [])
        admin.delete_consumer_groups(["altered"])["altered"].result(TIMEOUT_S)
        assert admin.list_consumer_groups().result(TIMEOUT_S).valid == []
        with pytest.raises(KafkaException) as refused:
            admin.delete_consumer_groups(["altered"])["altered"].result(TIMEOUT_S)
        assert refused.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND
        broker.kill()
        broker.start()
        assert admin.list_consumer_groups().result(TIMEOUT_S).valid == []
