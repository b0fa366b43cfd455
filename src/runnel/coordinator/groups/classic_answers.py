"""What members of a classic group are told, with Kafka's defaults where something went wrong."""

from runnel.coordinator.groups.classic_group import ClassicGroup
from runnel.coordinator.groups.classic_member import ClassicMember
from runnel.errors import ErrorCode
from runnel.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from runnel.wire.messages.sync_group import SyncGroupResponse


def not_joined(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def joined(
    group: ClassicGroup, member_id: str, *, with_members: bool, skip_assignment: bool = False
) -> JoinGroupResponse:
    """The leader is told who the others are; one who may skip the assignment gets its own back."""
    members = []
    if with_members:
        members = [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(group.protocol_name),
            )
            for member in group.members.values()
        ]
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )


def not_synced(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)


def synced(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )
