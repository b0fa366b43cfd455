"""How a classic group comes from one generation to the next.

Empty or Stable -> PreparingRebalance: members are asked to join, each join waits
PreparingRebalance -> CompletingRebalance: all have joined, or their time is up; joins are answered
CompletingRebalance -> Stable: the leader's assignment is in the journal; syncs are answered
"""

from collections.abc import Callable
from typing import Any, Final

from runnel.config.coordination import GroupSettings
from runnel.coordinator.groups.classic_answers import joined, not_joined, not_synced
from runnel.coordinator.groups.classic_group import ClassicGroup, ClassicState
from runnel.coordinator.groups.classic_member import NO_ASSIGNMENT, ClassicMember, Session
from runnel.coordinator.groups.classic_records import restore, snapshot, subscribed_topics
from runnel.coordinator.runtime import Shard
from runnel.errors import ErrorCode, RunnelError

GENERATION_MAX: Final = 2**31 - 1
WAIT_MIN_MS: Final = 1_000  # for static members, who may say that they need no time at all


class ClassicRebalance:
    """Of all classic groups of a shard."""

    def __init__(self, shard: Shard[Any], settings: Callable[[], GroupSettings]) -> None:
        self._shard = shard
        self._settings = settings

    # Sessions

    def begin_session(
        self, group: ClassicGroup, member: ClassicMember, timeout_ms: int | None = None
    ) -> None:
        def expired() -> None:
            if group.members.get(member.member_id) is member and not member.is_heard_of:
                self._expire(group, member)

        member.session = Session(self._shard.timer(expired), self._shard.clock)
        member.session.extend(member.session_timeout_ms if timeout_ms is None else timeout_ms)

    def _expire(self, group: ClassicGroup, member: ClassicMember) -> None:
        self.dismiss(group, member)
        if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            self.prepare(group)
        elif group.state is ClassicState.PREPARING_REBALANCE and group.has_all_joined():
            self._complete_join(group)

    def expect(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """This id was given away; whoever got it is to join before the time is up."""

        def expired() -> None:
            group.forget_pending(member_id)
            if group.state is ClassicState.PREPARING_REBALANCE and group.has_all_joined():
                self._complete_join(group)

        group.pending_members[member_id] = self._shard.after(timeout_ms, expired)

    def dismiss(self, group: ClassicGroup, member: ClassicMember) -> None:
        """If it waits for something after all, it learns that it has to start anew."""
        group.answer_join(member, not_joined(ErrorCode.UNKNOWN_MEMBER_ID))
        group.answer_sync(member, not_synced(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member.member_id)

    # The join phase

    def prepare_or_complete(self, group: ClassicGroup) -> None:
        """Somebody has joined or left: begin a rebalance, or end its join phase."""
        if group.state is ClassicState.PREPARING_REBALANCE:
            self.complete_if_all_joined(group)
        else:
            self.prepare(group)

    def prepare(self, group: ClassicGroup) -> None:
        if group.state is ClassicState.COMPLETING_REBALANCE:
            for member in group.members.values():
                member.assignment = NO_ASSIGNMENT
                group.answer_sync(member, not_synced(ErrorCode.REBALANCE_IN_PROGRESS))
        self._end_sync_phase(group)
        is_initial = group.state is ClassicState.EMPTY
        group.move_to(ClassicState.PREPARING_REBALANCE, self._shard.clock.wall_ms())
        if is_initial:
            group.has_new_member = False
            delay_ms = self._settings().group_initial_rebalance_delay_ms
            remaining_ms = max(group.rebalance_timeout_ms() - delay_ms, 0)
            self._delay_initially(group, delay_ms, remaining_ms)
        elif group.has_all_joined():
            self._complete_join(group)
        else:
            self._start_join_timer(group, group.rebalance_timeout_ms(), self._complete_join)

    def _delay_initially(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """Members are started together: to wait for all of them spares a rebalance for each."""

        def over(group: ClassicGroup) -> None:
            if group.has_new_member and remaining_ms:
                group.has_new_member = False
                longer_ms = min(self._settings().group_initial_rebalance_delay_ms, remaining_ms)
                self._delay_initially(group, longer_ms, max(remaining_ms - delay_ms, 0))
            else:
                self._complete_join(group)

        self._start_join_timer(group, delay_ms, over)

    def _start_join_timer(
        self, group: ClassicGroup, delay_ms: int, work: Callable[[ClassicGroup], None]
    ) -> None:
        _cancel_join_timer(group)
        group.join_timer = self._shard.after(delay_ms, lambda: work(group))

    def complete_if_all_joined(self, group: ClassicGroup) -> None:
        if (
            group.state is ClassicState.PREPARING_REBALANCE
            and not group.is_initial
            and group.has_all_joined()
        ):
            self._complete_join(group)

    def _complete_join(self, group: ClassicGroup) -> None:
        """Who has not joined by now is out, unless it is static and its session goes on."""
        _cancel_join_timer(group)
        for member in list(group.members.values()):
            if member.joining is None and member.instance_id is None:
                group.remove(member.member_id)
        if not group.members:
            self._become_empty(group)
        elif self._elect_leader(group):
            self._begin_generation(group)
        else:
            delay_ms = max(group.rebalance_timeout_ms(), WAIT_MIN_MS)
            self._start_join_timer(group, delay_ms, self._complete_join)

    def _elect_leader(self, group: ClassicGroup) -> bool:
        """The leader stays if it has joined. False if nobody has."""
        leader = None if group.leader_id is None else group.members.get(group.leader_id)
        if leader is None or leader.joining is None:
            candidates = (each for each in group.members.values() if each.joining is not None)
            leader = next(candidates, None)
        if leader is not None:
            group.leader_id = leader.member_id
        return leader is not None

    def _become_empty(self, group: ClassicGroup) -> None:
        group.generation_id = _next_generation(group)
        group.protocol_name = group.leader_id = None
        record = snapshot(group, {}, self._shard.clock.wall_ms())
        try:
            self._shard.write([record])
        except RunnelError:
            # A restart would bring back the members of the generation before, until their
            # sessions run out. Nobody is told anything that depends on it.
            assert record.value is not None
            restore(group, record.value)

    def _begin_generation(self, group: ClassicGroup) -> None:
        group.generation_id = _next_generation(group)
        group.protocol_name = group.select_protocol()
        group.subscribed_topics = subscribed_topics(group)
        group.move_to(ClassicState.COMPLETING_REBALANCE, self._shard.clock.wall_ms())
        group.pending_sync = set(group.members)
        for member in group.members.values():
            is_leader = member.member_id == group.leader_id
            group.answer_join(member, joined(group, member.member_id, with_members=is_leader))
            member.is_new = False
            member.extend_session()
        timeout_ms = group.rebalance_timeout_ms()
        group.sync_timer = self._shard.after(timeout_ms, lambda: self._expire_sync(group))

    # The sync phase

    def has_synced(self, group: ClassicGroup, member: ClassicMember) -> None:
        group.pending_sync.discard(member.member_id)
        if not group.pending_sync:
            self._end_sync_phase(group)

    def _end_sync_phase(self, group: ClassicGroup) -> None:
        group.pending_sync.clear()
        if group.sync_timer is not None:
            group.sync_timer.cancel()
            group.sync_timer = None

    def _expire_sync(self, group: ClassicGroup) -> None:
        if not group.pending_sync:
            return  # a static member that came back took the place of the last one
        for member_id in group.pending_sync & group.members.keys():
            self.dismiss(group, group.members[member_id])
        self.prepare(group)

    def end(self, group: ClassicGroup) -> None:
        """The group is gone, or has become one of the other protocol: members are to join it."""
        for member in list(group.members.values()):
            group.answer_join(member, not_joined(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
            group.answer_sync(member, not_synced(ErrorCode.REBALANCE_IN_PROGRESS))
            group.remove(member.member_id)
        for member_id in list(group.pending_members):
            group.forget_pending(member_id)
        self._end_sync_phase(group)
        _cancel_join_timer(group)
        group.move_to(ClassicState.DEAD, self._shard.clock.wall_ms())


def _cancel_join_timer(group: ClassicGroup) -> None:
    """A timer knows its group, so one that is kept would keep a deleted group in memory."""
    if group.join_timer is not None:
        group.join_timer.cancel()
        group.join_timer = None


def _next_generation(group: ClassicGroup) -> int:
    """After the last comes the first again: negative ones mean that there is none."""
    return 1 if group.generation_id >= GENERATION_MAX else group.generation_id + 1
