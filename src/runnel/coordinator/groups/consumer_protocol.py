"""The consumer group protocol (KIP-848): members send heartbeats, the coordinator decides.

A heartbeat has three steps. The member is created or changed, which may begin a new epoch of the
group; in a new epoch the target assignment is computed; the member goes one step towards it. All
that they change is written in one batch.
"""

from base64 import urlsafe_b64encode
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from runnel.config.coordination import GroupSettings
from runnel.coordinator.groups.caller import Caller
from runnel.coordinator.groups.classic_group import ClassicGroup
from runnel.coordinator.groups.classic_in_consumer import ClassicInConsumer
from runnel.coordinator.groups.consumer_checks import (
    ensure_epoch,
    ensure_released,
    ensure_room,
    ensure_static_member,
    ensure_valid,
)
from runnel.coordinator.groups.consumer_describe import describe
from runnel.coordinator.groups.consumer_epochs import Epochs
from runnel.coordinator.groups.consumer_group import ConsumerGroup
from runnel.coordinator.groups.consumer_member import (
    JOINING,
    LEAVING,
    LEAVING_FOR_A_WHILE,
    NOTHING,
    ConsumerMember,
    MemberState,
)
from runnel.coordinator.groups.consumer_reconcile import Reported
from runnel.coordinator.groups.consumer_records import (
    current_record,
    member_record,
    member_tombstones,
    target_record,
)
from runnel.coordinator.groups.consumer_requests import changed_by, is_full, reported_by, told
from runnel.coordinator.groups.consumer_sessions import Duty, Sessions
from runnel.coordinator.groups.consumer_staying import staying
from runnel.coordinator.groups.group import GroupType
from runnel.coordinator.groups.migration import (
    downgrade_records,
    downgraded,
    ensure_may_go_up,
    may_go_down,
    upgrade_records,
)
from runnel.coordinator.records import JournalRecord
from runnel.errors import ErrorCode, RunnelError, WireError
from runnel.wire.messages.consumer_group_describe import DescribedGroup
from runnel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from runnel.wire.messages.records.consumer_group_metadata import ConsumerGroupMetadataKey

if TYPE_CHECKING:
    from runnel.coordinator.groups.machine import GroupMachine


HEARTBEAT: Final = Duty.HEARTBEAT  # found once, not at every one
SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"


