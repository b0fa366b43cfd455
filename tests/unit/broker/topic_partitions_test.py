"""Goal: topics are described page by page, as Kafka pages them, and nothing is told twice."""

from runnel.errors import ErrorCode
from runnel.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.support.asking import create
from tests.support.desk import Desk, at_desk


def listed(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [
        (topic.name, [each.partition_index for each in topic.partitions])
        for topic in response.topics
    ]


def test_pages_follow_the_cursor_to_the_end() -> None:
    async def test(desk: Desk) -> None:
        for name, count in (("b", 5), ("a", 2), ("c", 1)):
            await create(desk, name, count)
        pages, cursor = [], None
        while True:
            response = await desk.ask(
                DescribeTopicPartitionsRequest(response_partition_limit=3, cursor=cursor)
            )
            pages.append(listed(response))
            told = response.next_cursor
            if told is None:
                break
            cursor = DescribeTopicPartitionsRequestCursor(
                topic_name=told.topic_name, partition_index=told.partition_index
            )
        assert pages == [
            [("a", [0, 1]), ("b", [0])],
            [("b", [1, 2, 3])],
            [("b", [4]), ("c", [0])],
        ]

    at_desk(test)


def test_a_full_page_at_the_end_of_a_topic_points_at_the_next() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, "a", 2)
        await create(desk, "b", 1)
        asked = [TopicRequest(name="b"), TopicRequest(name="a")]
        response = await desk.ask(
            DescribeTopicPartitionsRequest(topics=asked, response_partition_limit=2)
        )
        assert listed(response) == [("a", [0, 1])]
        assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == ("b", 0)

    at_desk(test)


def test_the_brokers_limit_counts_when_the_clients_is_larger() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, "a", 4)
        for limit in (1000, 0, -5):
            response = await desk.ask(
                DescribeTopicPartitionsRequest(response_partition_limit=limit)
            )
            assert len(response.topics[0].partitions) == (2 if limit > 0 else 1)

    at_desk(test, {"max.request.partition.size.limit": "2"})


def test_what_is_told_of_a_partition() -> None:
    async def test(desk: Desk) -> None:
        topic_id = await create(desk)
        asked = [TopicRequest(name=name) for name in ("t", "nope", "b/d")]
        response = await desk.ask(DescribeTopicPartitionsRequest(topics=asked))
        codes = {topic.name: topic.error_code for topic in response.topics}
        assert codes == {
            "b/d": ErrorCode.INVALID_TOPIC_EXCEPTION,
            "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "t": 0,
        }
        topic = response.topics[-1]
        assert topic.topic_id == topic_id
        assert topic.topic_authorized_operations > 0
        (partition,) = topic.partitions
        assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, [1], [1])
        assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])
        assert partition.offline_replicas == []

    at_desk(test)


def test_cursors_that_cannot_be_are_refused() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        for cursor in (("u", 0), ("t", -1)):
            name, index = cursor
            response = await desk.ask(
                DescribeTopicPartitionsRequest(
                    topics=[TopicRequest(name="t")],
                    cursor=DescribeTopicPartitionsRequestCursor(
                        topic_name=name, partition_index=index
                    ),
                )
            )
            assert response.topics[0].error_code == ErrorCode.INVALID_REQUEST, cursor

    at_desk(test)
