"""Kafka's `range` assignor: of each topic every subscriber gets one run of partitions.

Members are taken in the same order for every topic, so that topics with as many partitions are
laid side by side, and a member that joins them finds the same keys in all.
"""

from runnel.coordinator.groups.assignor import MemberSpec, Spec
from runnel.coordinator.groups.consumer_records import Target


def assign_ranges(spec: Spec) -> dict[str, Target]:
    def order(entry: tuple[str, MemberSpec]) -> tuple[bool, str]:
        member_id, member = entry
        instance_id = member.instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    ordered = sorted(spec.members.items(), key=order)
    subscribers: dict[bytes, list[str]] = {}
    for member_id, member in ordered:
        for topic_id in member.topic_ids:
            subscribers.setdefault(topic_id, []).append(member_id)
    given: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id, _ in ordered}
    for topic_id, member_ids in subscribers.items():
        quota, extra = divmod(spec.partition_counts[topic_id], len(member_ids))
        start = 0
        for position, member_id in enumerate(member_ids):
            end = start + quota + (1 if position < extra else 0)
            if start < end:
                given[member_id][topic_id] = frozenset(range(start, end))
            start = end
    targets: dict[str, Target] = {}
    targets.update(given)
    return targets
