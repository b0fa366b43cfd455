"""What every group answers, whichever protocol its members speak."""

from collections.abc import Callable, Collection
from enum import Enum
from typing import Protocol

from runnel.coordinator.records import JournalRecord
from runnel.wire.messages.describe_groups import DescribedGroup

EnsurePartition = Callable[[str, bytes, int], None]


class GroupType(Enum):
    """As ListGroups and the tools spell it."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class Group(Protocol):
    """One group of a shard, in `GroupMachine.groups`. A group that only has offsets is a classic
    one without members."""

    group_id: str
    type: GroupType

    @property
    def state_name(self) -> str:
        """As DescribeGroups and ListGroups spell it: Empty, Stable, Reconciling..."""

    @property
    def protocol_type(self) -> str: ...

    @property
    def member_count(self) -> int: ...

    @property
    def rebalance_count(self) -> int:
        """Its generation or epoch: another one after each rebalance."""

    def ensure_may_commit(
        self, member_id: str, instance_id: str | None, epoch: int, api_version: int
    ) -> EnsurePartition | None:
        """`epoch` is the generation of a classic member. Raises as R37 says.

        What is returned is asked for every partition (name, id or zeros, index) and raises for the
        whole request: a consumer may commit in an older epoch what has been its own since
        (KIP-1251). A commit is also a sign of life of a classic member.
        """

    def ensure_may_commit_in_transaction(
        self, member_id: str, instance_id: str | None, epoch: int
    ) -> EnsurePartition | None:
        """TxnOffsetCommit: producers without a group's metadata send -1 and no member."""

    def ensure_may_fetch(self, member_id: str | None, epoch: int) -> None:
        """OffsetFetch since v9 may say who asks. Raises UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH."""

    def ensure_may_delete_offsets(self) -> None:
        """OffsetDelete. Raises NON_EMPTY_GROUP if nobody knows what its members subscribe to."""

    def ensure_may_be_deleted(self) -> None:
        """Raises NON_EMPTY_GROUP."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether an offset of the topic is in use, so that it neither expires nor is deleted."""

    def described(self) -> DescribedGroup | None:
        """For DescribeGroups; None: the group does not speak the classic protocol."""

    def tombstones(self) -> Collection[JournalRecord]:
        """What ends the group itself; its offsets are not among it."""

    def offsets_expire_since_ms(self, committed_ms: int) -> int | None:
        """On the wall clock; None: they do not expire now."""
