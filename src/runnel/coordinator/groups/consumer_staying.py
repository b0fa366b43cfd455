"""The heartbeat that nearly all are: its member says nothing new, and there is nothing to tell it.

Whatever else may be the case, or is doubtful, is left to the three steps of `consumer_protocol.py`,
which for such a heartbeat would come to the same answer.
"""

from typing import Final

from runnel.coordinator.groups.caller import Caller
from runnel.coordinator.groups.consumer_group import ConsumerGroup
from runnel.coordinator.groups.consumer_member import JOINING, ConsumerMember, MemberState
from runnel.coordinator.groups.consumer_requests import says_nothing_new
from runnel.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_STABLE: Final = MemberState.STABLE


def staying(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, caller: Caller, revision: int
) -> ConsumerMember | None:
    """The member, if all that its heartbeat changes is how long it may be silent.

    `revision` is that of the topics: with other ones the group may get another epoch. Expressions
    are looked up again now and then, and a static member may have been replaced: not here.
    """
    member = group.members.get(request.member_id)
    if member is None or request.instance_id is not None or group.checked_revision != revision:
        return None
    epoch = member.epoch
    if (
        request.member_epoch != epoch
        or epoch <= JOINING
        or epoch != group.target_epoch
        or epoch < group.epoch
        or member.state is not _STABLE
        or request.topic_partitions is not None
        or group.regexes()
        or not says_nothing_new(member, request, caller)
    ):
        return None
    return member
