"""Static members: one who is started again gets back what it had, and fences who it was."""

from runnel.errors import ErrorCode
from tests.support.classic_members import JOIN_DELAY_MS, REBALANCE_MS, SESSION_MS, Members, members
from tests.support.shards import now, waits


def two(group: Members) -> tuple[str, str]:
    """Static members "one", who leads, and "two", in a stable first generation."""
    answers = [group.join(instance_id=instance) for instance in ("one", "two")]
    group.stage.advance_ms(2 * JOIN_DELAY_MS)
    one, two = (now(answer).member_id for answer in answers)
    group.sync_all([one, two], 1)
    return one, two


def test_a_follower_comes_back_to_its_assignment_without_a_rebalance() -> None:
    group = members()
    one, before = two(group)
    answer = now(group.join(instance_id="two"))
    assert (answer.error_code, answer.generation_id, answer.leader) == (0, 1, one)
    assert not answer.skip_assignment
    assert answer.member_id != before
    assert group.group.state_name == "Stable"
    synced = now(group.sync(answer.member_id, 1, group_instance_id="two"))
    assert synced.assignment == b"for " + before.encode()


def test_who_it_was_is_fenced_everywhere() -> None:
    group = members()
    _, before = two(group)
    group.join(instance_id="two")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert group.heartbeat(before, 1, "two") is fenced
    assert group.sync(before, 1, group_instance_id="two") is fenced
    assert group.commit(before, 1, "two") is fenced
    assert group.leave(before, "two") is fenced
    assert now(group.join(before, instance_id="two")).error_code == fenced
    assert group.heartbeat(before, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_comes_back_skips_the_assignment() -> None:
    group = members()
    before, other = two(group)
    answer = now(group.join(instance_id="one"))
    assert answer.skip_assignment
    assert answer.leader == answer.member_id
    assert {each.member_id for each in answer.members} == {answer.member_id, other}
    older = now(group.join(instance_id="one", version=8))
    assert older.leader == answer.member_id != older.member_id, "it takes itself for a follower"
    assert older.members == []
    assert now(group.sync(older.member_id, 1)).assignment == b"for " + before.encode()


def test_one_that_knows_other_protocols_begins_a_rebalance() -> None:
    group = members()
    answers = [group.join(instance_id=each, names=("range", "sticky")) for each in ("one", "two")]
    group.stage.advance_ms(2 * JOIN_DELAY_MS)
    one, other = (now(answer).member_id for answer in answers)
    group.sync_all([one, other], 1)
    again = group.join(instance_id="two", names=("sticky",))
    assert waits(again)
    assert group.heartbeat(one, 1, "one") is ErrorCode.REBALANCE_IN_PROGRESS
    assert now(group.join(one, instance_id="one", names=("range", "sticky"))).generation_id == 2
    assert now(again).protocol_name == "sticky"


def test_a_replaced_member_that_waits_is_told_at_once() -> None:
    group = members()
    one, _ = two(group)
    waiting = group.join(instance_id="three")
    again = group.join(instance_id="three")
    assert now(waiting).error_code == ErrorCode.FENCED_INSTANCE_ID
    assert waits(again)
    assert group.group.member_count == 3
    assert group.heartbeat(one, 1, "one") is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_that_does_not_join_stays_while_its_session_goes_on() -> None:
    group = members()
    one, other = two(group)
    again = group.join(one, instance_id="one")
    for _ in range(REBALANCE_MS // 1_000):
        assert waits(again)
        assert group.heartbeat(other, 1, "two") is ErrorCode.REBALANCE_IN_PROGRESS
        group.stage.advance_ms(1_000)
    assert {each.member_id for each in now(again).members} == {one, other}
    assert group.heartbeat(other, 1, "two") is ErrorCode.ILLEGAL_GENERATION
    group.sync(one, 2, {one: b"all"})
    group.stage.advance_ms(SESSION_MS - 1)
    assert group.heartbeat(one, 2, "one") is ErrorCode.NONE
    group.stage.advance_ms(1)
    assert other not in group.group.members


def test_an_administrator_removes_by_instance_id() -> None:
    group = members()
    one, _ = two(group)
    assert group.leave(instance_id="two") is ErrorCode.NONE
    assert group.leave(instance_id="two") is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.leave() is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.heartbeat(one, 1, "one") is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_journal_refuses_and_the_old_member_stays() -> None:
    group = members()
    _, before = two(group)
    group.stage.journal.refusal = ErrorCode.KAFKA_STORAGE_ERROR
    assert group.join(instance_id="two") is ErrorCode.NOT_COORDINATOR
    assert group.heartbeat(before, 1, "two") is ErrorCode.NONE
    assert group.group.member_count == 2


def test_one_that_dies_after_it_waited_longer_than_its_session_is_noticed() -> None:
    group = members()
    answers = [group.join(instance_id=instance) for instance in ("one", "two")]
    group.stage.advance_ms(2 * JOIN_DELAY_MS)
    one, follower = (now(answer).member_id for answer in answers)
    syncing = group.sync(follower, 1)
    for _ in range(REBALANCE_MS // 5_000):
        group.heartbeat(one, 1, "one")  # but it never assigns anything
        assert waits(syncing)
        group.stage.advance_ms(5_000)
    assert now(syncing).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    group.stage.advance_ms(SESSION_MS)
    assert (group.group.state_name, group.group.member_count) == ("Empty", 0)


def test_one_that_comes_back_before_it_has_synced_begins_no_rebalance() -> None:
    group = members()
    answers = [group.join(instance_id=instance) for instance in ("one", "two")]
    group.stage.advance_ms(2 * JOIN_DELAY_MS)
    one, follower = (now(answer).member_id for answer in answers)
    group.sync(one, 1, {one: b"a", follower: b"b"})
    again = now(group.join(instance_id="two")).member_id
    for _ in range(1 + REBALANCE_MS // 5_000):
        group.stage.advance_ms(5_000)
        assert group.heartbeat(one, 1, "one") is ErrorCode.NONE
        assert group.heartbeat(again, 1, "two") is ErrorCode.NONE


def test_one_that_claims_to_need_no_time_does_not_keep_the_coordinator_busy() -> None:
    """It says that it lives, and never joins: nobody is left to lead."""
    group = members()
    answer = group.join(instance_id="one", rebalance_ms=1)
    group.stage.advance_ms(JOIN_DELAY_MS)
    one = now(answer).member_id
    assert now(group.sync(one, 1, {one: b"all"})).assignment == b"all"
    other, _ = group.enter(rebalance_ms=1)
    group.leave(other)
    assert group.group.state_name == "PreparingRebalance"
    until_ms, runs = group.stage.clock.now_ms + SESSION_MS, 0
    while (next_ms := group.stage.timers.next_ms()) < until_ms:
        group.stage.clock.now_ms = next_ms
        group.stage.timers.run_due(next_ms)
        runs += 1
    assert runs <= 1 + SESSION_MS // 1_000
