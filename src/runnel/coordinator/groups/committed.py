"""Committed offsets of all groups of a shard, as the journal has them, and those in transactions.

Replay alone changes them. An offset that a producer sent to its transaction waits beside the
committed ones until the marker; if somebody committed the same partition meanwhile, the later
record wins, whenever the marker comes.
"""

from collections.abc import Iterator

from runnel.coordinator.groups.offset_records import CommittedOffset, OffsetRecord
from runnel.coordinator.runtime import NO_PRODUCER_ID

ByPartition = dict[str, dict[int, CommittedOffset]]  # by topic and index


class CommittedOffsets:
    """Owned by the machine of the shard."""

    def __init__(self) -> None:
        self._count = 0
        self.by_group: dict[str, ByPartition] = {}
        self._pending: dict[int, dict[str, ByPartition]] = {}  # by producer and group
        self._open: dict[str, dict[int, None]] = {}  # producers with a transaction, by group

    # Replay

    def next_order(self) -> int:
        """For an offset that is about to be replayed."""
        self._count += 1
        return self._count

    def replay(self, record: OffsetRecord, producer_id: int) -> None:
        group, topic, index, found = record
        if found is None:
            self._remove(group, topic, index)
            return
        if producer_id == NO_PRODUCER_ID:
            groups = self.by_group
        else:
            groups = self._pending.setdefault(producer_id, {})
            self._open.setdefault(group, {})[producer_id] = None
        topics = groups.get(group)
        if topics is None:
            topics = groups[group] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        partitions[index] = found

    def _remove(self, group: str, topic: str, index: int) -> None:
        """A tombstone also takes what waits in transactions."""
        topics = self.by_group.get(group)
        if topics is not None:
            _take(topics, topic, index)
            if not topics:
                del self.by_group[group]
        for producer_id in self._open.get(group, ()):
            _take(self._pending[producer_id][group], topic, index)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        for group, topics in self._pending.pop(producer_id, {}).items():
            producers = self._open[group]
            del producers[producer_id]
            if not producers:
                del self._open[group]
            if not is_commit:
                continue
            for topic, partitions in topics.items():
                there = self.by_group.setdefault(group, {}).setdefault(topic, {})
                for index, found in partitions.items():
                    if index not in there or there[index].order < found.order:
                        there[index] = found

    # Questions

    def get(self, group: str, topic: str, index: int) -> CommittedOffset | None:
        return self.by_group.get(group, {}).get(topic, {}).get(index)

    def is_pending(self, group: str, topic: str, index: int) -> bool:
        """Whether a transaction that is open will decide about it."""
        producers = self._open.get(group)
        if not producers:
            return False
        return any(
            index in self._pending[producer_id].get(group, {}).get(topic, {})
            for producer_id in producers
        )

    def has_open_transaction(self, group: str) -> bool:
        return group in self._open

    def partitions_of(self, group: str) -> Iterator[tuple[str, int]]:
        """All that a tombstone would remove: committed, or waiting in a transaction."""
        committed = self.by_group.get(group, {})
        for topic, partitions in committed.items():
            for index in partitions:
                yield topic, index
        seen: set[tuple[str, int]] = set()
        for producer_id in self._open.get(group, ()):
            for topic, partitions in self._pending[producer_id].get(group, {}).items():
                for index in partitions:
                    if index not in committed.get(topic, {}) and (topic, index) not in seen:
                        seen.add((topic, index))
                        yield topic, index


def _take(topics: ByPartition, topic: str, index: int) -> None:
    partitions = topics.get(topic)
    if partitions is not None and partitions.pop(index, None) is not None and not partitions:
        del topics[topic]
