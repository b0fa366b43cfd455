"""A consumer group (KIP-848): its epochs, its members, who shall have and who has which partition.

All of it follows from the journal. A partition has at most one owner: a member to which it is
assigned, or that has been told to give it up and has not confirmed.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from runnel.coordinator.groups.consumer_commits import ensure_commits, ensure_in_epoch
from runnel.coordinator.groups.consumer_member import LEAVING, NOTHING, ConsumerMember
from runnel.coordinator.groups.consumer_records import (
    Target,
    group_tombstones,
)
from runnel.coordinator.groups.group import EnsurePartition, GroupType
from runnel.coordinator.records import JournalRecord
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.describe_groups import DescribedGroup
from runnel.wire.messages.records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
)
from runnel.wire.messages.records.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from runnel.wire.messages.records.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from runnel.wire.messages.records.consumer_group_partition_metadata import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from runnel.wire.messages.records.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from runnel.wire.messages.records.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
)
from runnel.wire.messages.records.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

FIRST_COMMIT_WITH_EPOCHS = 9  # OffsetCommit's version
FIRST_EPOCH = 1  # so that no member is ever in epoch 0, which means joining
NO_TARGET: Target = {}


@dataclass(frozen=True, slots=True)
class Resolved:
    """Which topics a regular expression stood for, when it was last looked up."""

    topics: frozenset[str]
    version: int  # of the cluster's metadata
    timestamp_ms: int


class ConsumerGroup:
    """`groups.Group`, changed by `replay` alone, save the soft fields."""

    type = GroupType.CONSUMER
    protocol_type = "consumer"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0  # of the subscribed topics, as of this epoch
        self.members: dict[str, ConsumerMember] = {}
        self.static_ids: dict[str, str] = {}  # the member of each instance
        self.target_epoch = FIRST_EPOCH  # with nothing in it, which nobody computes
        self.target_timestamp_ms = 0
        self.targets: dict[str, Target] = {}  # by member
        self.resolved: dict[str, Resolved] = {}  # by regular expression
        self.has_partition_metadata = False
        self._owners: dict[bytes, dict[int, str]] = {}
        self._subscribed: frozenset[str] | None = frozenset()
        self._regexes: set[str] | None = set()
        self.checked_revision = -1  # soft: of the topics, when the hash was last compared
        self.regexes_looked_up_in = -1  # soft: the names of topics that `resolved` is of

    # What every group answers

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def member_count(self) -> int:
        return len(self.members)

    @property
    def rebalance_count(self) -> int:
        return self.epoch

    def ensure_may_commit(
        self, member_id: str, instance_id: str | None, epoch: int, api_version: int
    ) -> EnsurePartition | None:
        if epoch < 0 and not self.members:
            return None  # an admin client moves the offsets of a group that is not in use
        member = self.member(member_id)
        if member.classic is None and api_version < FIRST_COMMIT_WITH_EPOCHS:
            raise RunnelError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the consumer group "
                "protocol",
            )
        return ensure_commits(member, epoch)

    def ensure_may_commit_in_transaction(
        self, member_id: str, instance_id: str | None, epoch: int
    ) -> EnsurePartition | None:
        if epoch < 0 and not self.members:
            return None
        if epoch == -1 and not member_id and instance_id is None:
            return None  # a producer that does not know of the group's members
        return ensure_commits(self.member(member_id), epoch)

    def ensure_may_fetch(self, member_id: str | None, epoch: int) -> None:
        if member_id is None and epoch < 0:
            return
        ensure_in_epoch(self.member(member_id or ""), epoch)

    def ensure_may_delete_offsets(self) -> None: ...

    def ensure_may_be_deleted(self) -> None:
        if self.members:
            raise RunnelError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics()

    def described(self) -> DescribedGroup | None:
        return None

    def tombstones(self) -> Collection[JournalRecord]:
        return group_tombstones(self.group_id, self.members, self.resolved)

    def offsets_expire_since_ms(self, committed_ms: int) -> int | None:
        return committed_ms

    # Who is who

    def member(self, member_id: str) -> ConsumerMember:
        """Raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise RunnelError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static_ids.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member: ConsumerMember) -> Target:
        """A static member that came back under a new id takes over from its former self."""
        before = self.static_member(member.instance_id)
        member_id = member.member_id if before is None else before.member_id
        return self.targets.get(member_id, NO_TARGET)

    def is_owned(self, topic_id: bytes, index: int) -> bool:
        return index in self._owners.get(topic_id, ())

    # What is subscribed to

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """By name and by expression; one that is not resolved yet stands for nothing."""
        resolved = self.resolved.get(member.regex) if member.regex else None
        return member.topics if resolved is None else member.topics | resolved.topics

    def subscribed_topics(self) -> frozenset[str]:
        if self._subscribed is None:
            self._subscribed = self.topics_subscribed_by(self.members.values())
        return self._subscribed

    def topics_subscribed_by(
        self,
        members: Iterable[ConsumerMember],
        resolved: Mapping[str, Resolved] | None = None,
    ) -> frozenset[str]:
        """By all of these together. `resolved`: what the expressions are to stand for."""
        resolved = self.resolved if resolved is None else resolved
        names: set[str] = set()
        by_name: set[frozenset[str]] = set()
        regexes: set[str] = set()
        for member in members:
            by_name.add(member.topics)
            regexes.add(member.regex)
        for each in by_name:
            names |= each
        for regex in regexes:
            if regex in resolved:
                names |= resolved[regex].topics
        return frozenset(names)

    def regexes(self) -> set[str]:
        """That its members subscribe to."""
        if self._regexes is None:
            self._regexes = {member.regex for member in self.members.values() if member.regex}
        return self._regexes

    def subscriber_count(self, regex: str) -> int:
        return sum(member.regex == regex for member in self.members.values())

    def preferred_assignor(self, members: Iterable[ConsumerMember]) -> str | None:
        """The one that most of the members name."""
        named = Counter(each.server_assignor for each in members if each.server_assignor)
        return max(sorted(named), key=named.__getitem__) if named else None

    # From the journal

    def replay(self, key: Any, value: Any | None) -> None:  # noqa: ANN401  # of many kinds
        """Any record of this group; a tombstone of what is not there changes nothing."""
        _REPLAYS[type(key)](self, key, value)

    def _replay_epoch(
        self, key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None
    ) -> None:
        self.epoch = FIRST_EPOCH if value is None else value.epoch
        self.metadata_hash = 0 if value is None else value.metadata_hash

    def _replay_member(
        self,
        key: ConsumerGroupMemberMetadataKey,
        value: ConsumerGroupMemberMetadataValue | None,
    ) -> None:
        if value is None:
            self._remove(key.member_id)
        else:
            self._put(self._known(key.member_id).with_metadata(value))
        self._subscribed = self._regexes = None

    def _replay_current(
        self,
        key: ConsumerGroupCurrentMemberAssignmentKey,
        value: ConsumerGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        if value is not None:
            self._put(self._known(key.member_id).with_assignment(value))
        elif key.member_id in self.members:
            self._put(
                replace(
                    self.members[key.member_id],
                    epoch=LEAVING,
                    previous_epoch=LEAVING,
                    assigned=NOTHING,
                    pending_revocation=NOTHING,
                )
            )

    def _replay_target(
        self,
        key: ConsumerGroupTargetAssignmentMemberKey,
        value: ConsumerGroupTargetAssignmentMemberValue | None,
    ) -> None:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = {
                topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions
            }

    def _replay_target_epoch(
        self,
        key: ConsumerGroupTargetAssignmentMetadataKey,
        value: ConsumerGroupTargetAssignmentMetadataValue | None,
    ) -> None:
        self.target_epoch = -1 if value is None else value.assignment_epoch
        self.target_timestamp_ms = 0 if value is None else value.assignment_timestamp

    def _replay_regex(
        self,
        key: ConsumerGroupRegularExpressionKey,
        value: ConsumerGroupRegularExpressionValue | None,
    ) -> None:
        if value is None:
            self.resolved.pop(key.regular_expression, None)
        else:
            self.resolved[key.regular_expression] = Resolved(
                frozenset(value.topics), value.version, value.timestamp
            )
        self._subscribed = None

    def _replay_partition_metadata(
        self,
        key: ConsumerGroupPartitionMetadataKey,
        value: ConsumerGroupPartitionMetadataValue | None,
    ) -> None:
        self.has_partition_metadata = value is not None

    def _known(self, member_id: str) -> ConsumerMember:
        return self.members.get(member_id) or ConsumerMember(member_id=member_id)

    def _put(self, member: ConsumerMember) -> None:
        self._release(member.member_id)
        self.members[member.member_id] = member
        for owned in (member.assigned, member.pending_revocation):
            for topic_id, epochs in owned.items():
                owners = self._owners.setdefault(topic_id, {})
                for index in epochs:
                    owners[index] = member.member_id
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id

    def _remove(self, member_id: str) -> None:
        self._release(member_id)
        member = self.members.pop(member_id, None)
        if member is not None and self.static_ids.get(member.instance_id or "") == member_id:
            del self.static_ids[member.instance_id or ""]

    def _release(self, member_id: str) -> None:
        """What it owned is free, save what has another owner since.

        The latter is no contradiction in a compacted journal, where only the last word of each
        member is kept.
        """
        member = self.members.get(member_id)
        if member is None:
            return
        for owned in (member.assigned, member.pending_revocation):
            for topic_id, epochs in owned.items():
                owners = self._owners.get(topic_id, {})
                for index in epochs:
                    if owners.get(index) == member_id:
                        del owners[index]


_REPLAYS: Final[dict[type[Any], Callable[[ConsumerGroup, Any, Any | None], None]]] = {
    ConsumerGroupMetadataKey: ConsumerGroup._replay_epoch,
    ConsumerGroupMemberMetadataKey: ConsumerGroup._replay_member,
    ConsumerGroupCurrentMemberAssignmentKey: ConsumerGroup._replay_current,
    ConsumerGroupTargetAssignmentMemberKey: ConsumerGroup._replay_target,
    ConsumerGroupTargetAssignmentMetadataKey: ConsumerGroup._replay_target_epoch,
    ConsumerGroupRegularExpressionKey: ConsumerGroup._replay_regex,
    ConsumerGroupPartitionMetadataKey: ConsumerGroup._replay_partition_metadata,
}
