"""What the members of a group shall have: computed anew for each epoch of the group."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from runnel.coordinator.groups.assignor import MemberSpec, Spec
from runnel.coordinator.groups.consumer_group import NO_TARGET, ConsumerGroup
from runnel.coordinator.groups.consumer_member import ConsumerMember
from runnel.coordinator.groups.consumer_records import Target
from runnel.coordinator.groups.range_assignor import assign_ranges
from runnel.coordinator.groups.topics_view import TopicsView
from runnel.coordinator.groups.uniform_assignor import assign_uniformly

ASSIGNORS = {"uniform": assign_uniformly, "range": assign_ranges}


class TopicHashes:
    """Tells whether topics are as they were: ids, partitions, racks. Owned by a shard.

    Any 64-bit hash does; only a broker that takes over a journal compares with another one's, and
    then assigns once more than it had to.
    """

    def __init__(self, topics: TopicsView) -> None:
        self._topics = topics
        self._revision = -1
        self._hashes: dict[str, bytes] = {}

    def of(self, names: Iterable[str]) -> int:
        """0 if none of them exists."""
        if self._revision != self._topics.revision:
            self._revision = self._topics.revision
            self._hashes = {}
        found = blake2b(digest_size=8)
        exists = False
        for name in sorted(names):
            if self._topics.partition_count(name):
                exists = True
                found.update(self._hashes.get(name) or self._add(name))
        return int.from_bytes(found.digest(), "big", signed=True) if exists else 0

    def _add(self, name: str) -> bytes:
        topics = self._topics
        count = topics.partition_count(name)
        found = blake2b(topics.id_of(name) or b"", digest_size=16)
        found.update(f"{name}/{count}".encode())
        for index in range(count):
            found.update(
                "".join(f"/{rack}" for rack in sorted(topics.racks_of(name, index))).encode()
            )
            found.update(b";")
        self._hashes[name] = found.digest()
        return found.digest()


def topic_ids(names: Iterable[str], topics: TopicsView) -> frozenset[bytes]:
    """Of those that exist."""
    ids = (topics.id_of(name) for name in names)
    return frozenset(each for each in ids if each is not None)


def compute_targets(
    group: ConsumerGroup,
    members: Mapping[str, ConsumerMember],
    topics: TopicsView,
    assignor: str,
) -> dict[str, Target]:
    """For these members, which may be about to replace those that the group has."""
    ids_of: dict[tuple[frozenset[str], str], frozenset[bytes]] = {}  # most subscribe alike
    counts: dict[bytes, int] = {}
    specs: dict[str, MemberSpec] = {}
    for member_id in sorted(members):
        member = members[member_id]
        subscription = (member.topics, member.regex)
        if subscription not in ids_of:
            names = group.topics_of(member)
            ids_of[subscription] = topic_ids(names, topics)
            for name in names:
                topic_id = topics.id_of(name)
                if topic_id is not None:
                    counts[topic_id] = topics.partition_count(name)
        before = group.targets.get(member_id)
        if before is None:
            before = group.target_of(member) if member.instance_id is not None else NO_TARGET
        specs[member_id] = MemberSpec(member.instance_id, ids_of[subscription], before)
    found = ASSIGNORS[assignor](Spec(specs, counts))
    return {member_id: found.get(member_id, NO_TARGET) for member_id in specs}
