"""What every group answers, whichever protocol its members speak."""

from collections.abc import Collection
from enum import Enum
from typing import Protocol

from runnel.coordinator.records import JournalRecord


class GroupType(Enum):
    """As ListGroups and the tools spell it."""

    CLASSIC = "Classic"
    CONSUMER = "Consumer"


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

    def ensure_may_commit(
        self, member_id: str, instance_id: str | None, epoch: int, api_version: int
    ) -> None:
        """`epoch` is the generation of a classic member. Raises as R37 says."""

    def ensure_may_commit_in_transaction(
        self, member_id: str, instance_id: str | None, epoch: int
    ) -> None:
        """TxnOffsetCommit: producers without a group's metadata send -1 and no member."""

    def ensure_may_fetch(self, member_id: str | None, epoch: int) -> None:
        """OffsetFetch since v9 may say who asks. Raises UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH."""

    def ensure_may_be_deleted(self) -> None:
        """Raises NON_EMPTY_GROUP."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether an offset of the topic is in use, so that it neither expires nor is deleted."""

    def tombstones(self) -> Collection[JournalRecord]:
        """What ends the group itself; its offsets are not among it."""

    def offsets_expire_since_ms(self, committed_ms: int) -> int | None:
        """On the wall clock; None: they do not expire now."""
