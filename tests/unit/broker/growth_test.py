"""Goal: partitions are added to a topic as Kafka adds them, and refused as Kafka refuses them."""

import pytest

from runnel.errors import ErrorCode
from runnel.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from runnel.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.asking import batch, create, produce
from tests.support.desk import Desk, at_desk


async def grow(
    desk: Desk, count: int, name: str = "t", *, validate_only: bool = False,
    assignments: list[list[int]] | None = None, version: int = 3,
) -> CreatePartitionsTopicResult:  # fmt: skip
    given = None
    if assignments is not None:
        given = [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
    topic = CreatePartitionsTopic(name=name, count=count, assignments=given)
    request = CreatePartitionsRequest(topics=[topic], validate_only=validate_only)
    result: CreatePartitionsTopicResult = (await desk.ask(request, version)).results[0]
    return result


async def partition_count(desk: Desk, name: str = "t") -> int:
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    return len((await desk.ask(asked)).topics[0].partitions)


@pytest.mark.parametrize("version", range(4))
def test_added_partitions_take_records_at_once(version: int) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        assert (await produce(desk, batch(b"old"))).base_offset == 0
        assert (await grow(desk, 3, version=version)).error_code == 0
        assert await partition_count(desk) == 3
        for index in (1, 2):
            assert (await produce(desk, batch(b"new"), index=index)).base_offset == 0
        assert (await produce(desk, batch(b"old"))).base_offset == 1, "the first is what it was"

    at_desk(test)


def test_more_partitions_than_one_transaction_holds() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        assert (await grow(desk, 300)).error_code == 0
        assert await partition_count(desk) == 300
        assert (await produce(desk, batch(b"v"), index=299)).base_offset == 0

    at_desk(test)


def test_growing_refuses_what_kafka_refuses_and_changes_nothing() -> None:
    wrong = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    cases: list[tuple[int, list[list[int]] | None, ErrorCode, str]] = [
        (2, None, ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (1, None, ErrorCode.INVALID_PARTITIONS, "1 would not be an increase."),
        (-1, None, ErrorCode.INVALID_PARTITIONS, "-1 would not be an increase."),
        (20_000, None, ErrorCode.POLICY_VIOLATION, "excessively large"),
        (2**31 - 1, None, ErrorCode.POLICY_VIOLATION, "excessively large"),
        (4, [[1]], wrong, "add 2 additional partition(s), but only 1 assignment(s)"),
        (3, [[9]], wrong, "includes broker 9, but no such broker"),
        (3, [[1, 1]], wrong, "the broker 1 more than once"),
        (3, [[]], wrong, "an empty replica list"),
    ]

    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        for count, assignments, code, why in cases:
            result = await grow(desk, count, assignments=assignments)
            assert (result.error_code, why in (result.error_message or "")) == (code, True), result
        unknown = await grow(desk, 3, "nope")
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await partition_count(desk) == 2

    at_desk(test)


def test_assignments_and_dry_runs() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        assert (await grow(desk, 2, validate_only=True)).error_code == 0
        assert await partition_count(desk) == 1
        assert (await grow(desk, 2, assignments=[[1]])).error_code == 0
        assert await partition_count(desk) == 2

    at_desk(test)


def test_a_topic_named_twice_is_refused_and_its_neighbour_grows() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await create(desk, "u")
        topics = [
            CreatePartitionsTopic(name=name, count=2, assignments=None) for name in ("t", "u", "t")
        ]
        response = await desk.ask(CreatePartitionsRequest(topics=topics))
        told = {each.name: each.error_code for each in response.results}
        assert told == {"t": ErrorCode.INVALID_REQUEST, "u": 0}
        assert (await partition_count(desk), await partition_count(desk, "u")) == (1, 2)

    at_desk(test)
