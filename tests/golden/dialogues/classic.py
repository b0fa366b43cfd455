"""The classic group protocol: members join, sync, send heartbeats, leave, vanish."""

from typing import Any

from runnel.wire.messages.describe_groups import DescribeGroupsRequest
from runnel.wire.messages.heartbeat import HeartbeatRequest
from runnel.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from runnel.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from runnel.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from runnel.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.golden.talk import Talk, with_settings

# Version 0 of a consumer's subscription: to the topic t, without user data.
SUBSCRIBED = bytes.fromhex("0000 00000001 0001 74 ffffffff")


def join(member_id: str = "", *, names: tuple[str, ...] = ("range",), **given: Any) -> Any:  # noqa: ANN401  # fields of the request
    fields: dict[str, Any] = {
        "group_id": "g",
        "session_timeout_ms": 6_000,
        "rebalance_timeout_ms": 20_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name=each, metadata=SUBSCRIBED) for each in names],
    }
    return JoinGroupRequest(member_id=member_id, **{**fields, **given})


def sync(member_id: str, generation_id: int, *assigned: str, **given: Any) -> SyncGroupRequest:  # noqa: ANN401  # as above
    """With an assignment for these members, as the leader says it."""
    assignments = [
        SyncGroupRequestAssignment(member_id=each, assignment=b"part %d" % number)
        for number, each in enumerate(assigned)
    ]
    fields: dict[str, Any] = {
        "group_id": "g",
        "generation_id": generation_id,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": assignments,
    }
    return SyncGroupRequest(**{**fields, **given})


def beat(member_id: str, generation_id: int, instance_id: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id="g",
        generation_id=generation_id,
        member_id=member_id,
        group_instance_id=instance_id,
    )


def leave(*members: tuple[str, str | None], group_id: str = "g") -> LeaveGroupRequest:
    identities = [MemberIdentity(member_id=each, group_instance_id=name) for each, name in members]
    return LeaveGroupRequest(group_id=group_id, members=identities)


def commit(
    member_id: str, generation_id: int, instance_id: str | None = None
) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    return OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
    )


DESCRIBE = DescribeGroupsRequest(groups=["g"])


async def _alone(talk: Talk, **given: Any) -> str:  # noqa: ANN401  # as above
    """One dynamic member in generation 1, on A; its id."""
    member_id: str = (await talk.ask(join(**given))).member_id
    await talk.ask(join(member_id, **given))
    await talk.ask(sync(member_id, 1, member_id))
    return member_id


async def a_classic_member_joins_alone(talk: Talk) -> None:
    await talk.groups_ready()
    await talk.topic("t")
    member_id = await _alone(talk)
    await talk.ask(beat(member_id, 1))
    await talk.ask(DESCRIBE)
    await talk.ask(sync(member_id, 1))  # once more
    await talk.ask(commit(member_id, 1), 9)
    talk.comment("a stale generation, a member that nobody knows")
    await talk.ask(beat(member_id, 0))
    await talk.ask(beat("stranger", 1))
    await talk.ask(sync(member_id, 2, member_id))
    await talk.ask(sync("stranger", 1))
    await talk.ask(sync(member_id, 1, protocol_type="connect"))
    await talk.ask(sync(member_id, 1, protocol_name="sticky"))
    await talk.ask(sync(member_id, 1, protocol_name=None))
    await talk.ask(join("stranger"))
    await talk.ask(commit(member_id, 0), 9)
    await talk.ask(commit("stranger", 1), 9)
    await talk.ask(commit("", -1), 9)
    await talk.ask(join(names=("sticky",)))
    await talk.ask(join(protocol_type="connect"))
    talk.comment("all of it comes back after a restart")
    await talk.restart()
    await talk.groups_ready()
    await talk.ask(beat(member_id, 1))
    await talk.ask(DESCRIBE)
    talk.comment("the leader joins again: a new generation")
    await talk.ask(join(member_id))
    await talk.ask(beat(member_id, 1))
    await talk.ask(commit(member_id, 2), 9)
    await talk.ask(sync(member_id, 2))
    await talk.ask(leave((member_id, None)))
    await talk.ask(leave((member_id, None)))
    await talk.ask(beat(member_id, 2))
    await talk.ask(DESCRIBE)
    await talk.ask(commit("", -1), 9)
    await talk.journal("__consumer_offsets")


