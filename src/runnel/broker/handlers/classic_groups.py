"""JoinGroup (key 11, v0-v9), SyncGroup (14, v0-v5), Heartbeat (12, v0-v4), LeaveGroup (13, v0-v5).

Joins and syncs wait for other members; the group machine has its own limits for that. Version
notes: without a protocol, a join is answered with an empty name up to v6; a sync says its protocol
since v5; a member leaves alone up to v2, and its error is then the whole answer's.
"""

from typing import TYPE_CHECKING, Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.security import Operation, Resource
from runnel.broker.settling import is_settled, settle
from runnel.broker.waiting import Parked
from runnel.coordinator.groups.caller import Caller
from runnel.coordinator.groups.classic_answers import not_joined
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from runnel.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from runnel.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from runnel.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from runnel.coordinator.groups.machine import GroupMachine
    from runnel.coordinator.runtime import Shard

READ: Final = Operation.READ  # found once: to look for it takes longer than a heartbeat should
GROUP: Final = Resource.GROUP
FIRST_VERSION_WITH_NULL_PROTOCOL: Final = 7  # of JoinGroup
FIRST_VERSION_WITH_PROTOCOL: Final = 5  # of SyncGroup
FIRST_VERSION_WITH_MEMBERS: Final = 3  # of LeaveGroup


def shard_for(context: RequestContext, services: Services, group_id: str) -> "Shard[GroupMachine]":
    """Raises RunnelError."""
    context.ensure_may(READ, GROUP, group_id)
    if not group_id:
        raise RunnelError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
    return services.groups.shard_of(group_id)


def join_group(
    context: RequestContext, services: Services, request: JoinGroupRequest
) -> JoinGroupResponse | Parked[JoinGroupResponse]:
    def failed(code: ErrorCode) -> JoinGroupResponse:
        is_told = code is ErrorCode.INVALID_GROUP_ID  # Kafka gives the id back only then
        return not_joined(code, request.member_id if is_told else "")

    try:
        shard = shard_for(context, services, request.group_id)
        caller = Caller(context.client_id, f"/{context.host}", context.api_version)
        answer = settle([shard], shard.machine.classic.join(request, caller), failed)
    except RunnelError as error:
        answer = failed(error.code)
    if context.api_version < FIRST_VERSION_WITH_NULL_PROTOCOL:
        return _without_null(answer)
    return answer


def _without_null(
    answer: JoinGroupResponse | Parked[JoinGroupResponse],
) -> JoinGroupResponse | Parked[JoinGroupResponse]:
    if isinstance(answer, Parked):
        attempt = answer.attempt

        def named(final: bool) -> JoinGroupResponse | None:
            response = attempt(final)
            if response is not None and response.protocol_name is None:
                response.protocol_name = ""
            return response

        answer.attempt = named
    elif answer.protocol_name is None:
        answer.protocol_name = ""
    return answer


def sync_group(
    context: RequestContext, services: Services, request: SyncGroupRequest
) -> SyncGroupResponse | Parked[SyncGroupResponse]:
    has_protocol = request.protocol_type is not None and request.protocol_name is not None
    if context.api_version >= FIRST_VERSION_WITH_PROTOCOL and not has_protocol:
        raise RunnelError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "no protocol is named")
    shard = shard_for(context, services, request.group_id)
    answer = shard.machine.classic.sync(request)
    return settle([shard], answer, lambda code: SyncGroupResponse(error_code=code))


def heartbeat(
    context: RequestContext, services: Services, request: HeartbeatRequest
) -> HeartbeatResponse | Parked[HeartbeatResponse]:
    try:
        shard = shard_for(context, services, request.group_id)
    except RunnelError as error:
        if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse()  # its session begins anew when all is loaded
        raise
    response = HeartbeatResponse(error_code=shard.machine.classic.heartbeat(request))
    if is_settled(shard):
        return response
    return settle([shard], response, _heartbeat_failed)


def _heartbeat_failed(code: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)


def leave_group(
    context: RequestContext, services: Services, request: LeaveGroupRequest
) -> LeaveGroupResponse | Parked[LeaveGroupResponse]:
    shard = shard_for(context, services, request.group_id)
    leaving = request.members
    if context.api_version < FIRST_VERSION_WITH_MEMBERS:
        leaving = [MemberIdentity(member_id=request.member_id)]
    try:
        members = shard.machine.classic.leave(request.group_id, leaving)
    except RunnelError as error:
        if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
            raise
        members = [  # there is no such group, which each of them is told
            MemberResponse(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                error_code=error.code,
            )
            for each in leaving
        ]
    if context.api_version < FIRST_VERSION_WITH_MEMBERS:
        response = LeaveGroupResponse(error_code=members[0].error_code)
    else:
        response = LeaveGroupResponse(members=members)
    return settle([shard], response, lambda code: LeaveGroupResponse(error_code=code))
