"""A group that nobody is a member of: somebody committed offsets under its name."""

from collections.abc import Collection

from runnel.coordinator.groups.group import EnsurePartition, GroupType
from runnel.coordinator.records import JournalRecord
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.describe_groups import DescribedGroup
from runnel.wire.messages.records.group_metadata import GroupMetadataKey


class SimpleGroup:
    """`group.Group`: empty, classic, without a protocol type. It lasts as long as its offsets."""

    type = GroupType.CLASSIC
    state_name = "Empty"
    protocol_type = ""
    member_count = 0

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id

    def ensure_may_commit(
        self, member_id: str, instance_id: str | None, epoch: int, api_version: int
    ) -> EnsurePartition | None:
        if epoch >= 0:
            raise RunnelError(ErrorCode.UNKNOWN_MEMBER_ID, "the group has no members")
        return None

    def ensure_may_commit_in_transaction(
        self, member_id: str, instance_id: str | None, epoch: int
    ) -> EnsurePartition | None:
        return self.ensure_may_commit(member_id, instance_id, epoch, -1)

    def ensure_may_fetch(self, member_id: str | None, epoch: int) -> None: ...
    def ensure_may_delete_offsets(self) -> None: ...
    def ensure_may_be_deleted(self) -> None: ...

    def is_subscribed_to(self, topic: str) -> bool:
        return False

    def described(self) -> DescribedGroup | None:
        return DescribedGroup(group_id=self.group_id, group_state=self.state_name)

    def tombstones(self) -> Collection[JournalRecord]:
        return [JournalRecord(GroupMetadataKey(group=self.group_id), None)]

    def offsets_expire_since_ms(self, committed_ms: int) -> int | None:
        return committed_ms
