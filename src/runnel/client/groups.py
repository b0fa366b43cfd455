"""Consumer groups as an operator asks for them: those of the classic protocol and of KIP-848's.

A group lives at its coordinator; a list asks every broker. What members own is read from the
assignment that a classic group's leader wrote, or that the coordinator itself keeps.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from runnel.client.cluster import Cluster, RefusedError, UnsupportedError
from runnel.client.coordinators import KeyType, asked
from runnel.errors import ErrorCode, WireError
from runnel.wire.apis import ApiKey
from runnel.wire.compiler import codec_for
from runnel.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from runnel.wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from runnel.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from runnel.wire.messages.delete_groups import DeleteGroupsRequest
from runnel.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from runnel.wire.messages.list_groups import ListedGroup, ListGroupsRequest

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"  # the type of KIP-848 and the protocol type of both kinds of consumer
DEAD: Final = "Dead"
EMPTY: Final = "Empty"
STATES_SINCE: Final = 4  # ListGroups
TYPES_SINCE: Final = 5
_VERSION_BYTES: Final = 2

Owned = Mapping[str, Sequence[int]]  # partitions by topic


class Listed(NamedTuple):
    group: str
    group_type: str  # empty where the broker does not tell
    state: str
    protocol_type: str


class Member(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    owned: Owned
    epoch: int | None = None  # of a KIP-848 group


class Group(NamedTuple):
    group: str
    group_type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: int
    epoch: int | None  # of a KIP-848 group
    members: Sequence[Member]

    @property
    def is_inactive(self) -> bool:
        return self.state in (EMPTY, DEAD)


def list_groups(
    cluster: Cluster, states: Collection[str] = (), types: Collection[str] = ()
) -> list[Listed]:
    """By name. The words of the filters are Kafka's; case does not count. Raises ClientError."""
    version = cluster.version_of(ApiKey.LIST_GROUPS)
    for needed, since, what in ((states, STATES_SINCE, "state"), (types, TYPES_SINCE, "type")):
        if needed and version < since:
            raise UnsupportedError(f"the broker cannot list groups by {what}")
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))

    def attempt(node_id: int) -> list[ListedGroup]:
        response = cluster.call(request, node_id=node_id)
        if response.error_code:
            raise RefusedError(response.error_code, None, f"groups of broker {node_id}")
        found: list[ListedGroup] = response.groups
        return found

    rows = [
        Listed(row.group_id, row.group_type.lower(), row.group_state, row.protocol_type)
        for node_id in cluster.node_ids()
        for row in cluster.retried(partial(attempt, node_id))
    ]
    return sorted(rows)


def describe_group(cluster: Cluster, group: str) -> Group:
    """Raises RefusedError with GROUP_ID_NOT_FOUND for one that is not there."""
    try:
        return asked(cluster, KeyType.GROUP, group, lambda at: _consumer_group(cluster, at, group))
    except RefusedError as error:
        if error.code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
            raise
    except UnsupportedError:  # a broker from before KIP-848
        pass
    return asked(cluster, KeyType.GROUP, group, lambda at: _classic_group(cluster, at, group))


def delete_group(cluster: Cluster, group: str) -> None:
    """With all its offsets. Raises RefusedError, above all while it has members."""

    def attempt(node_id: int) -> None:
        (result,) = cluster.call(DeleteGroupsRequest(groups_names=[group]), node_id=node_id).results
        if result.error_code:
            raise RefusedError(result.error_code, _said(group, result.error_code), f"group {group}")

    asked(cluster, KeyType.GROUP, group, attempt)


def _consumer_group(cluster: Cluster, node_id: int, group: str) -> Group:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    found: DescribedConsumerGroup
    (found,) = cluster.call(request, node_id=node_id).groups
    if found.error_code:
        raise RefusedError(found.error_code, _said(group, found.error_code), f"group {group}")
    members = [
        Member(
            row.member_id,
            row.instance_id,
            row.client_id,
            row.client_host,
            {each.topic_name: each.partitions for each in row.assignment.topic_partitions},
            row.member_epoch,
        )
        for row in found.members
    ]
    return Group(
        group,
        CONSUMER,
        found.group_state,
        CONSUMER,
        found.assignor_name,
        node_id,
        found.group_epoch,
        sorted(members, key=_by_client),
    )


def _classic_group(cluster: Cluster, node_id: int, group: str) -> Group:
    found: DescribedGroup
    (found,) = cluster.call(DescribeGroupsRequest(groups=[group]), node_id=node_id).groups
    code = found.error_code
    if not code and found.group_state == DEAD and not found.members:
        code = ErrorCode.GROUP_ID_NOT_FOUND  # how it was said before version 6
    if code:
        raise RefusedError(code, _said(group, code), f"group {group}")
    members = [
        Member(
            row.member_id,
            row.group_instance_id,
            row.client_id,
            row.client_host,
            owned_of(row.member_assignment) if found.protocol_type == CONSUMER else {},
        )
        for row in found.members
    ]
    return Group(
        group,
        CLASSIC,
        found.group_state,
        found.protocol_type,
        found.protocol_data,
        node_id,
        None,
        sorted(members, key=_by_client),
    )


def owned_of(assignment: bytes) -> Owned:
    """What the leader of a classic group gave a member; nothing if it wrote it in its own way."""
    if len(assignment) < _VERSION_BYTES:
        return {}
    version = int.from_bytes(assignment[:_VERSION_BYTES], "big", signed=True)
    try:
        codec = codec_for(ConsumerProtocolAssignment, max(0, min(version, 3)))
        found, _ = codec.read(assignment, _VERSION_BYTES)
    except WireError:
        return {}
    return {row.topic: sorted(row.partitions) for row in found.assigned_partitions}


def _by_client(member: Member) -> tuple[str, str]:
    return member.client_id, member.member_id


def _said(group: str, code: int) -> str | None:
    """Codes that Kafka sends without words, or with the words of its storage."""
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        return f"there is no group {group}"
    return f"group {group} has members" if code == ErrorCode.NON_EMPTY_GROUP else None
