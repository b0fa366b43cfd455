"""Offsets that nobody needs any more: kept for too long, or of topics that are gone.

A group goes with its last offset, unless it has members. The walk over all groups is taken in
steps, because a shard may hold very many offsets and the loop must not wait for it.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from runnel.coordinator.groups.committed import ByPartition
from runnel.coordinator.groups.group import Group
from runnel.coordinator.groups.offset_deletion import TOMBSTONES_PER_BATCH, write_tombstones
from runnel.coordinator.groups.offset_records import NO_TIMESTAMP, CommittedOffset, OffsetRecord
from runnel.coordinator.groups.offsets import Offsets
from runnel.errors import RunnelError
from runnel.types import NO_TOPIC_ID

if TYPE_CHECKING:
    from runnel.coordinator.groups.machine import GroupMachine

OFFSETS_PER_STEP: Final = 2000


class Expiry:
    """Part of the machine."""

    def __init__(self, machine: "GroupMachine", offsets: Offsets) -> None:
        self._machine = machine
        self._offsets = offsets
        self._timer = machine.shard.timer(self._step)
        self._to_visit: list[str] = []
        self._gone: list[OffsetRecord] = []  # of deleted topics, as they were found
        self._removal = machine.shard.timer(self._remove_some)

    def start(self) -> None:
        """The shard is loaded. Topics may have been deleted while nobody could note it."""
        topics = self._machine.topics
        committed = self._offsets.committed.by_group
        named = {topic for by_topic in committed.values() for topic in by_topic}
        self.topics_deleted({topic: None for topic in named if topics.id_of(topic) is None})
        self._wait()

    def _wait(self) -> None:
        interval_ms = self._machine.settings().offsets_retention_check_interval_ms
        self._timer.start(self._machine.shard.clock.monotonic_ms() + interval_ms)

    def _step(self) -> None:
        """Some groups, and the rest in the next turns of the loop; then nothing for a while."""
        if not self._to_visit:
            self._to_visit = list(self._machine.groups)
        seen = 0
        try:
            while self._to_visit and seen < OFFSETS_PER_STEP:
                group = self._machine.groups.get(self._to_visit.pop())
                if group is not None:
                    seen += 1 + self._visit(group)
        except RunnelError:
            self._to_visit.clear()  # the journal refuses; the next walk tries again
        if self._to_visit:
            self._timer.start(self._machine.shard.clock.monotonic_ms())
        else:
            self._wait()

    def _visit(self, group: Group) -> int:
        """Expire what is due. How many offsets were looked at. Raises RunnelError."""
        group_id, committed = group.group_id, self._offsets.committed
        by_topic = committed.by_group.get(group_id, {})
        count = sum(map(len, by_topic.values()))
        expired = list(islice(self._due(group, by_topic), OFFSETS_PER_STEP))
        if len(expired) == OFFSETS_PER_STEP:
            self._to_visit.append(group_id)  # there may be more
        write_tombstones(self._machine, expired)
        if len(expired) == count and not committed.has_open_transaction(group_id):
            self._end(group)
        return count

    def _due(self, group: Group, by_topic: ByPartition) -> Iterator[OffsetRecord]:
        """A tombstone for each that is."""
        if group.offsets_expire_since_ms(0) is None:
            return
        group_id, committed = group.group_id, self._offsets.committed
        now_ms = self._machine.shard.clock.wall_ms()
        for topic, by_index in by_topic.items():
            if not group.is_subscribed_to(topic):
                for index, found in by_index.items():
                    if self._is_due(group, found, now_ms) and not committed.is_pending(
                        group_id, topic, index
                    ):
                        yield group_id, topic, index, None

    def _is_due(self, group: Group, found: CommittedOffset, now_ms: int) -> bool:
        if found.expire_timestamp_ms != NO_TIMESTAMP:
            return now_ms >= found.expire_timestamp_ms
        since_ms = group.offsets_expire_since_ms(found.commit_timestamp_ms)
        return (
            since_ms is not None
            and now_ms - since_ms >= self._machine.settings().offsets_retention_ms
        )

    def _end(self, group: Group) -> None:
        """It has no offsets. If it has no members either, it is no group any more."""
        try:
            group.ensure_may_be_deleted()
        except RunnelError:
            return
        self._machine.shard.write(list(group.tombstones()))

    def topics_deleted(self, deleted: Mapping[str, bytes | None]) -> None:
        """By name, with the id of what was deleted. Their offsets go with them.

        What was committed by another id stays: the topic has been made anew since. Without an id
        all of them go. If the journal refuses, the next start tries again.
        """
        committed = self._offsets.committed
        for group_id in self._machine.groups if deleted else ():
            by_topic = committed.by_group.get(group_id, {})
            if committed.has_open_transaction(group_id) or not by_topic.keys().isdisjoint(deleted):
                self._gone += [
                    (group_id, topic, index, found)
                    for topic, index in committed.partitions_of(group_id)
                    if topic in deleted
                    and _is_of(found := committed.get(group_id, topic, index), deleted[topic])
                ]
        self._remove_some()

    def _remove_some(self) -> None:
        """Some now, the rest in the next turns of the loop, unless committed anew meanwhile."""
        some, self._gone = self._gone[:TOMBSTONES_PER_BATCH], self._gone[TOMBSTONES_PER_BATCH:]
        committed = self._offsets.committed
        tombstones: list[OffsetRecord] = [
            (group, topic, index, None)
            for group, topic, index, found in some
            if committed.get(group, topic, index) is found
        ]
        try:
            write_tombstones(self._machine, tombstones)
        except RunnelError:
            self._gone.clear()
        if self._gone:
            self._removal.start(self._machine.shard.clock.monotonic_ms())


def _is_of(found: CommittedOffset | None, topic_id: bytes | None) -> bool:
    if found is None or found.topic_id == NO_TOPIC_ID or topic_id is None:
        return True
    return found.topic_id == topic_id
