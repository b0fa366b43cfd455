"""All groups of one shard: which records change what, and which group is meant.

The protocols live beside this: `classic_*.py`, `consumer_*.py`, `offsets.py`. Each of them decides
over the groups it is given, and writes through the shard.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from runnel.config.coordination import GroupSettings
from runnel.coordinator.groups.classic import ClassicProtocol
from runnel.coordinator.groups.classic_group import ClassicGroup
from runnel.coordinator.groups.consumer_protocol import ConsumerProtocol
from runnel.coordinator.groups.consumer_records import KEYS as CONSUMER_GROUP_KEYS
from runnel.coordinator.groups.expiry import Expiry
from runnel.coordinator.groups.group import Group
from runnel.coordinator.groups.offset_records import KEY_PREFIX
from runnel.coordinator.groups.offsets import Offsets
from runnel.coordinator.groups.topics_view import TopicsView
from runnel.coordinator.records import JournalRecord, Kinds, kinds_of
from runnel.coordinator.runtime import NO_PRODUCER_ID, Shard, Straight
from runnel.errors import ErrorCode, RunnelError
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
from runnel.wire.messages.records.group_metadata import GroupMetadataKey, GroupMetadataValue
from runnel.wire.messages.records.legacy_offset_commit import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
)
from runnel.wire.messages.records.offset_commit import OffsetCommitKey, OffsetCommitValue

KINDS: Final = kinds_of(
    (LegacyOffsetCommitKey, LegacyOffsetCommitValue),
    (OffsetCommitKey, OffsetCommitValue),
    (GroupMetadataKey, GroupMetadataValue),
    (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
)


class GroupMachine:
    """`runtime.Machine` of one partition of `__consumer_offsets`."""

    kinds: Kinds = KINDS

    def __init__(
        self,
        shard: "Shard[GroupMachine]",
        settings: Callable[[], GroupSettings],
        topics: TopicsView,
        random: Random,
        configs_of: Callable[[str], Mapping[str, str]] = lambda _group_id: {},
    ) -> None:
        self.shard = shard
        self.settings = settings  # as they are at that moment
        self.topics = topics
        self.random = random  # for the ids of members
        self.configs_of = configs_of  # what was set for a group by itself, as text
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets(self)
        self.classic = ClassicProtocol(self)
        self._expiry = Expiry(self, self.offsets)
        self.consumer = ConsumerProtocol(self)
        self.straight: Straight = {KEY_PREFIX: self.offsets.replay_bytes}
        # What a record of this key means, for all that are never part of a transaction.
        self._replays: dict[type[Any], Callable[[Any, Any | None], None]] = {
            GroupMetadataKey: self.classic.replay,
            **dict.fromkeys(CONSUMER_GROUP_KEYS, self.consumer.replay),
        }

    def setting(self, group_id: str, name: str, default: int) -> int:
        """Kafka's name of a group's setting (KIP-848), and what holds for all groups."""
        text = self.configs_of(group_id).get(name)
        return default if text is None else int(text)

    def group(self, group_id: str) -> Group:
        """Raises GROUP_ID_NOT_FOUND."""
        group = self.groups.get(group_id)
        if group is None:
            raise RunnelError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def ensure_group(self, group_id: str) -> None:
        """An offset in the journal: if there is no such group, it is one without members."""
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id)

    def replay(self, record: JournalRecord, producer_id: int = NO_PRODUCER_ID) -> None:
        """By the type of the key."""
        key, value, _ = record
        kind = type(key)
        if kind is OffsetCommitKey:
            self.offsets.replay(key, value, producer_id)
        elif kind is LegacyOffsetCommitKey:
            self.offsets.replay_legacy(key, value, producer_id)
        elif kind in self._replays:
            self._replays[kind](key, value)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Offsets that the producer sent to its transaction count now, or never did."""
        self.offsets.committed.end_transaction(producer_id, is_commit=is_commit)

    def loaded(self) -> None:
        """Members that were there before get a whole session to be heard of again."""
        self.classic.loaded()
        self.consumer.loaded()
        self._expiry.start()

    def topics_deleted(self, deleted: Mapping[str, bytes]) -> None:
        """By name, with their ids."""
        self._expiry.topics_deleted(deleted)
