"""Goal: elections and reassignments are answered on a cluster of one as Kafka answers them."""

from runnel.errors import ErrorCode
from runnel.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from runnel.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from runnel.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.support.asking import create
from tests.support.desk import Desk, at_desk


def test_an_election_that_nobody_needs() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        asked = [
            TopicPartitions(topic="t", partitions=[0, 1, 2]),
            TopicPartitions(topic="nope", partitions=[0]),
        ]
        for version in range(3):
            for kind in (0, 1) if version else (0,):
                response = await desk.ask(
                    ElectLeadersRequest(topic_partitions=asked, election_type=kind), version
                )
                known, unknown = response.replica_election_results
                codes = [each.error_code for each in known.partition_result]
                assert codes == [84, 84, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
                assert known.partition_result[2].error_message == "No such partition as t-2"
                assert unknown.partition_result[0].error_message == "No such topic as nope"
        every = await desk.ask(ElectLeadersRequest(topic_partitions=None))
        assert (every.error_code, every.replica_election_results) == (0, [])
        odd = await desk.ask(ElectLeadersRequest(topic_partitions=None, election_type=7))
        assert odd.error_code == ErrorCode.INVALID_REQUEST

    at_desk(test)


def test_reassignments() -> None:
    wrong = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    cases: list[tuple[str, int, list[int] | None, int]] = [
        ("t", 0, [1], 0),
        ("t", 0, [9], wrong),
        ("t", 0, [], wrong),
        ("t", 0, [1, 1], wrong),
        ("t", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 5, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nope", 0, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]

    async def test(desk: Desk) -> None:
        await create(desk)
        for version in range(2):
            for name, index, replicas, code in cases:
                partition = ReassignablePartition(partition_index=index, replicas=replicas)
                topic = ReassignableTopic(name=name, partitions=[partition])
                response = await desk.ask(
                    AlterPartitionReassignmentsRequest(topics=[topic]), version
                )
                (result,) = response.responses[0].partitions
                assert (response.error_code, result.error_code) == (0, code), (name, replicas)
        for topics in (
            None,
            [ListPartitionReassignmentsTopics(name="t", partition_indexes=[0, 9])],
            [ListPartitionReassignmentsTopics(name="nope", partition_indexes=[0])],
        ):
            ongoing = await desk.ask(ListPartitionReassignmentsRequest(topics=topics))
            assert (ongoing.error_code, ongoing.topics) == (0, [])

    at_desk(test)
