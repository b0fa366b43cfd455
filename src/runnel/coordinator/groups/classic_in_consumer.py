"""Members of a consumer group that speak the classic protocol.

The coordinator assigns for them, too. A join is one step of their reconciliation and is answered
at once: they do not wait for each other. Their generation is their epoch; there is no leader. A
heartbeat tells them to join again whenever there is a next step to go.
"""

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from runnel.coordinator.groups.caller import Caller
from runnel.coordinator.groups.classic_answers import not_joined
from runnel.coordinator.groups.classic_group import CONSUMER_PROTOCOL_TYPE
from runnel.coordinator.groups.consumer_checks import ensure_room, ensure_static_member
from runnel.coordinator.groups.consumer_group import ConsumerGroup
from runnel.coordinator.groups.consumer_member import ClassicPart, ConsumerMember, MemberState
from runnel.coordinator.groups.consumer_records import member_record
from runnel.coordinator.groups.consumer_sessions import Duty
from runnel.coordinator.groups.embedded import (
    owned_parts,
    read_subscription,
    version_of,
    write_assignment,
)
from runnel.coordinator.groups.migration import ensure_classic_may_join, may_go_down
from runnel.coordinator.records import JournalRecord
from runnel.errors import ErrorCode, RunnelError, WireError
from runnel.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from runnel.wire.messages.heartbeat import HeartbeatRequest
from runnel.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from runnel.wire.messages.leave_group import MemberIdentity, MemberResponse
from runnel.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from runnel.coordinator.groups.consumer_protocol import ConsumerProtocol
    from runnel.coordinator.groups.machine import GroupMachine

FIRST_VERSION_THAT_NEEDS_AN_ID: Final = 4  # of JoinGroup


class ClassicInConsumer:
    """Part of the machine. Each request may raise RunnelError."""

    def __init__(self, machine: "GroupMachine", consumer: "ConsumerProtocol") -> None:
        self._machine = machine
        self._consumer = consumer
        self._sessions = consumer.sessions

    # JoinGroup

    def join(
        self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller
    ) -> JoinGroupResponse:
        ensure_classic_may_join(group, self._machine.settings())
        is_new = not request.member_id
        random = self._machine.random
        member_id = request.member_id or _id(random.randbytes(16))
        ensure_room(group, member_id, self._machine.settings().group_consumer_max_size)
        _ensure_supported(group, request)
        needs_id = caller.api_version >= FIRST_VERSION_THAT_NEEDS_AN_ID
        if is_new and needs_id and request.group_instance_id is None:
            return not_joined(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        records: list[JournalRecord] = []
        member = self._member(group, request, member_id, records)
        subscription = _subscription(request)
        timeout_ms = request.rebalance_timeout_ms
        changed = replace(
            member,
            instance_id=request.group_instance_id or member.instance_id,
            rack_id=subscription.rack_id or member.rack_id,
            rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
            client_id=caller.client_id,
            client_host=caller.host,
            topics=frozenset(subscription.topics),
            regex="",
            classic=ClassicPart(
                request.session_timeout_ms,
                tuple((each.name, each.metadata) for each in request.protocols),
            ),
        )
        if changed != member:
            records.append(member_record(group.group_id, changed))
        reported = owned_parts(subscription, self._machine.topics)
        generation_id = self._go_down(group, changed)
        if generation_id is None:
            moved = self._consumer.step(group, member, changed, reported, records)
            generation_id = moved.epoch
            self._sessions.done(group.group_id, member_id, Duty.JOIN)
            timeout_ms = changed.rebalance_timeout_ms
            self._sessions.expect(group.group_id, member_id, Duty.SYNC, timeout_ms)
        return JoinGroupResponse(
            member_id=member_id,
            generation_id=generation_id,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=request.protocols[0].name,
        )

    def _member(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        member_id: str,
        records: list[JournalRecord],
    ) -> ConsumerMember:
        """As it is before this join. Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
        instance_id = request.group_instance_id
        if instance_id is not None and request.member_id:
            return ensure_static_member(group, member_id, instance_id)
        before = group.static_member(instance_id)
        if before is not None:
            return self._consumer.replaced(group, before, member_id, records)
        return group.members.get(member_id) or ConsumerMember(member_id=member_id)

    def _go_down(self, group: ConsumerGroup, joining: ConsumerMember) -> int | None:
        """The group's generation, if a static member replaces the last of the new protocol."""
        before = group.static_member(joining.instance_id)
        if before is None or before.member_id == joining.member_id:
            return None
        is_stale = joining.topics != before.topics or group.epoch > group.target_epoch
        left = [each for each in group.members.values() if each is not before]
        left.append(joining)
        if not may_go_down(left, self._machine.settings()):
            return None
        try:
            return self._consumer.go_down(
                group, left, replaced_id=before.member_id, rebalances=is_stale
            )
        except WireError as error:
            raise RunnelError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None

    # SyncGroup

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse:
        member, classic = _ensure_classic(group, request.member_id, request.group_instance_id)
        _ensure_generation(member, request.generation_id)
        name, metadata = classic.protocols[0]
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or (
            request.protocol_name not in (None, name)
        ):
            raise RunnelError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, group.group_id)
        is_behind = group.target_epoch > member.epoch
        if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._expect_join(group, member)
            raise RunnelError(ErrorCode.REBALANCE_IN_PROGRESS, group.group_id)
        self._sessions.done(group.group_id, member.member_id, Duty.SYNC)
        self._extend(group, member, classic)
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(
                member.assigned, version_of(metadata), self._machine.topics
            ),
        )

    # Heartbeat

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> ErrorCode:
        member, classic = _ensure_classic(group, request.member_id, request.group_instance_id)
        _ensure_generation(member, request.generation_id)
        self._extend(group, member, classic)
        if (
            member.epoch < group.target_epoch
            or (member.epoch < group.epoch and self._consumer.is_target_due(group))
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (
                member.state is MemberState.UNRELEASED_PARTITIONS
                and not _waits_for_others(group, member)
            )
        ):
            self._expect_join(group, member)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _extend(self, group: ConsumerGroup, member: ConsumerMember, classic: ClassicPart) -> None:
        self._sessions.expect(
            group.group_id, member.member_id, Duty.HEARTBEAT, classic.session_timeout_ms
        )

    def _expect_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        if not self._sessions.is_expected(group.group_id, member.member_id, Duty.JOIN):
            self._sessions.expect(
                group.group_id, member.member_id, Duty.JOIN, member.rebalance_timeout_ms
            )

    # LeaveGroup

    def leave(
        self, group: ConsumerGroup, leaving: Sequence[MemberIdentity]
    ) -> list[MemberResponse]:
        """Whichever protocol they speak: an administrator removes members by this too."""
        answers: list[MemberResponse] = []
        gone: dict[str, ConsumerMember] = {}
        for identity in leaving:
            code = ErrorCode.NONE
            try:
                member = _leaving(group, identity)
                gone[member.member_id] = member
            except RunnelError as error:
                code = error.code
            answers.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
            )
        if gone:
            self._consumer.fence(group, list(gone.values()))
        return answers


