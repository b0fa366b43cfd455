"""The classic protocol at the desk: every version of its requests, as frames."""

import errno

import pytest

from runnel.client.raw import decode_reply, encode_frame
from runnel.coordinator.groups import classic_join
from runnel.errors import ErrorCode
from runnel.wire.apis import APIS, ApiKey
from runnel.wire.messages.describe_groups import DescribeGroupsRequest
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest
from runnel.wire.messages.heartbeat import HeartbeatRequest
from runnel.wire.messages.join_group import JoinGroupRequest
from runnel.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from runnel.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.classic_members import join_request
from tests.support.desk import Desk, at_desk

FIRST_LEAVE_OF_SEVERAL = 3
AT_ONCE = {"group.initial.rebalance.delay.ms": "0"}


def versions(key: ApiKey) -> list[int]:
    return list(APIS[key].versions)


async def find(desk: Desk) -> None:
    response = await desk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    assert response.coordinators[0].error_code == 0


async def join(desk: Desk, version: int, member_id: str = "", group_id: str = "g") -> str:
    """Ask twice where an id is needed; the id."""
    request = join_request(member_id, group_id=group_id)
    response = await desk.ask(request, version)
    if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        request.member_id = response.member_id
        response = await desk.ask(request, version)
    assert response.error_code == 0, response
    assert (response.protocol_name, response.leader) == ("range", response.member_id)
    assert [each.member_id for each in response.members] == [response.member_id]
    found: str = response.member_id
    return found


def sync_request(member_id: str, generation_id: int, group_id: str = "g") -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")],
    )


def test_every_version_joins_syncs_beats_and_leaves() -> None:
    async def test(desk: Desk) -> None:
        await find(desk)
        syncs, beats = versions(ApiKey.SYNC_GROUP), versions(ApiKey.HEARTBEAT)
        leaves, describes = versions(ApiKey.LEAVE_GROUP), versions(ApiKey.DESCRIBE_GROUPS)
        for version in versions(ApiKey.JOIN_GROUP):
            group_id = f"g{version}"
            member_id = await join(desk, version, group_id=group_id)
            request = sync_request(member_id, 1, group_id)
            synced = await desk.ask(request, syncs[min(version, len(syncs) - 1)])
            assert (synced.error_code, synced.assignment) == (0, b"all")
            beat = HeartbeatRequest(group_id=group_id, generation_id=1, member_id=member_id)
            beating = await desk.ask(beat, beats[min(version, len(beats) - 1)])
            assert beating.error_code == 0
            described = await desk.ask(
                DescribeGroupsRequest(groups=[group_id]),
                describes[min(version, len(describes) - 1)],
            )
            (group,) = described.groups
            assert (group.group_state, group.protocol_data) == ("Stable", "range")
            (member,) = group.members
            assert (member.member_id, member.member_assignment) == (member_id, b"all")
            assert member.client_host == "/desk"
            leaving = leaves[min(version, len(leaves) - 1)]
            leave = LeaveGroupRequest(group_id=group_id, member_id=member_id)
            if leaving >= FIRST_LEAVE_OF_SEVERAL:
                members = [MemberIdentity(member_id=member_id)]
                leave = LeaveGroupRequest(group_id=group_id, members=members)
            left = await desk.ask(leave, leaving)
            assert left.error_code == 0
            assert all(each.error_code == 0 for each in left.members)

    at_desk(test, AT_ONCE)


def test_who_waits_for_a_disk_that_fails_is_told_so_and_not_left_waiting() -> None:
    """The assignment was written, and the fsync that it waits for goes wrong."""

    async def test(desk: Desk) -> None:
        await find(desk)
        member_id = await join(desk, 9)
        desk.disk.fail("sync", errno.EIO, path="__consumer_offsets")
        began_ms = desk.clock.monotonic_ms()
        synced = await desk.ask(sync_request(member_id, 1))
        assert (synced.error_code, synced.assignment) == (ErrorCode.NOT_COORDINATOR, b"")
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
        assert (await desk.ask(beat)).error_code == ErrorCode.NOT_COORDINATOR
        assert desk.clock.monotonic_ms() - began_ms < 1_000

    at_desk(test, AT_ONCE | {"runnel.durability": "ack"})


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_every_version_is_refused_in_its_own_words(version: int) -> None:
    async def test(desk: Desk) -> None:
        await find(desk)
        refused = await desk.ask(join_request("stranger"), version)
        assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert (refused.protocol_name or "") == ""
        nameless = await desk.ask(JoinGroupRequest(group_id="", session_timeout_ms=6_000), version)
        assert nameless.error_code == ErrorCode.INVALID_GROUP_ID

    at_desk(test)


def test_a_restart_brings_the_group_back_and_waiting_members_lose_their_connection() -> None:
    async def test(desk: Desk) -> None:
        await find(desk)
        member_id = await join(desk, 9)
        await desk.ask(sync_request(member_id, 1))
        other = Desk(desk.broker, desk.clock)
        waiting_id = (await other.ask(join_request(""))).member_id
        await desk.restart()
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
        assert (await desk.ask(beat)).error_code == 0
        assert (await desk.ask(sync_request(member_id, 1))).assignment == b"all"
        gone = await desk.ask(join_request(waiting_id))
        assert gone.error_code == ErrorCode.UNKNOWN_MEMBER_ID

    at_desk(test, AT_ONCE)


def test_before_the_coordinator_is_there() -> None:
    async def test(desk: Desk) -> None:
        for request in (
            join_request(""),
            sync_request("m", 1),
            HeartbeatRequest(group_id="g", generation_id=1, member_id="m"),
            LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")]),
        ):
            assert (await desk.ask(request)).error_code == ErrorCode.NOT_COORDINATOR

    at_desk(test)


def test_an_answer_that_cannot_be_written_costs_its_own_connection_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both are woken in one go, the bad one first."""
    monkeypatch.setattr(classic_join, "INSTANCE_ID_BYTES_MAX", 0x7FFF)

    async def test(desk: Desk) -> None:
        await find(desk)
        other = Desk(desk.broker, desk.clock)
        bad = join_request("", group_id="g", instance_id="i" * 0x7FFF)
        desk.put(encode_frame(bad, 5, correlation_id=1, client_id="desk"))
        good = join_request("", group_id="h", instance_id="good")
        other.put(encode_frame(good, 5, correlation_id=2, client_id="desk"))
        _, response = decode_reply(ApiKey.JOIN_GROUP, 5, await other.next_frame())
        assert response.generation_id == 1
        assert desk.closed_for == "internal error"

    at_desk(test, AT_ONCE)