async def two_classic_members(talk: Talk) -> None:
    await talk.groups_ready()
    await talk.topic("t", partitions=2)
    first = await _alone(talk)
    second = (await talk.ask(join(), on="B")).member_id
    await talk.ask(beat(first, 1))  # nobody has joined with that id yet
    await talk.send(join(second), on="B")
    await talk.quiet(on="B")
    await talk.ask(beat(first, 1))
    await talk.ask(sync(first, 1))
    await talk.ask(commit(first, 1), 9)
    await talk.ask(DESCRIBE)
    await talk.ask(join(first))
    await talk.expect(on="B")
    await talk.send(sync(second, 2), on="B")
    await talk.ask(beat(first, 2))
    await talk.ask(DESCRIBE)
    await talk.quiet(on="B")
    await talk.ask(sync(first, 2, first, second))
    await talk.expect(on="B")
    await talk.ask(DESCRIBE)
    talk.comment("the follower repeats its join, and changes its mind")
    await talk.ask(join(second), on="B")
    await talk.send(join(second, names=("range", "sticky")), on="B")
    await talk.ask(beat(first, 2))
    await talk.ask(join(first))
    await talk.expect(on="B")
    await talk.send(sync(second, 3), on="B")
    talk.comment("a third one joins before the leader has synced")
    third = (await talk.ask(join(), on="C")).member_id
    await talk.send(join(third), on="C")
    await talk.expect(on="B")
    await talk.send(join(second), on="B")
    await talk.ask(join(first))
    await talk.expect(on="B")
    await talk.expect(on="C")
    await talk.ask(sync(first, 4, first))  # the others get nothing
    await talk.ask(sync(second, 4), on="B")
    talk.comment("the leader leaves")
    await talk.ask(leave((first, None)))
    await talk.ask(beat(second, 4), on="B")
    await talk.send(join(second), on="B")
    await talk.ask(leave((third, None), ("stranger", None)), on="C")
    await talk.expect(on="B")
    await talk.ask(leave((second, None)), on="B")
    await talk.ask(DESCRIBE)
    await talk.journal("__consumer_offsets")


async def a_static_classic_member_comes_back(talk: Talk) -> None:
    await talk.groups_ready()
    await talk.topic("t")
    one = (await talk.ask(join(group_instance_id="one"))).member_id
    await talk.send(join(group_instance_id="two"), on="B")
    await talk.ask(beat(one, 1, "one"))
    await talk.ask(join(one, group_instance_id="one"))
    two = (await talk.expect(on="B")).member_id
    await talk.send(sync(two, 2, group_instance_id="two"), on="B")
    await talk.ask(sync(one, 2, one, two, group_instance_id="one"))
    await talk.expect(on="B")
    talk.comment("the follower comes back without its id")
    two_again = (await talk.ask(join(group_instance_id="two"), on="B")).member_id
    await talk.ask(sync(two_again, 2, group_instance_id="two"), on="B")
    await talk.ask(beat(two_again, 2, "two"), on="B")
    await talk.ask(beat(two, 2, "two"), on="B")
    await talk.ask(sync(two, 2, group_instance_id="two"), on="B")
    await talk.ask(join(two, group_instance_id="two"), on="B")
    await talk.ask(commit(two, 2, "two"), 9, on="B")
    await talk.ask(commit(two_again, 2, "two"), 9, on="B")
    await talk.ask(leave((two, "two")), on="B")
    await talk.ask(beat(two_again, 2, "three"), on="B")
    await talk.ask(beat(one, 2), on="B")
    talk.comment("the leader comes back, as a new and as an older client")
    one_again = (await talk.ask(join(group_instance_id="one"))).member_id
    await talk.ask(sync(one_again, 2, group_instance_id="one"))
    older = (await talk.ask(join(group_instance_id="one"), 8)).member_id
    await talk.ask(sync(older, 2, group_instance_id="one"), 3)
    await talk.ask(DESCRIBE)
    await talk.restart()
    await talk.groups_ready()
    await talk.ask(DESCRIBE)
    await talk.ask(beat(older, 2, "one"))
    talk.comment("it comes back with another subscription")
    await talk.ask(join(group_instance_id="two", names=("range", "sticky")), on="B")
    talk.comment("an administrator removes them")
    await talk.ask(leave(("", "two"), ("", "nobody"), ("", None)))
    await talk.ask(beat(older, 2, "one"))
    await talk.ask(leave(("", "one")))
    await talk.ask(DESCRIBE)
    await talk.journal("__consumer_offsets")


