"""Fetching the offsets of groups."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from runnel.errors import ErrorCode
from runnel.types import NO_TOPIC_ID
from runnel.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from runnel.coordinator.groups.machine import GroupMachine

NO_OFFSET: Final = -1


def fetch_offsets(
    machine: "GroupMachine", request: OffsetFetchRequestGroup, *, require_stable: bool
) -> list[OffsetFetchResponseTopics]:
    """A group that is not there has no offsets; that is no error. Raises RunnelError."""
    committed = machine.offsets.committed
    group = machine.groups.get(request.group_id)
    if group is not None:
        group.ensure_may_fetch(request.member_id, request.member_epoch)
    by_topic = committed.by_group.get(request.group_id, {})
    wanted: Iterable[tuple[str, bytes, Collection[int]]]
    if request.topics is None:
        wanted = [(name, NO_TOPIC_ID, by_index) for name, by_index in by_topic.items()]
    else:
        wanted = [(each.name, each.topic_id, each.partition_indexes) for each in request.topics]
    answers: list[OffsetFetchResponseTopics] = []
    for name, topic_id, indexes in wanted:
        by_index = by_topic.get(name, {})
        results: list[OffsetFetchResponsePartitions] = []
        for index in indexes:
            found = by_index.get(index)
            if require_stable and committed.is_pending(request.group_id, name, index):
                results.append(_nothing(index, ErrorCode.UNSTABLE_OFFSET_COMMIT))
            elif found is None or _is_of_another(found.topic_id, topic_id):
                results.append(_nothing(index))
            else:
                results.append(
                    OffsetFetchResponsePartitions(
                        partition_index=index,
                        committed_offset=found.offset,
                        committed_leader_epoch=found.leader_epoch,
                        metadata=found.metadata,
                    )
                )
        answers.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=results))
    return answers


def _nothing(index: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=NO_OFFSET, error_code=code
    )


def _is_of_another(committed_id: bytes, asked_id: bytes) -> bool:
    """Whether the topic was deleted and made anew between the commit and the question."""
    return NO_TOPIC_ID not in (committed_id, asked_id) and committed_id != asked_id
