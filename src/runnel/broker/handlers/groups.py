"""Groups for administrators: ListGroups (key 16), DescribeGroups (15), DeleteGroups (42) and
OffsetDelete (47).

Version notes: ListGroups v4 filters by state, v5 by type. DescribeGroups v3 knows authorised
operations; up to v5 a group that is not there is a dead one, from v6 on that is an error.
"""

from collections.abc import Iterator
from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.handlers.group_partitions import Refused, merged, sort_out
from runnel.broker.security import CLUSTER_NAME, GROUP_OPERATIONS, Operation, Resource
from runnel.broker.settling import settle
from runnel.broker.turns import ITEMS_PER_STEP, Taken, take_turns
from runnel.broker.waiting import Parked
from runnel.coordinator.groups.group import Group
from runnel.coordinator.groups.machine import GroupMachine
from runnel.coordinator.groups.offset_deletion import delete_group, delete_offsets
from runnel.coordinator.runtime import Shard
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from runnel.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from runnel.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from runnel.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

FIRST_VERSION_OF_ABSENT_GROUPS: Final = 6  # of DescribeGroups
DEAD: Final = "Dead"


def list_groups(
    context: RequestContext, services: Services, request: ListGroupsRequest
) -> Taken[ListGroupsResponse]:
    def failed(code: ErrorCode) -> ListGroupsResponse:
        return ListGroupsResponse(error_code=code)

    if services.groups.is_loading():
        return failed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states = {name.lower() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    sees_all = context.may(Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)
    shards = list(services.groups)
    listed: list[ListedGroup] = []

    def steps() -> Iterator[None]:
        for shard in shards:
            for number, group in enumerate(list(shard.machine.groups.values()), 1):
                if (
                    (not states or group.state_name.lower() in states)
                    and (not types or group.type.value.lower() in types)
                    and (
                        sees_all or context.may(Operation.DESCRIBE, Resource.GROUP, group.group_id)
                    )
                ):
                    listed.append(_listed(group))
                if number % ITEMS_PER_STEP == 0:
                    yield

    return take_turns(
        steps(), lambda: settle(shards, ListGroupsResponse(groups=listed), failed), services.clock
    )


def _listed(group: Group) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type,
        group_state=group.state_name,
        group_type=group.type.value,
    )


def describe_groups(
    context: RequestContext, services: Services, request: DescribeGroupsRequest
) -> DescribeGroupsResponse | Parked[DescribeGroupsResponse]:
    shards: dict[Shard[GroupMachine], None] = {}
    described: list[DescribedGroup] = []
    for group_id in request.groups:
        try:
            context.ensure_may(Operation.DESCRIBE, Resource.GROUP, group_id)
            shard = services.groups.shard_of(group_id)
            shards[shard] = None
            found = _described(shard.machine, group_id)
            if request.include_authorized_operations:
                found.authorized_operations = context.rights(
                    Resource.GROUP, group_id, GROUP_OPERATIONS
                )
            described.append(found)
        except RunnelError as error:
            described.append(_not_described(context, group_id, error))

    def failed(code: ErrorCode) -> DescribeGroupsResponse:
        return DescribeGroupsResponse(
            groups=[DescribedGroup(group_id=each, error_code=code) for each in request.groups]
        )

    return settle(list(shards), DescribeGroupsResponse(groups=described), failed)


def _described(machine: GroupMachine, group_id: str) -> DescribedGroup:
    """Raises GROUP_ID_NOT_FOUND."""
    found = machine.group(group_id).described()
    if found is None:
        raise RunnelError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
    return found


def _not_described(context: RequestContext, group_id: str, error: RunnelError) -> DescribedGroup:
    if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    if context.api_version < FIRST_VERSION_OF_ABSENT_GROUPS:
        return DescribedGroup(group_id=group_id, group_state=DEAD)
    return DescribedGroup(
        group_id=group_id, group_state=DEAD, error_code=error.code, error_message=str(error)
    )


def delete_groups(
    context: RequestContext, services: Services, request: DeleteGroupsRequest
) -> Taken[DeleteGroupsResponse]:
    shards: dict[Shard[GroupMachine], None] = {}
    results: list[DeletableGroupResult] = []

    def steps() -> Iterator[None]:
        for group_id in dict.fromkeys(request.groups_names):
            code = ErrorCode.NONE
            try:
                context.ensure_may(Operation.DELETE, Resource.GROUP, group_id)
                shard = services.groups.shard_of(group_id)
                shards[shard] = None
                yield from delete_group(shard.machine, group_id)
            except RunnelError as error:
                code = error.code
            results.append(DeletableGroupResult(group_id=group_id, error_code=code))
            yield

    def failed(code: ErrorCode) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=each.group_id, error_code=each.error_code or code)
                for each in results
            ]
        )

    def answer() -> DeleteGroupsResponse | Parked[DeleteGroupsResponse]:
        timeout_ms = services.settings.groups.offsets_commit_timeout_ms
        response = DeleteGroupsResponse(results=results)
        return settle(list(shards), response, failed, timeout_ms=timeout_ms)

    return take_turns(steps(), answer, services.clock)


def offset_delete(
    context: RequestContext, services: Services, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Parked[OffsetDeleteResponse]:
    """Raises RunnelError: its response has an error of the whole."""
    context.ensure_may(Operation.DELETE, Resource.GROUP, request.group_id)
    accepted, refused = sort_out(context, services.image, request.topics)
    if not request.group_id:
        raise RunnelError(ErrorCode.INVALID_GROUP_ID, "the group has no name")
    shard = services.groups.shard_of(request.group_id)
    deleted = delete_offsets(shard.machine, request.group_id, accepted)
    topics = merged([_not_deleted(each) for each in refused], deleted)
    return settle(
        [shard],
        OffsetDeleteResponse(topics=topics),
        lambda code: OffsetDeleteResponse(error_code=code),
        timeout_ms=services.settings.groups.offsets_commit_timeout_ms,
    )


def _not_deleted(refused: Refused) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=refused.name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=index, error_code=refused.code)
            for index in refused.indexes
        ],
    )