async def a_static_classic_member_comes_back_in_a_rebalance(talk: Talk) -> None:
    await talk.groups_ready()
    await talk.topic("t")
    one = (await talk.ask(join(group_instance_id="one"))).member_id
    talk.comment("before it has synced")
    one = (await talk.ask(join(group_instance_id="one"))).member_id
    await talk.ask(sync(one, 2, one, group_instance_id="one"))
    talk.comment("while it waits for another")
    await talk.send(join(group_instance_id="two"), on="B")
    await talk.quiet(on="B")
    await talk.send(join(group_instance_id="two"), on="C")
    await talk.expect(on="B")
    await talk.ask(join(one, group_instance_id="one"))
    two = (await talk.expect(on="C")).member_id
    talk.comment("while it waits for the assignment")
    await talk.send(sync(two, 3, group_instance_id="two"), on="C")
    await talk.send(join(group_instance_id="two"), on="B")
    await talk.expect(on="C")
    await talk.ask(join(one, group_instance_id="one"))
    await talk.expect(on="B")
    await talk.ask(DESCRIBE)


async def a_classic_session_runs_out(talk: Talk) -> None:
    await talk.groups_ready()
    await talk.topic("t")
    first = await _alone(talk)
    await talk.wait_ms(4_000)
    await talk.ask(commit(first, 1), 9)  # is a sign of life, too
    await talk.wait_ms(4_000)
    await talk.ask(beat(first, 1))
    await talk.wait_ms(7_000)
    await talk.ask(beat(first, 1))
    await talk.ask(DESCRIBE)
    talk.comment("an id that nobody uses, and one that is given back")
    unused = (await talk.ask(join())).member_id
    given_back = (await talk.ask(join(), on="B")).member_id
    await talk.ask(leave((given_back, None)), on="B")
    await talk.ask(join(given_back), on="B")
    await talk.wait_ms(7_000)
    await talk.ask(join(unused))
    await talk.journal("__consumer_offsets")


async def a_classic_member_does_not_join_in_time(talk: Talk) -> None:
    await talk.groups_ready()
    await talk.topic("t")
    given: dict[str, Any] = {"rebalance_timeout_ms": 7_000, "session_timeout_ms": 60_000}
    first = await _alone(talk, **given)
    second = (await talk.ask(join(**given), on="B")).member_id
    await talk.send(join(second, **given), on="B")
    await talk.ask(beat(first, 1))
    await talk.wait_ms(7_500)
    await talk.expect(on="B")
    await talk.ask(beat(first, 1))
    talk.comment("nor does it sync in time")
    await talk.wait_ms(7_500)
    await talk.ask(beat(second, 2), on="B")
    await talk.ask(DESCRIBE)


@with_settings({"group.max.size": "2"})
async def a_classic_group_is_full(talk: Talk) -> None:
    await talk.groups_ready()
    await talk.topic("t")
    first = await _alone(talk)
    second = (await talk.ask(join(), on="B")).member_id
    third = (await talk.ask(join(), on="C")).member_id  # an id is no membership yet
    await talk.send(join(second), on="B")
    await talk.send(join(first))
    await talk.quiet()
    await talk.ask(join(third), on="C")
    await talk.ask(join(), on="C")
    await talk.expect()
    await talk.expect(on="B")
    await talk.ask(sync(first, 2, first, second))
    await talk.ask(join(), on="C")
    await talk.ask(join(group_instance_id="static"), on="C")
    await talk.ask(DESCRIBE)


@with_settings({"group.min.session.timeout.ms": "1000", "group.max.session.timeout.ms": "8000"})
async def requests_that_no_classic_group_takes(talk: Talk) -> None:
    await talk.groups_ready()
    for version in (9, 4, 0):
        await talk.ask(join(group_id=""), version)
    await talk.ask(SyncGroupRequest(group_id=""))
    await talk.ask(HeartbeatRequest(group_id=""))
    await talk.ask(leave(("stranger", None), group_id=""))
    for session_timeout_ms in (999, 8_001, -1):
        await talk.ask(join("me", session_timeout_ms=session_timeout_ms))
    talk.comment("a group that is not there")
    await talk.ask(join("me"))
    await talk.ask(sync("me", 1))
    await talk.ask(beat("me", 1))
    await talk.ask(leave(("me", None), ("", "static")))
    await talk.ask(LeaveGroupRequest(group_id="g", member_id="me"), 1)
    await talk.ask(DESCRIBE)
    await talk.ask(DESCRIBE, 5)
    await talk.ask(join(names=()))
    await talk.ask(join(protocol_type=""))


