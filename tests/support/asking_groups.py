"""Requests about groups that tests ask again and again."""

from collections.abc import Mapping

from runnel.wire.messages.find_coordinator import FindCoordinatorRequest
from runnel.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from runnel.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from runnel.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.desk import Desk

COMMIT_BY_NAME = 9
FETCH_BY_NAME = 9


async def find(desk: Desk, *groups: str) -> None:
    """Whoever has found a coordinator has one: the internal topic is there from now on."""
    response = await desk.ask(FindCoordinatorRequest(coordinator_keys=list(groups)))
    assert not any(each.error_code for each in response.coordinators)


def commit_request(
    offsets: Mapping[int, int], *, group: str = "g", topic: str = "t", metadata: str = "",
    member: str = "", generation: int = -1, topic_id: bytes = bytes(16), retention_ms: int = -1,
) -> OffsetCommitRequest:  # fmt: skip
    return OffsetCommitRequest(
        group_id=group,
        member_id=member,
        generation_id_or_member_epoch=generation,
        retention_time_ms=retention_ms,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=3,
                        committed_metadata=metadata,
                    )
                    for index, offset in offsets.items()
                ],
            )
        ],
    )


async def commit(
    desk: Desk, offsets: Mapping[int, int], *, group: str = "g", topic: str = "t",
    version: int = COMMIT_BY_NAME, metadata: str = "", member: str = "", generation: int = -1,
    topic_id: bytes = bytes(16), retention_ms: int = -1,
) -> list[int]:  # fmt: skip
    """The error code of every partition."""
    request = commit_request(
        offsets, group=group, topic=topic, metadata=metadata, member=member,
        generation=generation, topic_id=topic_id, retention_ms=retention_ms,
    )  # fmt: skip
    response = await desk.ask(request, version)
    return [each.error_code for found in response.topics for each in found.partitions]


def txn_commit_request(
    offsets: Mapping[int, int], *, group: str = "g", topic: str = "t", producer_id: int = 7,
    producer_epoch: int = 0, generation: int = -1, member: str = "", transactional_id: str = "x",
) -> TxnOffsetCommitRequest:  # fmt: skip
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        generation_id=generation,
        member_id=member,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
                    for index, offset in offsets.items()
                ],
            )
        ],
    )


async def fetch_offsets(
    desk: Desk, *, group: str = "g", topic: str = "t", indexes: tuple[int, ...] | None = (0,),
    require_stable: bool = False, version: int = FETCH_BY_NAME, topic_id: bytes = bytes(16),
    member: str | None = None, epoch: int = -1,
) -> dict[tuple[str, int], tuple[int, str, int]]:  # fmt: skip
    """Offset, metadata and error of each partition; `indexes` None asks for all there are."""
    topics = None
    if indexes is not None:
        asked = OffsetFetchRequestTopics(
            name=topic, topic_id=topic_id, partition_indexes=list(indexes)
        )
        topics = [asked]
    wanted = OffsetFetchRequestGroup(
        group_id=group, topics=topics, member_id=member, member_epoch=epoch
    )
    response = await desk.ask(
        OffsetFetchRequest(groups=[wanted], require_stable=require_stable), version
    )
    (answer,) = response.groups
    assert answer.error_code == 0, answer
    return {
        (found.name, each.partition_index): (
            each.committed_offset,
            each.metadata,
            each.error_code,
        )
        for found in answer.topics
        for each in found.partitions
    }
