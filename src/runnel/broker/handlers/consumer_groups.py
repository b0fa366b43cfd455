"""ConsumerGroupHeartbeat (key 68, v0-v1) and ConsumerGroupDescribe (key 69, v0-v1), KIP-848.

Version notes: from heartbeat v1 on the client chooses its member id and may subscribe by a regular
expression; describe v1 tells which protocol a member speaks.
"""

from typing import Any, Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.security import GROUP_OPERATIONS, Operation, Resource
from runnel.broker.settling import is_settled, settle
from runnel.broker.waiting import Parked
from runnel.cluster.features import level_of
from runnel.coordinator.groups.caller import Caller
from runnel.coordinator.runtime import Shard
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from runnel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

GROUP_VERSION: Final = "group.version"
LEVEL_AT_FIRST: Final = level_of({}, GROUP_VERSION)
READ: Final = Operation.READ  # found once, not at every heartbeat
GROUP: Final = Resource.GROUP


def consumer_group_heartbeat(
    context: RequestContext, services: Services, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Parked[ConsumerGroupHeartbeatResponse]:
    try:
        _ensure_enabled(services)
        context.ensure_may(READ, GROUP, request.group_id)
        for name in request.subscribed_topic_names or ():
            context.ensure_may(Operation.DESCRIBE, Resource.TOPIC, name)
        shard = services.groups.shard_of(request.group_id)
        caller = Caller(context.client_id, f"/{context.host}", context.api_version)
        response = shard.machine.consumer.heartbeat(caller, request)
    except RunnelError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=str(error))
    return response if is_settled(shard) else settle([shard], response, _refused)


def _refused(code: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code)


def _ensure_enabled(services: Services) -> None:
    if not services.image.features.get(GROUP_VERSION, LEVEL_AT_FIRST):
        raise RunnelError(ErrorCode.UNSUPPORTED_VERSION, "The version of API is not supported.")


def consumer_group_describe(
    context: RequestContext, services: Services, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse | Parked[ConsumerGroupDescribeResponse]:
    shards: dict[int, Shard[Any]] = {}
    groups = [
        _describe(context, services, group_id, shards)
        for group_id in dict.fromkeys(request.group_ids)
    ]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = context.rights(
                    Resource.GROUP, group.group_id, GROUP_OPERATIONS
                )
    response = ConsumerGroupDescribeResponse(groups=groups)

    def refused(code: ErrorCode) -> ConsumerGroupDescribeResponse:
        return ConsumerGroupDescribeResponse(
            groups=[
                DescribedGroup(group_id=group.group_id, error_code=group.error_code or code)
                for group in groups
            ]
        )

    return settle(list(shards.values()), response, refused)


def _describe(
    context: RequestContext, services: Services, group_id: str, shards: dict[int, Shard[Any]]
) -> DescribedGroup:
    """Errors of one group are its own."""
    try:
        _ensure_enabled(services)
        context.ensure_may(Operation.DESCRIBE, Resource.GROUP, group_id)
        if not group_id:
            return DescribedGroup(error_code=ErrorCode.INVALID_GROUP_ID)
        shard = services.groups.shard_of(group_id)
        described = shard.machine.consumer.describe(group_id)
    except RunnelError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=str(error))
    shards[shard.index] = shard
    if not all(
        context.may(Operation.DESCRIBE, Resource.TOPIC, name)
        for member in described.members
        for name in member.subscribed_topic_names
    ):
        return DescribedGroup(
            group_id=group_id,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="The group has described topic(s) that the client is not authorized to "
            "describe.",
        )
    return described
