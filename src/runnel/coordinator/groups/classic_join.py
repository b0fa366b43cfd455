"""JoinGroup: who may be a member, and whether its joining begins a rebalance."""

from typing import TYPE_CHECKING, Final
from uuid import UUID

from runnel.coordinator.groups.caller import Caller
from runnel.coordinator.groups.classic_answers import joined, not_joined, not_synced
from runnel.coordinator.groups.classic_group import ClassicGroup, ClassicState
from runnel.coordinator.groups.classic_member import ClassicMember, metadata_bytes
from runnel.coordinator.groups.classic_rebalance import ClassicRebalance
from runnel.coordinator.groups.classic_records import new_group, replace_member, snapshot
from runnel.coordinator.groups.consumer_group import ConsumerGroup
from runnel.coordinator.runtime import Deferred
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from runnel.coordinator.groups.machine import GroupMachine

Answer = JoinGroupResponse | Deferred[JoinGroupResponse]
FIRST_VERSION_WITH_REBALANCE_TIMEOUT: Final = 1
FIRST_VERSION_THAT_NEEDS_AN_ID: Final = 4
FIRST_VERSION_THAT_SKIPS_ASSIGNMENT: Final = 9
# A new member cannot send heartbeats; if it gave up waiting, nobody would notice but by this.
NEW_MEMBER_TIMEOUT_MS: Final = 300_000
# A member's id is made of it, and must fit into a string. Kafka's own clients allow 249 characters.
INSTANCE_ID_BYTES_MAX: Final = 1024
JOURNAL_BATCHES_MAX: Final = 16  # as much metadata may a group hold
PENDING_MEMBERS_MAX: Final = 10_000  # ids given away that nobody has joined with yet


