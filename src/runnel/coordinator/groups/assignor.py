"""What an assignor on the broker is given."""

from collections.abc import Mapping
from typing import NamedTuple

from runnel.coordinator.groups.consumer_records import Target


class MemberSpec(NamedTuple):
    instance_id: str | None
    topic_ids: frozenset[bytes]  # that it subscribes to; topics that exist, only
    target: Target  # what it was to have before


class Spec(NamedTuple):
    members: Mapping[str, MemberSpec]  # in the order of their ids
    partition_counts: Mapping[bytes, int]  # of every topic that somebody subscribes to

    @property
    def is_homogeneous(self) -> bool:
        return len({member.topic_ids for member in self.members.values()}) <= 1