class ConsumerProtocol:
    """Of one shard; `GroupMachine.consumer`."""

    def __init__(self, machine: "GroupMachine") -> None:
        self._machine = machine
        self._shard = machine.shard
        self._epochs = Epochs(machine)
        self.is_target_due = self._epochs.is_target_due
        self.sessions = Sessions(machine.shard.timer, machine.shard.clock, self._run_out)
        self.classic = ClassicInConsumer(machine, self)

    # The journal

    def replay(self, key: Any, value: Any | None) -> None:  # noqa: ANN401  # any record of a group
        groups = self._machine.groups
        group = groups.get(key.group_id)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            group = groups[key.group_id] = ConsumerGroup(key.group_id)
        group.replay(key, value)
        if value is None and isinstance(key, ConsumerGroupMetadataKey):
            del groups[key.group_id]

    def loaded(self) -> None:
        for group in self._machine.groups.values():
            if isinstance(group, ConsumerGroup):
                self._watch(group)

    def _watch(self, group: ConsumerGroup) -> None:
        for member in group.members.values():
            timeout_ms = self._session_ms(group.group_id, member)
            self.sessions.expect(group.group_id, member.member_id, Duty.HEARTBEAT, timeout_ms)
            self._watch_revocation(group.group_id, member)

    def _watch_revocation(self, group_id: str, member: ConsumerMember) -> None:
        if member.classic is None and member.state == MemberState.UNREVOKED_PARTITIONS:
            self.sessions.expect(
                group_id,
                member.member_id,
                Duty.REVOKE,
                member.rebalance_timeout_ms,
                member.epoch,
            )

    def _session_ms(self, group_id: str, member: ConsumerMember) -> int:
        if member.classic is not None:
            return member.classic.session_timeout_ms
        default_ms = self._machine.settings().group_consumer_session_timeout_ms
        return self._machine.setting(group_id, SESSION_TIMEOUT, default_ms)

    def _run_out(self, group_id: str, member_id: str, duty: Duty, epoch: int) -> None:
        group = self._machine.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if not isinstance(group, ConsumerGroup) or member is None:
            self.sessions.forget(group_id, member_id)
        elif duty is not Duty.REVOKE or member.epoch == epoch:
            self.fence(group, [member])

    # Heartbeats

    def heartbeat(
        self, caller: Caller, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse:
        settings = self._machine.settings()
        known = self._machine.groups.get(request.group_id)
        if isinstance(known, ConsumerGroup):
            stays = staying(known, request, caller, self._machine.topics.revision)
            if stays is not None:
                return self._stays(request.group_id, stays, settings)
        ensure_valid(request, caller.api_version, settings.group_consumer_assignors)
        if request.member_epoch in (LEAVING, LEAVING_FOR_A_WHILE):
            return self._leave(request)
        records: list[JournalRecord] = []
        group = self._group(request.group_id, request.member_epoch == JOINING, records)
        ensure_room(group, request.member_id, settings.group_consumer_max_size)
        reported = reported_by(request)
        member = self._member(group, request, reported, records)
        changed = changed_by(member, request, caller)
        if changed is not member and changed != member:
            records.append(member_record(group.group_id, changed))
        moved = self.step(group, member, changed, reported, records)
        shows = (
            request.member_epoch == JOINING
            or is_full(request)
            or (moved is not member and moved.assigned != member.assigned)
        )
        return ConsumerGroupHeartbeatResponse(
            member_id=moved.member_id,
            member_epoch=moved.epoch,
            heartbeat_interval_ms=self._machine.setting(
                group.group_id,
                HEARTBEAT_INTERVAL,
                settings.group_consumer_heartbeat_interval_ms,
            ),
            assignment=told(moved.assigned) if shows else None,
        )

    def _stays(
        self, group_id: str, member: ConsumerMember, settings: GroupSettings
    ) -> ConsumerGroupHeartbeatResponse:
        timeout_ms = settings.group_consumer_session_timeout_ms
        interval_ms = settings.group_consumer_heartbeat_interval_ms
        configs = self._machine.configs_of(group_id)
        if configs:
            timeout_ms = int(configs.get(SESSION_TIMEOUT, timeout_ms))
            interval_ms = int(configs.get(HEARTBEAT_INTERVAL, interval_ms))
        self.sessions.expect(group_id, member.member_id, HEARTBEAT, timeout_ms)
        return ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=interval_ms,
        )

    def step(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        changed: ConsumerMember,
        reported: Reported | None,
        records: list[JournalRecord],
    ) -> ConsumerMember:
        """A member goes on towards what it shall have; all that changes is written."""
        moved = self._epochs.advance(group, member, changed, reported, records)
        was_classic = not isinstance(self._machine.groups.get(group.group_id), ConsumerGroup)
        self._shard.write(records)
        if was_classic:
            self._watch(self._known(group.group_id))
        self._written(group.group_id, changed, moved)
        return moved

    def _group(
        self, group_id: str, is_joining: bool, records: list[JournalRecord]
    ) -> ConsumerGroup:
        """Raises GROUP_ID_NOT_FOUND. A group that is not there yet is made by the records."""
        group = self._machine.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is None:
            if not is_joining:
                raise RunnelError(
                    ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found."
                )
            return ConsumerGroup(group_id)
        if is_joining and group.type is GroupType.CLASSIC and not group.member_count:
            records.extend(group.tombstones())
            return ConsumerGroup(group_id)
        if is_joining and isinstance(group, ClassicGroup):
            ensure_may_go_up(group, self._machine.settings())
            records.extend(upgrade_records(group, self._machine.topics, self._epochs.hash_of))
            upgraded = ConsumerGroup(group_id)
            for key, value, _ in records[len(group.tombstones()) :]:
                upgraded.replay(key, value)
            return upgraded
        raise RunnelError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group."
        )

    def _member(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        reported: Reported | None,
        records: list[JournalRecord],
    ) -> ConsumerMember:
        """As it is before this heartbeat. Raises if it is unknown, fenced or not in this epoch."""
        epoch, instance_id = request.member_epoch, request.instance_id
        member_id = request.member_id or self._new_member_id()
        if epoch != JOINING:
            if instance_id is None:
                member = group.member(member_id)
            else:
                member = ensure_static_member(group, member_id, instance_id)
            ensure_epoch(member, epoch, reported)
            return member
        before = group.static_member(instance_id)
        is_itself = before is not None and before.member_id == member_id
        if before is None or instance_id is None or (is_itself and before.epoch >= 0):
            return group.members.get(member_id) or ConsumerMember(member_id=member_id)
        if before.classic is None:
            ensure_released(before, member_id, instance_id)
        return self.replaced(group, before, member_id, records)

    def replaced(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        member_id: str,
        records: list[JournalRecord],
    ) -> ConsumerMember:
        """A static member comes back under another id, and has what it had."""
        member = replace(before, member_id=member_id, epoch=0, previous_epoch=0)
        records.extend(member_tombstones(group.group_id, before.member_id))
        records.append(member_record(group.group_id, member))
        target = group.targets.get(before.member_id, {})
        records.append(target_record(group.group_id, member_id, target))
        records.append(current_record(group.group_id, member))
        return member

    def _new_member_id(self) -> str:
        """As Kafka writes its ids."""
        return urlsafe_b64encode(self._machine.random.randbytes(16)).decode().rstrip("=")

    # What follows from it

    def _written(self, group_id: str, changed: ConsumerMember, moved: ConsumerMember) -> None:
        """The journal has it: the member is watched from here on."""
        group = self._machine.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        group.checked_revision = self._machine.topics.revision
        self._epochs.regexes.maybe_look_up(group)
        if moved is not changed and moved != changed:
            self.sessions.done(group_id, moved.member_id, Duty.REVOKE)
            self._watch_revocation(group_id, moved)
        self.sessions.expect(
            group_id, moved.member_id, Duty.HEARTBEAT, self._session_ms(group_id, moved)
        )

    def describe(self, group_id: str) -> DescribedGroup:
        """Raises GROUP_ID_NOT_FOUND."""
        default = self._machine.settings().group_consumer_assignors[0]
        return describe(self._known(group_id), self._machine.topics, default)

    def _known(self, group_id: str) -> ConsumerGroup:
        group = self._machine.group(group_id)
        if not isinstance(group, ConsumerGroup):
            raise RunnelError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group."
            )
        return group

    # Leaving

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        group = self._known(request.group_id)
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = ensure_static_member(group, request.member_id, request.instance_id)
        if request.member_epoch == LEAVING_FOR_A_WHILE:
            away = replace(
                member,
                epoch=LEAVING_FOR_A_WHILE,
                assigned={
                    topic_id: dict.fromkeys(epochs, 0)
                    for topic_id, epochs in member.assigned.items()
                },
                pending_revocation=NOTHING,
            )
            self._shard.write([current_record(group.group_id, away)])
        else:
            self.fence(group, [member])
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )

    def fence(self, group: ConsumerGroup, gone: Collection[ConsumerMember]) -> None:
        """They are no longer members, and what they owned is free. Raises if it is not written."""
        ids = {member.member_id for member in gone}
        left = [each for each in group.members.values() if each.member_id not in ids]
        if may_go_down(left, self._machine.settings()):
            with suppress(WireError):  # then it goes on as it is
                self.go_down(group, left)
                return
        self._shard.write(self._epochs.without(group, gone))
        for member in gone:
            self.sessions.forget(group.group_id, member.member_id)

    def go_down(
        self,
        group: ConsumerGroup,
        left: list[ConsumerMember],
        *,
        replaced_id: str | None = None,
        rebalances: bool = True,
    ) -> int:
        """Only members of the classic protocol are left: the group becomes a classic one.

        Its generation. A static member that has replaced the last of the new protocol gets what
        that one had. Raises WireError, RunnelError.
        """
        topics, ids = self._machine.topics, list(group.members)
        classic = downgraded(group, left, topics, heir_of=replaced_id)
        self._shard.write(downgrade_records(group, classic, self._shard.clock.wall_ms()))
        for member_id in ids:
            self.sessions.forget(group.group_id, member_id)
        self._machine.classic.adopt(classic, rebalances=rebalances)
        return classic.generation_id
