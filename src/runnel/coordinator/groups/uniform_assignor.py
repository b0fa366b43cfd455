"""Kafka's `uniform` assignor: every member gets as many partitions as any other, give or take one.

It is sticky: what a member was to have stays with it, unless it has too much. If all members
subscribe to the same topics, one pass over the quotas does it. Else partitions go to the least
loaded subscriber, and then, topic by topic, from the most loaded to the least loaded ones.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Final

from runnel.coordinator.groups.assignor import Spec
from runnel.coordinator.groups.consumer_records import Target

ROUNDS_MAX: Final = 16  # over all topics, while there is something to balance


def assign_uniformly(spec: Spec) -> dict[str, Target]:
    if not spec.members or not any(each.topic_ids for each in spec.members.values()):
        return {}
    if spec.is_homogeneous:
        return _same_topics(spec)
    return _Balancer(spec).assign()


def _same_topics(spec: Spec) -> dict[str, Target]:
    topic_ids = next(iter(spec.members.values())).topic_ids
    counts = {topic_id: spec.partition_counts[topic_id] for topic_id in sorted(topic_ids)}
    quota, extra = divmod(sum(counts.values()), len(spec.members))
    given: dict[str, dict[bytes, set[int]]] = {}
    taken: dict[bytes, set[int]] = {topic_id: set() for topic_id in counts}
    unfilled: list[tuple[str, int]] = []
    most_first = sorted(spec.members, key=lambda each: -_size(spec.members[each].target))
    for member_id in most_first:  # so that those who have one more may keep it
        member = spec.members[member_id]
        room = quota + (1 if extra > 0 else 0)
        extra -= 1
        kept: dict[bytes, set[int]] = {}
        for topic_id, partitions in sorted(member.target.items()):
            count = counts.get(topic_id, 0)
            if not count:
                continue
            valid = (index for index in partitions if index < count)
            wanted = sorted(index for index in valid if index not in taken[topic_id])[:room]
            if wanted:
                kept[topic_id] = set(wanted)
                taken[topic_id].update(wanted)
                room -= len(wanted)
        given[member_id] = kept
        if room:
            unfilled.append((member_id, room))
    free = [
        (topic_id, index)
        for topic_id, count in counts.items()
        for index in range(count)
        if index not in taken[topic_id]
    ]
    position = 0
    for member_id, room in unfilled:
        for topic_id, index in free[position : position + room]:
            given[member_id].setdefault(topic_id, set()).add(index)
        position += room
    return _frozen(given)


def _size(target: Target) -> int:
    return sum(map(len, target.values()))


def _frozen(given: Mapping[str, Mapping[bytes, set[int]]]) -> dict[str, Target]:
    return {
        member_id: {topic_id: frozenset(indexes) for topic_id, indexes in topics.items() if indexes}
        for member_id, topics in given.items()
    }


class _Balancer:
    """Members are numbered; loads and owners are by that number."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._ids = list(spec.members)
        self._given: list[dict[bytes, set[int]]] = [{} for _ in self._ids]
        self._loads = [0] * len(self._ids)
        self._subscribers: dict[bytes, list[int]] = {}
        for number, member in enumerate(spec.members.values()):
            for topic_id in member.topic_ids:
                self._subscribers.setdefault(topic_id, []).append(number)

        def order(topic_id: bytes) -> tuple[float, int, bytes]:
            """Those with most partitions per subscriber first: they leave least choice."""
            count, among = spec.partition_counts[topic_id], len(self._subscribers[topic_id])
            return -count / among, among, topic_id

        self._topics = sorted(self._subscribers, key=order)

    def assign(self) -> dict[str, Target]:
        taken: dict[bytes, set[int]] = {topic_id: set() for topic_id in self._topics}
        for number, member in enumerate(self._spec.members.values()):
            for topic_id, partitions in member.target.items():
                if topic_id not in member.topic_ids:
                    continue
                count = self._spec.partition_counts[topic_id]
                for index in partitions:
                    if index < count and index not in taken[topic_id]:
                        taken[topic_id].add(index)
                        self._give(topic_id, index, number)
        for topic_id in self._topics:
            self._fill(topic_id, taken[topic_id])
        shared = [each for each in self._topics if len(self._subscribers[each]) > 1]
        for _ in range(ROUNDS_MAX):
            if not sum(self._balance(topic_id) for topic_id in shared):
                break
        return _frozen(dict(zip(self._ids, self._given, strict=True)))

    def _give(self, topic_id: bytes, index: int, number: int) -> None:
        self._given[number].setdefault(topic_id, set()).add(index)
        self._loads[number] += 1

    def _fill(self, topic_id: bytes, taken: set[int]) -> None:
        heap = [(self._loads[number], number) for number in self._subscribers[topic_id]]
        heapify(heap)
        for index in range(self._spec.partition_counts[topic_id]):
            if index not in taken:
                load, number = heappop(heap)
                self._give(topic_id, index, number)
                heappush(heap, (load + 1, number))

    def _balance(self, topic_id: bytes) -> int:
        """How many partitions of the topic changed hands."""
        subscribers = self._subscribers[topic_id]
        least = [(self._loads[number], number) for number in subscribers]
        heapify(least)
        most = [
            (-self._loads[number], -number)
            for number in subscribers
            if self._given[number].get(topic_id)
        ]
        heapify(most)
        moved = 0
        while most:
            load, number = heappop(most)
            giver = -number
            lowest, taker = least[0]
            while lowest != self._loads[taker]:  # an entry from before it gave something away
                heappop(least)
                heappush(least, (self._loads[taker], taker))
                lowest, taker = least[0]
            if -load != self._loads[giver]:
                heappush(most, (-self._loads[giver], number))
                continue
            if -load - lowest <= 1:
                break
            index = max(self._given[giver][topic_id])
            self._given[giver][topic_id].discard(index)
            self._loads[giver] -= 1
            self._give(topic_id, index, taker)
            heappop(least)
            heappush(least, (self._loads[taker], taker))
            if self._given[giver][topic_id]:
                heappush(most, (-self._loads[giver], number))
            moved += 1
        return moved
