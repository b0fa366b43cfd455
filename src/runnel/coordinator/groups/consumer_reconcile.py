"""From what a member has to what it shall have, one step per heartbeat (R39).

A partition is given only when nobody owns it: its last owner has said in a heartbeat that it let
go, or is gone. Until a member has given up what it must, it stays in its epoch; from then on it is
in the epoch of the target, even while it waits for partitions of others.
"""

from collections.abc import Callable, Iterable, Mapping

from runnel.coordinator.groups.consumer_member import ConsumerMember, MemberState, Owned
from runnel.coordinator.groups.consumer_records import Target
from runnel.errors import ErrorCode, RunnelError

Reported = Mapping[bytes, Iterable[int]]
"""What the member says it owns, by topic id."""


def reconcile(
    member: ConsumerMember,
    target_epoch: int,
    target: Target,
    subscribed_ids: frozenset[bytes],
    is_owned: Callable[[bytes, int], bool],
    reported: Reported | None,
    *,
    subscription_changed: bool,
) -> ConsumerMember:
    """The member after this step; the same one if there is none to be made now.

    `reported` is None if the heartbeat did not say. Raises FENCED_MEMBER_EPOCH.
    """

    def advance(epoch: int) -> ConsumerMember:
        return _advance(member, epoch, target_epoch, target, subscribed_ids, is_owned, reported)

    if member.state == MemberState.STABLE:
        if member.epoch != target_epoch:
            return advance(member.epoch)
        return _narrow(member, subscribed_ids, reported) if subscription_changed else member
    if member.state == MemberState.UNREVOKED_PARTITIONS:
        if not _still_owns(member.pending_revocation, reported):
            return advance(member.epoch)
        return _narrow(member, subscribed_ids, reported) if subscription_changed else member
    if member.state == MemberState.UNRELEASED_PARTITIONS:
        return advance(member.epoch)
    if reported is None or any(reported.values()):
        raise RunnelError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. "
            "The member must abandon all its partitions and rejoin.",
        )
    return advance(target_epoch)


def _still_owns(revoked: Owned, reported: Reported | None) -> bool:
    if reported is None:
        return True
    return any(
        index in revoked.get(topic_id, ())
        for topic_id, partitions in reported.items()
        for index in partitions
    )


def _narrow(
    member: ConsumerMember, subscribed_ids: frozenset[bytes], reported: Reported | None
) -> ConsumerMember:
    """Take away what it no longer subscribes to, without waiting for a new target."""
    dropped = {
        topic_id: epochs
        for topic_id, epochs in member.assigned.items()
        if topic_id not in subscribed_ids
    }
    if not dropped:
        return member
    assigned = {
        topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in dropped
    }
    pending = dict(member.pending_revocation)
    for topic_id, epochs in dropped.items():
        pending[topic_id] = {**pending.get(topic_id, {}), **epochs}
    if _still_owns(pending, reported):
        return member.moved(MemberState.UNREVOKED_PARTITIONS, member.epoch, assigned, pending)
    return member.moved(member.state, member.epoch, assigned, member.pending_revocation)


def _advance(
    member: ConsumerMember,
    epoch: int,
    target_epoch: int,
    target: Target,
    subscribed_ids: frozenset[bytes],
    is_owned: Callable[[bytes, int], bool],
    reported: Reported | None,
) -> ConsumerMember:
    assigned: dict[bytes, dict[int, int]] = {}
    to_revoke: dict[bytes, dict[int, int]] = {}
    to_assign: dict[bytes, list[int]] = {}
    is_waiting = False
    for topic_id in target.keys() | member.assigned.keys():
        wanted = target.get(topic_id, frozenset()) if topic_id in subscribed_ids else frozenset()
        current = member.assigned.get(topic_id, {})
        kept = {index: given for index, given in current.items() if index in wanted}
        revoked = {index: given for index, given in current.items() if index not in wanted}
        own = member.pending_revocation.get(topic_id, {})  # of itself it need not wait
        missing = [index for index in wanted if index not in kept]
        free = [index for index in missing if index in own or not is_owned(topic_id, index)]
        is_waiting = is_waiting or len(free) < len(missing)
        if kept:
            assigned[topic_id] = kept
        if revoked:
            to_revoke[topic_id] = revoked
        if free:
            to_assign[topic_id] = free
    if to_revoke and _still_owns(to_revoke, reported):
        return member.moved(MemberState.UNREVOKED_PARTITIONS, epoch, assigned, to_revoke)
    for topic_id, free in to_assign.items():
        assigned.setdefault(topic_id, {}).update(dict.fromkeys(free, target_epoch))
    state = MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE
    return member.moved(state, target_epoch, assigned, {})
