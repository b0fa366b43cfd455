"""The classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and the groups' record.

Everything is decided here, at once; joins and syncs that have to wait for others are deferred.
"""

from typing import TYPE_CHECKING, Final

from runnel.coordinator.groups.classic_answers import not_synced, synced
from runnel.coordinator.groups.classic_group import ClassicGroup, ClassicState
from runnel.coordinator.groups.classic_join import ClassicJoin
from runnel.coordinator.groups.classic_rebalance import ClassicRebalance
from runnel.coordinator.groups.classic_records import restore, snapshot
from runnel.coordinator.groups.consumer_group import ConsumerGroup
from runnel.coordinator.runtime import Deferred
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.heartbeat import HeartbeatRequest
from runnel.wire.messages.leave_group import MemberIdentity, MemberResponse
from runnel.wire.messages.records.group_metadata import GroupMetadataKey, GroupMetadataValue
from runnel.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runnel.coordinator.groups.machine import GroupMachine


NONE: Final = ErrorCode.NONE  # these are found once, not at every heartbeat
PREPARING: Final = ClassicState.PREPARING_REBALANCE


class ClassicProtocol:
    """Part of the machine."""

    def __init__(self, machine: "GroupMachine") -> None:
        self._machine = machine
        self._rebalance = ClassicRebalance(machine.shard, machine.settings)
        self.join = ClassicJoin(machine, self._rebalance).join

    def _group(self, group_id: str) -> ClassicGroup | ConsumerGroup:
        group = self._machine.groups.get(group_id)
        if isinstance(group, (ClassicGroup, ConsumerGroup)):  # a union would be made anew each time
            return group
        raise RunnelError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")

    # SyncGroup

    def sync(self, request: SyncGroupRequest) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
        """Raises RunnelError."""
        group = self._group(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._machine.consumer.classic.sync(group, request)
        member = group.ensure_member(request.member_id, request.group_instance_id)
        _ensure_generation(group, request.generation_id)
        if _differs(request.protocol_type, group.protocol_type) or _differs(
            request.protocol_name, group.protocol_name
        ):
            raise RunnelError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, group.group_id)
        if group.state is ClassicState.PREPARING_REBALANCE:
            raise RunnelError(ErrorCode.REBALANCE_IN_PROGRESS, group.group_id)
        self._rebalance.has_synced(group, member)
        if group.state is ClassicState.STABLE:
            return synced(group, member)
        group.answer_sync(member, not_synced(ErrorCode.REBALANCE_IN_PROGRESS))
        deferred = member.syncing = self._machine.shard.defer()
        if member.member_id == group.leader_id:
            self._take_assignment(group, request)
        return deferred

    def _take_assignment(self, group: ClassicGroup, request: SyncGroupRequest) -> None:
        """Nobody hears of an assignment that the journal refused; all have to join again."""
        assignments = {each.member_id: each.assignment for each in request.assignments}
        shard = self._machine.shard
        try:
            shard.write([snapshot(group, assignments, shard.clock.wall_ms())])
        except RunnelError as error:
            for member in group.members.values():
                group.answer_sync(member, not_synced(error.code))
            self._rebalance.prepare(group)
            return
        for member in group.members.values():
            group.answer_sync(member, synced(group, member))

    # Heartbeat

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Raises RunnelError."""
        group = self._group(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._machine.consumer.classic.heartbeat(group, request)
        member = group.ensure_member(request.member_id, request.group_instance_id)
        _ensure_generation(group, request.generation_id)
        member.extend_session()
        if group.state is PREPARING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return NONE

    # LeaveGroup

    def leave(self, group_id: str, leaving: "Sequence[MemberIdentity]") -> list[MemberResponse]:
        """Raises RunnelError."""
        group = self._group(group_id)
        if isinstance(group, ConsumerGroup):
            return self._machine.consumer.classic.leave(group, leaving)
        answers: list[MemberResponse] = []
        has_left = False
        for identity in leaving:
            try:
                self._leave(group, identity)
                code, has_left = ErrorCode.NONE, True
            except RunnelError as error:
                code = error.code
            answers.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
            )
        if has_left and group.state is not ClassicState.EMPTY:
            self._rebalance.prepare_or_complete(group)
        return answers

    def _leave(self, group: ClassicGroup, identity: MemberIdentity) -> None:
        member_id = identity.member_id
        if member_id in group.pending_members:
            group.forget_pending(member_id)
            return
        if not member_id:  # an administrator removes a static member by its name
            member_id = group.static_members.get(identity.group_instance_id or "", "")
        member = group.ensure_member(member_id, identity.group_instance_id)
        self._rebalance.dismiss(group, member)

    # From and to the other protocol

    def adopt(self, converted: ClassicGroup, *, rebalances: bool) -> None:
        """A consumer group has become this one; the journal has it, but not all protocols."""
        group = self._machine.groups[converted.group_id]
        assert isinstance(group, ClassicGroup)
        for member in group.members.values():
            group.replace_protocols(member, converted.members[member.member_id].protocols)
            self._rebalance.begin_session(group, member)
        if rebalances:
            self._rebalance.prepare(group)

    # The journal

    def replay(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        group = self._machine.groups.get(key.group)
        if value is None:
            if isinstance(group, ClassicGroup):
                del self._machine.groups[key.group]
                self._rebalance.end(group)
            return
        if not isinstance(group, ClassicGroup):
            group = self._machine.groups[key.group] = ClassicGroup(key.group)
        restore(group, value)

    def loaded(self) -> None:
        """Members get a whole session to be heard of again."""
        size_max = self._machine.settings().group_max_size
        for group in list(self._machine.groups.values()):
            if not isinstance(group, ClassicGroup):
                continue
            for member in group.members.values():
                self._rebalance.begin_session(group, member)
            if group.member_count > size_max:
                self._rebalance.prepare(group)


def _ensure_generation(group: ClassicGroup, generation_id: int) -> None:
    if generation_id != group.generation_id:
        raise RunnelError(
            ErrorCode.ILLEGAL_GENERATION, f"{generation_id} is not {group.generation_id}"
        )


def _differs(said: str | None, known: str | None) -> bool:
    return said is not None and known is not None and said != known
