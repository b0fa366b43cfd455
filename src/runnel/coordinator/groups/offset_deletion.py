"""Deleting offsets, and groups with them: by tombstones, in batches that the journal takes."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from runnel.coordinator.groups.committed import CommittedOffsets
from runnel.coordinator.groups.offset_records import OffsetRecord
from runnel.coordinator.runtime import NO_PRODUCER_ID
from runnel.errors import ErrorCode
from runnel.native.journal_batch import offset_key
from runnel.wire.batch import HEADER_SIZE
from runnel.wire.messages.offset_delete import (
    OffsetDeleteRequestTopic,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from runnel.coordinator.groups.machine import GroupMachine

TOMBSTONES_PER_BATCH: Final = 1000
BATCH_BYTES_MAX: Final = 500_000  # half of what most journals take: names of groups may be long
RECORD_BYTES: Final = 20  # of a tombstone in its batch, without its key


def delete_offsets(
    machine: "GroupMachine", group_id: str, topics: Sequence[OffsetDeleteRequestTopic]
) -> list[OffsetDeleteResponseTopic]:
    """Raises GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
    group = machine.group(group_id)
    group.ensure_may_delete_offsets()
    records: list[OffsetRecord] = []
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
                records.append((group_id, topic.name, index, None))
        answers.append(OffsetDeleteResponseTopic(name=topic.name, partitions=results))
    write_tombstones(machine, records)
    return answers


def _is_there(committed: CommittedOffsets, group_id: str, topic: str, index: int) -> bool:
    return committed.get(group_id, topic, index) is not None or committed.is_pending(
        group_id, topic, index
    )


def delete_group(machine: "GroupMachine", group_id: str) -> Iterator[None]:
    """With all its offsets. Gives others a turn where it yields: a group may have very many.

    Who joins meanwhile keeps the group, and what was deleted by then stays so.
    Raises GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, or that the journal refuses.
    """
    committed = machine.offsets.committed
    while True:
        machine.shard.write_gathered()
        group = machine.group(group_id)
        group.ensure_may_be_deleted()
        some: list[OffsetRecord] = [
            (group_id, topic, index, None)
            for topic, index in islice(committed.partitions_of(group_id), TOMBSTONES_PER_BATCH)
        ]
        write_tombstones(machine, some)
        if len(some) < TOMBSTONES_PER_BATCH:
            machine.shard.write(list(group.tombstones()))
            return
        yield


def write_tombstones(machine: "GroupMachine", records: Sequence[OffsetRecord]) -> None:
    """In batches that are not too large for the journal. Raises RunnelError."""
    bytes_max = min(BATCH_BYTES_MAX, machine.shard.journal.batch_bytes_max - HEADER_SIZE)
    first, room_bytes = 0, bytes_max
    keys = [offset_key(group, topic, index) for group, topic, index, _ in records]
    for at, key in enumerate(keys):
        size_bytes = len(key) + RECORD_BYTES
        if at > first and (size_bytes > room_bytes or at - first == TOMBSTONES_PER_BATCH):
            _write(machine, records[first:at], keys[first:at])
            first, room_bytes = at, bytes_max
        room_bytes -= size_bytes
    _write(machine, records[first:], keys[first:])


def _write(machine: "GroupMachine", records: Sequence[OffsetRecord], keys: Sequence[bytes]) -> None:
    if keys:
        machine.shard.append([(key, None) for key in keys])
        for record in records:
            machine.offsets.committed.replay(record, NO_PRODUCER_ID)