def _id(unique: bytes) -> str:
    """As Kafka writes its ids."""
    return urlsafe_b64encode(unique).decode().rstrip("=")


def _ensure_supported(group: ConsumerGroup, request: JoinGroupRequest) -> None:
    """One of its protocols must be known to all members that speak the classic one."""
    common: set[str] | None = None
    for member in group.members.values():
        if member.classic is not None:
            names = {name for name, _ in member.classic.protocols}
            common = names if common is None else common & names
    offered = {each.name for each in request.protocols}
    is_known = bool(offered if common is None else offered & common)
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not is_known:
        raise RunnelError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Member {request.member_id}'s protocols are not supported.",
        )


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except WireError as error:
        raise RunnelError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None


def _ensure_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    if instance_id is None:
        return group.member(member_id)
    return ensure_static_member(group, member_id, instance_id)


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    """Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    instance_id, member_id = identity.group_instance_id, identity.member_id
    if instance_id is not None and not member_id:  # an administrator removes it
        member_id = group.static_ids.get(instance_id, "")
    return _ensure_member(group, member_id, instance_id)


def _ensure_classic(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, ClassicPart]:
    """Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    member = _ensure_member(group, member_id, instance_id)
    if member.classic is None:
        raise RunnelError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol."
        )
    return member, member.classic


def _ensure_generation(member: ConsumerMember, generation_id: int) -> None:
    if member.epoch != generation_id:
        raise RunnelError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation_id} is not equal to the member epoch "
            f"{member.epoch} of member {member.member_id}.",
        )


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether something that it shall have still belongs to somebody."""
    return any(
        index not in member.assigned.get(topic_id, ()) and group.is_owned(topic_id, index)
        for topic_id, partitions in group.target_of(member).items()
        for index in partitions
    )
