"""A restart at every step of a rebalance: what was assigned comes back, exactly."""

from collections.abc import Callable
from functools import partial
from typing import Any

from runnel.errors import ErrorCode
from tests.support.classic_members import JOIN_DELAY_MS, SESSION_MS, Members, members
from tests.support.shards import now


def lasting(group: Members) -> dict[str, Any]:
    found = group.group
    return {
        "state": found.state_name,
        "since": found.state_since_ms,
        "generation": found.generation_id,
        "protocol": (found.protocol_type, found.protocol_name),
        "leader": found.leader_id,
        "topics": found.subscribed_topics,
        "static": found.static_members,
        "members": {
            member.member_id: (
                member.instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
                member.assignment,
                member.metadata(found.protocol_name),
            )
            for member in found.members.values()
        },
    }


def test_a_stable_group_comes_back_exactly() -> None:
    group = members()
    group.stable(3)
    before = lasting(group)
    group.stage.advance_ms(5_000)
    group.stage.restart()
    assert lasting(group) == before


def test_members_get_a_whole_session_to_be_heard_of_again() -> None:
    group = members()
    first, second = group.stable(2)
    group.stage.advance_ms(SESSION_MS - 1)
    group.stage.restart()
    group.stage.advance_ms(SESSION_MS - 1)
    assert group.heartbeat(first, 1) is ErrorCode.NONE
    group.stage.advance_ms(1)
    assert group.heartbeat(second, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_empty_group_comes_back_with_its_generation() -> None:
    group = members()
    (only,) = group.stable()
    group.leave(only)
    before = lasting(group)
    assert (before["state"], before["generation"]) == ("Empty", 2)
    group.stage.restart()
    assert lasting(group) == before
    _, answer = group.enter()
    group.stage.advance_ms(JOIN_DELAY_MS)
    assert now(answer).generation_id == 3


def test_a_static_member_that_came_back_is_still_the_one() -> None:
    group = members()
    group.join(instance_id="one")
    group.stage.advance_ms(JOIN_DELAY_MS)
    (member_id,) = group.group.members
    group.sync(member_id, 1, {member_id: b"mine"})
    again = now(group.join(instance_id="one")).member_id
    before = lasting(group)
    group.stage.restart()
    assert lasting(group) == before
    assert group.heartbeat(again, 1, "one") is ErrorCode.NONE
    assert group.heartbeat(member_id, 1, "one") is ErrorCode.FENCED_INSTANCE_ID
    assert now(group.sync(again, 1)).assignment == b"mine"


def test_between_two_generations_the_one_before_comes_back() -> None:
    """At each step of a rebalance the broker goes down; the members start over and succeed."""
    for steps in range(5):
        group = members()
        first, second = group.stable(2)
        before = lasting(group)
        walk: list[Callable[[], object]] = [
            partial(group.join, first),
            partial(group.join, second),
            partial(group.sync, second, 2),
            partial(group.sync, first, 2, {first: b"x"}),
        ]
        for step in walk[:steps]:
            step()
        group.stage.restart()
        if steps == len(walk):
            assert lasting(group)["generation"] == 2
            assert group.heartbeat(second, 2) is ErrorCode.NONE
            continue
        assert lasting(group) == before
        assert group.heartbeat(first, 2) is ErrorCode.ILLEGAL_GENERATION
        answer = group.join(first)
        group.join(second)
        assert now(answer).generation_id == 2
        group.sync_all([first, second], 2)
        assert group.group.state_name == "Stable"


def test_an_id_that_was_only_given_away_is_forgotten() -> None:
    group = members()
    member_id = group.new_id()
    group.stage.restart()
    assert group.group.state_name == "Empty"
    assert now(group.join(member_id)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_deleted_group_is_gone_with_its_timers() -> None:
    group = members()
    (only,) = group.stable()
    group.leave(only)
    pending = group.new_id()
    group.stage.shard.write(list(group.group.tombstones()))
    assert group.stage.machine.groups == {}
    group.stage.advance_ms(SESSION_MS)
    assert now(group.join(pending)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    group.stage.restart()
    assert group.stage.machine.groups == {}
