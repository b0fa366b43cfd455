"""Goal: topics are created, refused and deleted as Kafka does."""

from runnel.errors import ErrorCode
from runnel.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from runnel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from runnel.wire.messages.metadata import MetadataRequest
from tests.support.asking import batch, create, offset_at, produce
from tests.support.desk import Desk, at_desk


def test_creating_topics_refuses_what_kafka_refuses() -> None:
    cases = {
        "exists": (CreatableTopic(name="t", num_partitions=1, replication_factor=1), 36),
        "name": (CreatableTopic(name="a b", num_partitions=1, replication_factor=1), 17),
        "long": (CreatableTopic(name="x" * 250, num_partitions=1, replication_factor=1), 17),
        "count": (CreatableTopic(name="n", num_partitions=0, replication_factor=1), 37),
        "factor": (CreatableTopic(name="n", num_partitions=1, replication_factor=2), 38),
        "config": (
            CreatableTopic(
                name="n",
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="no.such", value="1")],
            ),
            40,
        ),
        "metadata": (
            CreatableTopic(name="__cluster_metadata", num_partitions=1, replication_factor=1),
            42,
        ),
        "value": (
            CreatableTopic(
                name="n",
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="retention.ms", value="soon")],
            ),
            40,
        ),
        "assignment": (
            CreatableTopic(
                name="n",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[99])],
            ),
            39,
        ),
    }

    async def test(desk: Desk) -> None:
        await create(desk)
        for name, (topic, code) in cases.items():
            response = await desk.ask(CreateTopicsRequest(topics=[topic]))
            assert response.topics[0].error_code == code, (name, response.topics[0])
        twice = [CreatableTopic(name="d", num_partitions=1, replication_factor=1)] * 2
        response = await desk.ask(CreateTopicsRequest(topics=twice))
        assert [each.error_code for each in response.topics] == [ErrorCode.INVALID_REQUEST]
        dry = CreatableTopic(name="dry", num_partitions=3, replication_factor=-1)
        response = await desk.ask(CreateTopicsRequest(topics=[dry], validate_only=True))
        assert (response.topics[0].error_code, response.topics[0].num_partitions) == (0, 3)
        names = (await desk.ask(MetadataRequest(topics=None))).topics
        assert [topic.name for topic in names] == ["t"]

    at_desk(test)


def test_created_topics_tell_their_configuration() -> None:
    async def test(desk: Desk) -> None:
        topic = CreatableTopic(
            name="t",
            num_partitions=-1,
            replication_factor=-1,
            configs=[CreatableTopicConfig(name="retention.ms", value="1000")],
        )
        response = await desk.ask(CreateTopicsRequest(topics=[topic]))
        told = {each.name: (each.value, each.config_source) for each in response.topics[0].configs}
        assert told["retention.ms"] == ("1000", 1)
        assert told["max.message.bytes"] == ("1048588", 5)
        assert told["segment.bytes"] == ("2000000", 4)
        assert response.topics[0].num_partitions == 2

    at_desk(test, {"num.partitions": "2", "log.segment.bytes": "2000000"})


def test_deleting_topics_by_name_and_id() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        other = await create(desk, "u")
        old = await desk.ask(DeleteTopicsRequest(topic_names=["t", "nope"]), 5)
        assert [each.error_code for each in old.responses] == [0, 3]
        states = [DeleteTopicState(topic_id=other), DeleteTopicState(topic_id=b"y" * 16)]
        new = await desk.ask(DeleteTopicsRequest(topics=states))
        assert [each.error_code for each in new.responses] == [0, ErrorCode.UNKNOWN_TOPIC_ID]
        assert (await produce(desk, batch(b"v"))).error_code == 3
        again = await create(desk)
        assert again
        assert (await offset_at(desk, -1)).offset == 0, "a new topic starts empty"

    at_desk(test)


def test_a_topic_named_twice_is_not_deleted() -> None:
    async def test(desk: Desk) -> None:
        topic_id = await create(desk)
        await create(desk, "u")
        old = await desk.ask(DeleteTopicsRequest(topic_names=["t", "u", "t"]), 5)
        told = {each.name: each.error_code for each in old.responses}
        assert told == {"t": ErrorCode.INVALID_REQUEST, "u": 0}
        twice = [DeleteTopicState(topic_id=topic_id)] * 2
        new = await desk.ask(DeleteTopicsRequest(topics=[*twice, DeleteTopicState()]))
        assert [each.error_code for each in new.responses] == [ErrorCode.INVALID_REQUEST] * 2
        assert new.responses[0].error_message == "Duplicate topic id."
        assert [t.name for t in (await desk.ask(MetadataRequest(topics=None))).topics] == ["t"]

    at_desk(test)


def test_deleting_a_topic_whose_folder_is_gone() -> None:
    async def test(desk: Desk) -> None:
        topic_id = await create(desk)
        log = desk.broker.partitions.get("t", 0).log
        log._around.disk.remove_tree(log.folder)
        response = await desk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=topic_id)]))
        assert response.responses[0].error_code == 0
        assert await create(desk)
        assert (await produce(desk, batch(b"v"))).base_offset == 0

    at_desk(test)
