"""Deleting offsets, and groups with them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from runnel.coordinator.groups.committed import CommittedOffsets
from runnel.coordinator.groups.group import Group
from runnel.coordinator.records import JournalRecord
from runnel.coordinator.runtime import Shard
from runnel.errors import ErrorCode
from runnel.wire.messages.offset_delete import (
    OffsetDeleteRequestTopic,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from runnel.wire.messages.records.offset_commit import OffsetCommitKey

if TYPE_CHECKING:
    from runnel.coordinator.groups.machine import GroupMachine

TOMBSTONES_PER_BATCH: Final = 1000
BATCH_BYTES_MAX: Final = 500_000  # half of what a journal takes: names of groups may be long
KEY_BYTES: Final = 32  # of a tombstone, without its names


def delete_offsets(
    machine: "GroupMachine", group_id: str, topics: Sequence[OffsetDeleteRequestTopic]
) -> list[OffsetDeleteResponseTopic]:
    """Raises GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
    group = machine.group(group_id)
    group.ensure_may_delete_offsets()
    records: list[JournalRecord] = []
    answers: list[OffsetDeleteResponseTopic] = []
    for topic in topics:
        code = ErrorCode.NONE
        if group.is_subscribed_to(topic.name):
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        results: list[OffsetDeleteResponsePartition] = []
        for partition in topic.partitions:
            index = partition.partition_index
            results.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
            if code is ErrorCode.NONE and _is_there(
                machine.offsets.committed, group_id, topic.name, index
            ):
                records.append(tombstone(group_id, topic.name, index))
        answers.append(OffsetDeleteResponseTopic(name=topic.name, partitions=results))
    machine.shard.write(records)
    return answers


def _is_there(committed: CommittedOffsets, group_id: str, topic: str, index: int) -> bool:
    return committed.get(group_id, topic, index) is not None or committed.is_pending(
        group_id, topic, index
    )


def delete_group(machine: "GroupMachine", group: Group) -> None:
    """With all its offsets; the caller has made sure that it may be."""
    found = machine.offsets.committed.partitions_of(group.group_id)
    write_in_batches(machine.shard, [tombstone(group.group_id, *partition) for partition in found])
    machine.shard.write(list(group.tombstones()))


def write_in_batches(shard: Shard[Any], tombstones: Sequence[JournalRecord]) -> None:
    """Of many, so that no batch is too large for the journal.

    Raises RunnelError.
    """
    some: list[JournalRecord] = []
    room_bytes = BATCH_BYTES_MAX
    for each in tombstones:
        size_bytes = KEY_BYTES + len(each.key.group.encode()) + len(each.key.topic.encode())
        if some and (size_bytes > room_bytes or len(some) == TOMBSTONES_PER_BATCH):
            shard.write(some)
            some, room_bytes = [], BATCH_BYTES_MAX
        some.append(each)
        room_bytes -= size_bytes
    shard.write(some)


def tombstone(group_id: str, topic: str, index: int) -> JournalRecord:
    return JournalRecord(OffsetCommitKey(group=group_id, topic=topic, partition=index), None)
