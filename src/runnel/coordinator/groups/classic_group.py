"""A group whose members agree among themselves: the coordinator collects them, and one of them,
the leader, assigns the partitions.

Only a generation that has its assignment is persisted, as Kafka does: a restart in the middle of a
rebalance brings back the generation before, and its members join again. What lives between two
generations (who has joined, who waits) is therefore changed directly and not by replay.
"""

from collections.abc import Collection, Sequence
from enum import Enum
from typing import Final

from runnel.coordinator.groups.classic_member import ClassicMember
from runnel.coordinator.groups.group import EnsurePartition, GroupType
from runnel.coordinator.records import JournalRecord
from runnel.coordinator.runtime import Deferred
from runnel.coordinator.timers import Timer
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from runnel.wire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from runnel.wire.messages.records.group_metadata import GroupMetadataKey
from runnel.wire.messages.sync_group import SyncGroupResponse

CONSUMER_PROTOCOL_TYPE: Final = "consumer"


class ClassicState(Enum):
    """As DescribeGroups and ListGroups spell it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"  # waits for its members to join
    COMPLETING_REBALANCE = "CompletingRebalance"  # waits for the leader's assignment
    STABLE = "Stable"
    DEAD = "Dead"  # deleted; whoever still holds it must not use it


_EMPTY: Final = ClassicState.EMPTY  # found once: every commit would look for it, a microsecond long
_COMPLETING: Final = ClassicState.COMPLETING_REBALANCE
_DEAD: Final = ClassicState.DEAD
_NOT_AVAILABLE: Final = ErrorCode.COORDINATOR_NOT_AVAILABLE


class ClassicGroup:
    """`Group` of the classic protocol; without a protocol type one that only has offsets."""

    type: GroupType = GroupType.CLASSIC

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = ClassicState.EMPTY
        self.state_since_ms = -1  # wall clock; -1: not known
        self.generation_id = 0
        self.protocol_type = ""
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.subscribed_topics: frozenset[str] | None = None  # None: nobody here can tell
        self.static_members: dict[str, str] = {}  # instance id -> member id
        # They were given an id and are expected to join with it; the timer removes them.
        self.pending_members: dict[str, Timer] = {}
        self.pending_sync: set[str] = set()  # joined the generation, but did not sync yet
        self.joining_count = 0  # members that wait for the end of the join phase
        self.is_initial = False  # this rebalance began from an empty group
        self.has_new_member = False  # since the initial delay was last extended
        self.join_timer: Timer | None = None
        self.sync_timer: Timer | None = None
        self._supported: dict[str, int] = {}  # protocol name -> how many members know it
        self.metadata_bytes = 0  # of all protocols of all members

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def member_count(self) -> int:
        return len(self.members)

    @property
    def rebalance_count(self) -> int:
        return self.generation_id

    def move_to(self, state: ClassicState, now_ms: int) -> None:
        self.is_initial = (
            state is ClassicState.PREPARING_REBALANCE and self.state is ClassicState.EMPTY
        )
        self.state = state
        self.state_since_ms = now_ms

    # Members

    def add(self, member: ClassicMember) -> None:
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member, 1)
        self.forget_pending(member.member_id)

    def remove(self, member_id: str) -> None:
        """Its session ends; whatever it waits for must have been answered."""
        member = self.members.pop(member_id, None)
        if member is not None:
            assert member.joining is None
            self._count_protocols(member, -1)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
            if member.session is not None:
                member.session.end()
                member.session = None  # its timer knows the member: nothing else would part them
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.forget_pending(member_id)
        self.pending_sync.discard(member_id)

    def forget_pending(self, member_id: str) -> None:
        timer = self.pending_members.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    def await_join(self, member: ClassicMember, deferred: Deferred[JoinGroupResponse]) -> None:
        """A member that asks again, perhaps after its connection broke, waits but once."""
        displaced = JoinGroupResponse(
            error_code=ErrorCode.REBALANCE_IN_PROGRESS,
            member_id=member.member_id,
            protocol_name=None,
        )
        self.answer_join(member, displaced)
        member.joining = deferred
        self.joining_count += 1

    def answer_join(self, member: ClassicMember, response: JoinGroupResponse) -> None:
        deferred, member.joining = member.joining, None
        if deferred is not None:
            self.joining_count -= 1
            deferred.answer(response)

    def answer_sync(self, member: ClassicMember, response: SyncGroupResponse) -> None:
        """While it waited its session may have run out unnoticed: it has a whole one from here."""
        deferred, member.syncing = member.syncing, None
        if deferred is not None:
            deferred.answer(response)
            member.extend_session()

    def has_all_joined(self) -> bool:
        return self.joining_count == len(self.members) and not self.pending_members

    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # Protocols

    def _count_protocols(self, member: ClassicMember, change: int) -> None:
        self.metadata_bytes += change * member.metadata_bytes()
        for name in member.protocol_names():
            count = self._supported.get(name, 0) + change
            if count:
                self._supported[name] = count
            else:
                del self._supported[name]

    def replace_protocols(
        self, member: ClassicMember, protocols: Sequence[JoinGroupRequestProtocol]
    ) -> None:
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether a member that knows these protocols could be one of the group."""
        if self.state is ClassicState.EMPTY:
            return bool(protocol_type and names)
        count = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._supported.get(name, 0) == count for name in names
        )

    def select_protocol(self) -> str:
        """What most members like best among what all of them know."""
        count = len(self.members)
        candidates = {name for name, knowing in self._supported.items() if knowing == count}
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.vote(candidates)
            votes[name] = votes.get(name, 0) + 1
        return max(votes, key=lambda name: votes[name])

    # What others may do with the group

    def ensure_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is not None and current != member_id:
                raise RunnelError(
                    ErrorCode.FENCED_INSTANCE_ID, f"{member_id} is fenced by {current}"
                )
            if current is None:
                raise RunnelError(ErrorCode.UNKNOWN_MEMBER_ID, f"no instance {instance_id}")
        member = self.members.get(member_id)
        if member is None:
            raise RunnelError(ErrorCode.UNKNOWN_MEMBER_ID, f"no member {member_id}")
        return member

    def ensure_may_commit(
        self, member_id: str, instance_id: str | None, epoch: int, api_version: int
    ) -> EnsurePartition | None:
        if self._ensure_commits(member_id, instance_id, epoch):
            return None
        if epoch < 0 and not member_id and instance_id is None:
            raise RunnelError(ErrorCode.UNKNOWN_MEMBER_ID, f"{self.group_id} has members")
        if self.state is _COMPLETING:
            raise RunnelError(ErrorCode.REBALANCE_IN_PROGRESS, self.group_id)
        self.members[member_id].extend_session()
        return None

    def ensure_may_commit_in_transaction(
        self, member_id: str, instance_id: str | None, epoch: int
    ) -> EnsurePartition | None:
        self._ensure_commits(member_id, instance_id, epoch)
        return None

    def _ensure_commits(self, member_id: str, instance_id: str | None, epoch: int) -> bool:
        """Whether nothing more need be asked: an administrator may commit for an empty group."""
        if epoch < 0 and self.state is _EMPTY:
            return True
        self._ensure_alive(_NOT_AVAILABLE)
        if epoch >= 0 or member_id or instance_id is not None:
            self.ensure_member(member_id, instance_id)
            if epoch != self.generation_id:
                raise RunnelError(
                    ErrorCode.ILLEGAL_GENERATION, f"{epoch} is not {self.generation_id}"
                )
        return False

    def ensure_may_fetch(self, member_id: str | None, epoch: int) -> None:
        self._ensure_alive(ErrorCode.GROUP_ID_NOT_FOUND)

    def ensure_may_delete_offsets(self) -> None:
        if not self.uses_consumer_protocol:
            self.ensure_may_be_deleted()
        self._ensure_alive(ErrorCode.GROUP_ID_NOT_FOUND)

    def ensure_may_be_deleted(self) -> None:
        self._ensure_alive(ErrorCode.GROUP_ID_NOT_FOUND)
        if self.state is not ClassicState.EMPTY:
            raise RunnelError(ErrorCode.NON_EMPTY_GROUP, f"{self.group_id} has members")

    def _ensure_alive(self, code: ErrorCode) -> None:
        if self.state is _DEAD:
            raise RunnelError(code, f"Group {self.group_id} is in dead state.")

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def described(self) -> DescribedGroup | None:
        """What a member's protocol says is shown only while one protocol is agreed on."""
        is_stable = self.state is ClassicState.STABLE
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            protocol_type=self.protocol_type,
            protocol_data=(self.protocol_name or "") if is_stable else "",
            members=[
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata(self.protocol_name) if is_stable else b"",
                    member_assignment=member.assignment,
                )
                for member in self.members.values()
            ],
        )

    def tombstones(self) -> Collection[JournalRecord]:
        return (JournalRecord(GroupMetadataKey(group=self.group_id), None),)

    def offsets_expire_since_ms(self, committed_ms: int) -> int | None:
        if not self.protocol_type:
            return committed_ms
        if self.state is ClassicState.EMPTY:
            return committed_ms if self.state_since_ms < 0 else self.state_since_ms
        if (
            self.state is ClassicState.STABLE
            and self.uses_consumer_protocol
            and self.subscribed_topics is not None
        ):
            return committed_ms
        return None
