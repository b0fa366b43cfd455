"""The classic protocol from one generation to the next, by direct calls on virtual time."""

from runnel.errors import ErrorCode
from tests.support.classic_members import (
    JOIN_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    members,
)
from tests.support.shards import now, waits


def test_a_member_joins_alone_and_gets_what_it_assigned_itself() -> None:
    group = members()
    member_id, answer = group.enter()
    assert waits(answer)
    group.stage.advance_ms(JOIN_DELAY_MS)
    joined = now(answer)
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, member_id)
    assert joined.protocol_type == "consumer"
    assert joined.protocol_name == "range"
    assert [each.member_id for each in joined.members] == [member_id]
    assert group.group.state_name == "CompletingRebalance"
    synced = now(group.sync(member_id, 1, {member_id: b"mine"}))
    assert (synced.assignment, synced.protocol_name) == (b"mine", "range")
    assert group.group.state_name == "Stable"
    assert group.heartbeat(member_id, 1) is ErrorCode.NONE


def test_the_initial_delay_is_extended_while_members_come() -> None:
    group = members()
    first_id, first = group.enter(rebalance_ms=8_000)
    group.stage.advance_ms(2_000)
    _, second = group.enter(rebalance_ms=8_000)
    group.stage.advance_ms(2_000)
    _, third = group.enter(rebalance_ms=8_000)
    group.stage.advance_ms(3_900)
    assert waits(first), "extended twice, as far as the rebalance time-out allows"
    assert waits(second)
    group.stage.advance_ms(100)
    assert now(first).leader == first_id
    assert {now(each).generation_id for each in (first, second, third)} == {1}
    assert len(now(first).members) == 3
    assert now(second).members == []


def test_without_a_delay_the_first_member_begins_at_once() -> None:
    group = members(group_initial_rebalance_delay_ms=0)
    _, answer = group.enter()
    group.stage.advance_ms(0)
    assert now(answer).generation_id == 1


def test_a_second_member_makes_the_first_join_again() -> None:
    group = members()
    (first,) = group.stable()
    second, joining = group.enter()
    assert waits(joining)
    assert group.heartbeat(first, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    again = group.join(first)
    assert now(again).generation_id == now(joining).generation_id == 2
    assert now(again).leader == first
    answers = group.sync_all([first, second], 2)
    assert [now(each).assignment for each in answers] == [
        b"for " + first.encode(),
        b"for " + second.encode(),
    ]


def test_a_member_that_does_not_join_in_time_is_out() -> None:
    group = members()
    first, second = group.stable(2)
    third, joining = group.enter()
    again = group.join(second)
    for _ in range(REBALANCE_MS // 1_000):  # it is alive, but does not join
        group.heartbeat(first, 1)
        group.stage.advance_ms(1_000)
    assert now(joining).generation_id == 2
    assert now(again).leader == second, "the leader is out, so another is chosen"
    assert set(group.group.members) == {second, third}
    assert group.heartbeat(first, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_session_that_runs_out_begins_a_rebalance() -> None:
    group = members()
    first, second = group.stable(2)
    group.stage.advance_ms(SESSION_MS - 1)
    assert group.heartbeat(first, 1) is ErrorCode.NONE
    group.stage.advance_ms(1)
    assert group.heartbeat(second, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.heartbeat(first, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert now(group.join(first)).generation_id == 2


def test_a_member_that_waits_need_not_send_heartbeats() -> None:
    group = members()
    first, second = group.stable(2)
    again = group.join(first)
    for _ in range(20):
        group.stage.advance_ms(1_000)
        group.heartbeat(second, 1)
    assert waits(again)
    assert now(group.join(second)).generation_id == now(again).generation_id == 2


def test_a_commit_is_a_sign_of_life() -> None:
    group = members()
    (only,) = group.stable()
    for _ in range(5):
        group.stage.advance_ms(SESSION_MS - 1)
        assert group.commit(only, 1) is ErrorCode.NONE


def test_an_assignment_that_does_not_come_costs_the_leader_its_membership() -> None:
    group = members()
    leader, joining = group.enter()
    other, other_joining = group.enter()
    group.stage.advance_ms(2 * JOIN_DELAY_MS)
    assert now(joining).generation_id == now(other_joining).generation_id == 1
    syncing = group.sync(other, 1)
    for _ in range(REBALANCE_MS // 1_000):
        assert group.heartbeat(leader, 1) is ErrorCode.NONE
        group.stage.advance_ms(1_000)
    assert now(syncing).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert group.heartbeat(leader, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert now(group.join(other)).leader == other


def test_an_id_that_is_not_used_in_time_holds_nobody_up() -> None:
    group = members()
    (first,) = group.stable()
    group.new_id()
    again = group.join(first)
    assert waits(again), "somebody was given an id"
    group.stage.advance_ms(SESSION_MS)
    assert now(again).generation_id == 2


def test_a_new_member_that_gave_up_waiting_is_forgotten() -> None:
    group = members()
    (first,) = group.stable()
    new, joining = group.enter(rebalance_ms=900_000)
    for _ in range(300):  # the other is alive, but does not join
        group.heartbeat(first, 1)
        group.stage.advance_ms(1_000)
    assert now(joining).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert new not in group.group.members
    assert now(group.join(first)).generation_id == 2


def test_the_protocol_is_chosen_that_most_prefer_among_what_all_know() -> None:
    group = members()
    _, first = group.enter(names=("range", "sticky", "mine"))
    group.enter(names=("sticky", "range"))
    group.enter(names=("sticky", "other", "range"))
    group.stage.advance_ms(2 * JOIN_DELAY_MS)
    assert now(first).protocol_name == "sticky"
    stranger = now(group.join(names=("mine", "other")))
    assert stranger.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    other_type = now(group.join(protocol_type="connect"))
    assert other_type.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_follower_that_asks_again_is_told_the_same_once_more() -> None:
    group = members()
    first, second = group.stable(2)
    repeated = now(group.join(second))
    assert (repeated.generation_id, repeated.leader, repeated.members) == (1, first, [])
    assert group.group.state_name == "Stable"
    assert now(group.sync(second, 1)).assignment == b"for " + second.encode()


def test_a_changed_subscription_begins_a_rebalance() -> None:
    group = members()
    first, second = group.stable(2)
    assert waits(group.join(second, topics=("t", "u")))
    assert group.heartbeat(first, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert not group.group.is_subscribed_to("u")
    group.join(first)
    assert group.group.is_subscribed_to("u")


def test_after_the_last_generation_comes_the_first() -> None:
    group = members()
    (only,) = group.stable()
    group.group.generation_id = 2**31 - 1
    assert now(group.join(only)).generation_id == 1