class ClassicJoin:
    """Part of the machine."""

    def __init__(self, machine: "GroupMachine", rebalance: ClassicRebalance) -> None:
        self._machine = machine
        self._rebalance = rebalance

    def join(self, request: JoinGroupRequest, caller: Caller) -> Answer:
        """Raises RunnelError where a group could not be created."""
        if caller.api_version < FIRST_VERSION_WITH_REBALANCE_TIMEOUT:
            request.rebalance_timeout_ms = request.session_timeout_ms
        if not self._is_session_allowed(request.session_timeout_ms):
            return not_joined(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id)
        if len((request.group_instance_id or "").encode()) > INSTANCE_ID_BYTES_MAX:
            return not_joined(ErrorCode.INVALID_REQUEST, request.member_id)
        group = self._machine.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            if isinstance(group, ConsumerGroup) and group.members:
                return self._join_consumers(group, request, caller)
            if request.member_id:
                return not_joined(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            group = self._create(request)
        return self._join_classic(group, request, caller)

    def _join_consumers(
        self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller
    ) -> Answer:
        try:
            return self._machine.consumer.classic.join(group, request, caller)
        except RunnelError as error:
            return not_joined(error.code)

    def _is_session_allowed(self, session_timeout_ms: int) -> bool:
        settings = self._machine.settings()
        shortest_ms = settings.group_min_session_timeout_ms
        return shortest_ms <= session_timeout_ms <= settings.group_max_session_timeout_ms

    def _join_classic(
        self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller
    ) -> Answer:
        if not self._has_room(group, request.member_id):
            group.remove(request.member_id)
            self._rebalance.complete_if_all_joined(group)
            return not_joined(ErrorCode.GROUP_MAX_SIZE_REACHED)
        names = {protocol.name for protocol in request.protocols}
        if not group.supports(request.protocol_type, names):
            return not_joined(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        if not self._can_hold(group, request):
            return not_joined(ErrorCode.GROUP_MAX_SIZE_REACHED, request.member_id)
        if not request.member_id:
            return self._join_anew(group, request, caller)
        if request.member_id in group.pending_members:
            if request.group_instance_id is not None:
                return not_joined(ErrorCode.UNKNOWN_SERVER_ERROR)
            return self._add(group, request, caller, request.member_id)
        return self._join_again(group, request)

    def _create(self, request: JoinGroupRequest) -> ClassicGroup:
        """Raises RunnelError, and then there is no such group."""
        if not (request.protocol_type and request.protocols):
            raise RunnelError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "no protocol")
        records = [new_group(request.group_id, self._machine.shard.clock.wall_ms())]
        before = self._machine.groups.get(request.group_id)
        if before is not None:
            records[:0] = before.tombstones()  # an empty group of the other protocol
        self._machine.shard.write(records)
        group = self._machine.groups[request.group_id]
        assert isinstance(group, ClassicGroup)
        return group

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """While members join, those count who have: if the limit was lowered, the last must go."""
        size_max = self._machine.settings().group_max_size
        member = group.members.get(member_id)
        if group.state is ClassicState.EMPTY:
            return True
        if group.state is ClassicState.PREPARING_REBALANCE:
            is_waiting = member is not None and member.joining is not None
            return is_waiting or group.joining_count < size_max
        return member is not None or group.member_count < size_max

    def _can_hold(self, group: ClassicGroup, request: JoinGroupRequest) -> bool:
        """Whether what its members say of themselves is not too much together.

        Kafka finds out when the generation is written: what is larger than a message of the offsets
        topic may be, is refused, and its members join again, for ever. Members of a few protocols
        hold a few times as much until then, but not any amount.
        """
        member_id = request.member_id or group.static_members.get(request.group_instance_id or "")
        known = group.members.get(member_id or "")
        others_bytes = group.metadata_bytes - (known.metadata_bytes() if known else 0)
        limit_bytes = JOURNAL_BATCHES_MAX * self._machine.shard.journal.batch_bytes_max
        return others_bytes + metadata_bytes(request.protocols) <= limit_bytes

    # New members

    def _join_anew(self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller) -> Answer:
        instance_id = request.group_instance_id
        unique = UUID(int=self._machine.random.getrandbits(128), version=4)
        member_id = f"{caller.client_id if instance_id is None else instance_id}-{unique}"
        if instance_id is not None:
            known_as = group.static_members.get(instance_id)
            if known_as is not None:
                return self._replace(group, request, caller, known_as, member_id)
        elif caller.api_version >= FIRST_VERSION_THAT_NEEDS_AN_ID:
            if len(group.pending_members) >= PENDING_MEMBERS_MAX:
                return not_joined(ErrorCode.GROUP_MAX_SIZE_REACHED)
            self._rebalance.expect(group, member_id, request.session_timeout_ms)
            return not_joined(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        return self._add(group, request, caller, member_id)

    def _add(
        self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, member_id: str
    ) -> Answer:
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            caller.client_id,
            caller.host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocols,
        )
        member.is_new = True
        if group.is_initial:
            group.has_new_member = True
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member)
        self._rebalance.begin_session(group, member, NEW_MEMBER_TIMEOUT_MS)
        return self._wait(group, member)

    def _wait(self, group: ClassicGroup, member: ClassicMember) -> Answer:
        deferred = self._machine.shard.defer()
        group.await_join(member, deferred)
        self._rebalance.prepare_or_complete(group)
        return deferred

    # Members that are known

    def _join_again(self, group: ClassicGroup, request: JoinGroupRequest) -> Answer:
        member_id = request.member_id
        try:
            member = group.ensure_member(member_id, request.group_instance_id)
        except RunnelError as error:
            return not_joined(error.code, member_id)
        is_leader = member_id == group.leader_id
        if group.state is ClassicState.STABLE:
            # A leader that joins wants a rebalance: it has seen a change that others cannot see.
            is_repeated = not is_leader and member.matches(request.protocols)
        else:
            # Its answer may have been lost.
            is_repeated = group.state is ClassicState.COMPLETING_REBALANCE and member.matches(
                request.protocols
            )
        if is_repeated:
            return joined(group, member_id, with_members=is_leader)
        self._update(group, member, request)
        return self._wait(group, member)

    def _update(
        self, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest
    ) -> None:
        group.replace_protocols(member, request.protocols)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms

    # Static members that were started again

    def _replace(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        caller: Caller,
        old_id: str,
        new_id: str,
    ) -> Answer:
        old = group.members[old_id]
        if group.state is ClassicState.STABLE and self._keeps_protocol(group, old, request):
            return self._replace_quietly(group, request, caller, old, new_id)
        group.answer_join(old, not_joined(ErrorCode.FENCED_INSTANCE_ID, old_id))
        group.answer_sync(old, not_synced(ErrorCode.FENCED_INSTANCE_ID))
        was_leader = group.leader_id == old_id
        group.remove(old_id)
        member = _successor(old, new_id)
        group.add(member)
        if was_leader:
            group.leader_id = new_id
        self._rebalance.begin_session(group, member)
        self._update(group, member, request)
        return self._wait(group, member)

    def _keeps_protocol(
        self, group: ClassicGroup, old: ClassicMember, request: JoinGroupRequest
    ) -> bool:
        before = old.protocols
        group.replace_protocols(old, request.protocols)
        selected = group.select_protocol()
        group.replace_protocols(old, before)
        return selected == group.protocol_name

    def _replace_quietly(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        caller: Caller,
        old: ClassicMember,
        new_id: str,
    ) -> JoinGroupResponse:
        """The generation goes on: the member gets what it had before it was started again."""
        leader_before = group.leader_id
        shard = self._machine.shard
        successor = _successor(old, new_id)
        successor.protocols = request.protocols
        successor.rebalance_timeout_ms = request.rebalance_timeout_ms
        successor.session_timeout_ms = request.session_timeout_ms
        assignments = {each.member_id: each.assignment for each in group.members.values()}
        record = snapshot(group, assignments, shard.clock.wall_ms())
        shard.write([replace_member(record, old.member_id, successor, group.protocol_name)])
        member = group.members[new_id]
        group.replace_protocols(member, request.protocols)
        self._rebalance.begin_session(group, member)
        if caller.api_version >= FIRST_VERSION_THAT_SKIPS_ASSIGNMENT:
            is_leader = new_id == group.leader_id
            return joined(group, new_id, with_members=is_leader, skip_assignment=is_leader)
        answer = joined(group, new_id, with_members=False)
        answer.leader = leader_before or ""  # so that it does not think it had to assign
        return answer


def _successor(old: ClassicMember, member_id: str) -> ClassicMember:
    return ClassicMember(
        member_id,
        old.instance_id,
        old.client_id,
        old.client_host,
        old.rebalance_timeout_ms,
        old.session_timeout_ms,
        old.protocols,
        old.assignment,
    )