async def older_classic_clients(talk: Talk) -> None:
    await talk.groups_ready()
    for version in range(4):
        talk.comment(f"as a client of version {version}")
        group_id = f"g{version}"
        joined = await talk.ask(join(group_id=group_id), version)
        request = sync(joined.member_id, 1, joined.member_id)
        request.group_id = group_id
        await talk.ask(request, min(version, 2))
        beating = beat(joined.member_id, 1)
        beating.group_id = group_id
        await talk.ask(beating, min(version, 2))
        beating.generation_id = 9
        await talk.ask(beating, min(version, 2))
        await talk.ask(DescribeGroupsRequest(groups=[group_id]), version)
        stranger = LeaveGroupRequest(group_id=group_id, member_id="stranger")
        await talk.ask(stranger, min(version, 2))
        leaving = LeaveGroupRequest(group_id=group_id, member_id=joined.member_id)
        await talk.ask(leaving, min(version, 2))
        await talk.ask(DescribeGroupsRequest(groups=[group_id]), version)


async def classic_members_vote(talk: Talk) -> None:
    await talk.groups_ready()
    await talk.topic("t")
    first = await _alone(talk, names=("range", "sticky", "own"))
    await talk.send(join(group_instance_id="two", names=("sticky", "range")), on="B")
    await talk.send(join(group_instance_id="three", names=("sticky", "else", "range")), on="C")
    await talk.ask(join(names=("own", "else")), on="D")
    await talk.ask(join(first, names=("range", "sticky", "own")))
    await talk.expect(on="B")
    await talk.expect(on="C")
    await talk.ask(join(names=("own",)), on="D")
    await talk.ask(DESCRIBE)


@with_settings({"group.initial.rebalance.delay.ms": "2000"})
async def an_empty_classic_group_waits_for_more(talk: Talk) -> None:
    await talk.groups_ready()
    await talk.topic("t")
    given: dict[str, Any] = {"rebalance_timeout_ms": 5_000, "session_timeout_ms": 20_000}
    await talk.send(join(group_instance_id="one", **given))
    await talk.wait_ms(1_200)
    await talk.send(join(group_instance_id="two", **given), on="B")
    await talk.wait_ms(1_300)
    await talk.quiet()  # the delay was extended to 4 s
    await talk.send(join(group_instance_id="three", **given), on="C")
    await talk.wait_ms(1_800)
    await talk.quiet()  # and to 5 s, which is all that the members allow
    await talk.wait_ms(1_000)
    one = (await talk.expect()).member_id
    await talk.expect(on="B")
    await talk.expect(on="C")
    talk.comment("all leave while they join: the group waits for nobody")
    await talk.ask(leave(("", "one"), ("", "two"), ("", "three")))
    await talk.ask(beat(one, 1, "one"))
    await talk.send(join(group_instance_id="four", **given))
    await talk.ask(DESCRIBE, on="B")
    await talk.ask(leave(("", "four")), on="B")
    await talk.expect()
    await talk.ask(DESCRIBE, on="B")
    await talk.wait_ms(2_300)
    await talk.ask(DESCRIBE, on="B")


async def ids_of_classic_members(talk: Talk) -> None:
    await talk.groups_ready()
    await talk.topic("t")
    first = await _alone(talk)
    talk.comment("an id is given back: that begins a rebalance")
    unused = (await talk.ask(join(), on="B")).member_id
    await talk.ask(leave((unused, None)), on="B")
    await talk.ask(beat(first, 1))
    await talk.ask(join(first))
    await talk.ask(sync(first, 2, first))
    talk.comment("an id that was given away holds up the others until it joins")
    second = (await talk.ask(join(), on="B")).member_id
    await talk.send(join(first))
    await talk.quiet()
    await talk.send(join(second), on="B")
    await talk.expect()
    await talk.expect(on="B")
    talk.comment("with another's id, with a name that it has not joined with")
    await talk.ask(beat(second, 3, "static"), on="B")
    await talk.ask(sync(second, 3, group_instance_id="static"), on="B")
    await talk.ask(join(second, group_instance_id="static"), on="B")
    await talk.ask(leave((second, "static")), on="B")
    third = (await talk.ask(join(), on="C")).member_id
    await talk.ask(join(third, group_instance_id="static"), on="C")
    await talk.ask(DESCRIBE, 0)
    await talk.ask(DescribeGroupsRequest(groups=["g", "h", ""], include_authorized_operations=True))
