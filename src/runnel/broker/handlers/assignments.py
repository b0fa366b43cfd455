"""Who leads and who holds a partition, as an administrator asks for it, on a cluster of one.

ElectLeaders (key 43, v0-v2), AlterPartitionReassignments (key 45, v0-v1) and
ListPartitionReassignments (key 46, v0). Version notes: ElectLeaders v1 knows unclean elections;
AlterPartitionReassignments v1 may forbid another replication factor.

There is one broker to lead and to hold everything, so every request is judged as Kafka judges it,
and what is left to do is nothing: a leader is elected when its broker comes back, and the only set
of replicas that can be asked for is the one there is.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.cluster.image import Image, Topic
from runnel.cluster.topics import ensure_replicas
from runnel.cluster.values import Partition
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from runnel.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from runnel.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

PREFERRED: Final = 0
UNCLEAN: Final = 1
FIRST_VERSION_WITH_FACTOR: Final = 1


def elect_leaders(
    context: RequestContext, services: Services, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    if request.election_type not in (PREFERRED, UNCLEAN):
        return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST)
    image, asked = services.image, request.topic_partitions
    pairs: Iterable[tuple[str, Sequence[int]]]
    if asked is None:
        pairs = [(topic.name, range(len(topic.partitions))) for topic in image.topics.values()]
    else:
        pairs = [(topic.topic, topic.partitions) for topic in asked]
    results = [
        ReplicaElectionResult(
            topic=name,
            partition_result=[
                result
                for index in indexes
                for result in (_elect(image, name, index, request.election_type),)
                # Of all partitions, those that have their leader already are not listed.
                if asked is not None or result.error_code != ErrorCode.ELECTION_NOT_NEEDED
            ],
        )
        for name, indexes in pairs
    ]
    return ElectLeadersResponse(
        replica_election_results=[each for each in results if asked or each.partition_result]
    )


def _elect(image: Image, name: str, index: int, election_type: int) -> PartitionResult:
    topic, record = image.topics.get(name), image.partition(name, index)
    if record is None:
        what = f"topic as {name}" if topic is None else f"partition as {name}-{index}"
        code, why = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such {what}"
    elif (record.leader >= 0 and election_type == UNCLEAN) or record.leader == record.replicas[0]:
        code = ErrorCode.ELECTION_NOT_NEEDED
        why = "Leader election not needed for topic partition."
    elif election_type == UNCLEAN:
        code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        why = "Eligible topic partition leaders are not available."
    else:
        code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        why = "The preferred leader was not available."
    return PartitionResult(partition_id=index, error_code=code, error_message=why)


def alter_partition_reassignments(
    context: RequestContext, services: Services, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    may_change_factor = (
        context.api_version < FIRST_VERSION_WITH_FACTOR or request.allow_replication_factor_change
    )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    _reassign(
                        services.image, topic.name, each.partition_index, each.replicas,
                        may_change_factor,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )  # fmt: skip


def _reassign(
    image: Image, name: str, index: int, replicas: list[int] | None, may_change_factor: bool
) -> ReassignablePartitionResponse:
    try:
        record = _record(image, name, index)
        if replicas is None:
            raise RunnelError(
                ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
            )
        ensure_replicas(image, index, replicas)
        if len(replicas) != len(record.replicas) and not may_change_factor:
            raise RunnelError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor is changed from {len(record.replicas)} to {len(replicas)}",
            )
        if tuple(replicas) != record.replicas:
            raise RunnelError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{name}-{index} is on {list(record.replicas)} and cannot be moved to {replicas}: "
                "this version does not replicate",
            )
    except RunnelError as error:
        return ReassignablePartitionResponse(
            partition_index=index, error_code=error.code, error_message=str(error)
        )
    return ReassignablePartitionResponse(partition_index=index, error_message=None)


def _record(image: Image, name: str, index: int) -> Partition:
    record = image.partition(name, index)
    if record is None:
        what = f"partition {name}:{index}" if name in image.topics else f"a topic named {name}"
        raise RunnelError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find {what}.")
    return record


def list_partition_reassignments(
    context: RequestContext, services: Services, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    image = services.image
    asked: list[tuple[Topic | None, Iterable[int]]]
    if request.topics is None:
        asked = [(topic, range(len(topic.partitions))) for topic in image.topics.values()]
    else:
        asked = [(image.topics.get(each.name), each.partition_indexes) for each in request.topics]
    found = [
        OngoingTopicReassignment(name=topic.name, partitions=_ongoing(topic, indexes))
        for topic, indexes in asked
        if topic is not None
    ]
    return ListPartitionReassignmentsResponse(
        error_message=None, topics=[topic for topic in found if topic.partitions]
    )


def _ongoing(topic: Topic, indexes: Iterable[int]) -> list[OngoingPartitionReassignment]:
    records = [topic.partitions[n] for n in indexes if 0 <= n < len(topic.partitions)]
    return [
        OngoingPartitionReassignment(
            partition_index=record.index,
            replicas=list(record.replicas),
            adding_replicas=list(record.adding),
            removing_replicas=list(record.removing),
        )
        for record in records
        if record.adding or record.removing
    ]
