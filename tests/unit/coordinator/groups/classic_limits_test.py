"""What a classic group refuses, and a journal that refuses: nothing is half changed."""

import pytest

from runnel.coordinator.groups import classic_join
from runnel.errors import ErrorCode
from tests.support.classic_members import JOIN_DELAY_MS, SESSION_MS, members
from tests.support.shards import now, waits


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, -1])
def test_sessions_have_limits(session_ms: int) -> None:
    group = members()
    answer = now(group.join("me", session_ms=session_ms))
    assert (answer.error_code, answer.member_id) == (ErrorCode.INVALID_SESSION_TIMEOUT, "me")
    assert group.stage.journal.records == []


def test_a_group_without_a_protocol_is_not_created() -> None:
    group = members()
    assert group.join(names=()) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert group.join(protocol_type="") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert now(group.join("me")).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.stage.machine.groups == {}
    assert group.stage.journal.records == []


def test_a_full_group_takes_nobody_more() -> None:
    group = members(group_max_size=2)
    first, second = group.stable(2)
    assert now(group.join()).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert group.leave(second) is ErrorCode.NONE
    third = group.new_id()
    assert waits(group.join(third))
    assert not waits(group.join(first))


def test_what_members_say_of_themselves_has_a_limit_together() -> None:
    """Sixteen times what the journal could take of them: they may know several protocols."""
    group = members()
    group.stage.journal.batch_bytes_max = 1_000
    topics = ("t" * 200,)
    many = tuple(f"protocol-{number}" for number in range(30))
    first, joining = group.enter(names=many, topics=topics)
    assert waits(joining)
    assert 6_000 < group.group.metadata_bytes < 8_000
    second, joining = group.enter(names=many, topics=topics)
    assert waits(joining)
    refused = now(group.join(group.new_id(names=many[:1]), names=many, topics=topics))
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert waits(group.join(second, names=many, topics=topics)), "it takes its own place"
    assert group.leave(second) is ErrorCode.NONE
    assert waits(group.join(group.new_id(names=many[:1]), names=many[:1], topics=topics))
    assert group.leave(first) is ErrorCode.NONE
    assert group.group.metadata_bytes < 300
    assert set(group.group._supported) == {many[0]}, "nothing is kept of who has left"


def test_a_group_that_became_too_large_loses_its_last() -> None:
    group = members()
    ids = group.stable(3)
    group.stage.settings = type(group.stage.settings)(group_max_size=2)
    group.stage.restart()
    assert group.group.state_name == "PreparingRebalance"
    answers = [group.join(each) for each in ids]
    assert now(answers[2]).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert {now(each).generation_id for each in answers[:2]} == {2}


def test_an_assignment_that_is_not_written_is_told_to_nobody() -> None:
    group = members()
    first, joining = group.enter()
    second, _ = group.enter()
    group.stage.advance_ms(2 * JOIN_DELAY_MS)
    assert now(joining).generation_id == 1
    syncing = group.sync(second, 1)
    group.stage.journal.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    failed = group.sync(first, 1, {first: b"a", second: b"b"})
    for answer in (syncing, failed):
        assert now(answer).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert now(answer).assignment == b""
    assert group.group.state_name == "PreparingRebalance"
    group.stage.journal.refusal = None
    assert waits(group.join(second))
    assert now(group.join(first)).generation_id == 2


def test_a_group_is_not_created_if_the_journal_refuses() -> None:
    group = members()
    group.stage.journal.refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert group.join() is ErrorCode.NOT_COORDINATOR
    assert group.stage.machine.groups == {}


def test_members_leave_even_if_the_journal_refuses() -> None:
    group = members()
    (only,) = group.stable()
    group.stage.journal.refusal = ErrorCode.KAFKA_STORAGE_ERROR
    assert group.leave(only) is ErrorCode.NONE
    assert group.group.state_name == "Empty"
    group.stage.journal.refusal = None
    group.stage.restart()
    assert group.heartbeat(only, 1) is ErrorCode.NONE, "as the journal has it"
    group.stage.advance_ms(SESSION_MS)
    assert group.group.state_name == "Empty"


def test_commits_need_the_generation() -> None:
    group = members()
    first, second = group.stable(2)
    assert group.commit(first, 1) is ErrorCode.NONE
    assert group.commit(first, 0) is ErrorCode.ILLEGAL_GENERATION
    assert group.commit(first, -1) is ErrorCode.ILLEGAL_GENERATION
    assert group.commit("stranger", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.commit("", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.commit(first, 1, "instance") is ErrorCode.UNKNOWN_MEMBER_ID
    group.join(first)
    assert group.commit(first, 1) is ErrorCode.NONE, "before it joins again it may still commit"
    group.join(second)
    assert group.commit(first, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    group.group.ensure_may_commit_in_transaction(first, None, 2)
    group.leave(first)
    group.leave(second)
    assert group.commit("", -1) is ErrorCode.NONE


def test_requests_that_come_twice_are_each_answered() -> None:
    group = members()
    (first,) = group.stable()
    second, joining = group.enter()
    repeated = group.join(second)
    assert now(joining).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert waits(repeated)
    group.join(first)
    assert now(repeated).generation_id == 2
    syncing = group.sync(second, 2)
    again = group.sync(second, 2)
    assert now(syncing).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    group.sync(first, 2, {second: b"mine"})
    assert now(again).assignment == b"mine"
    assert not group.stage.shard.deferred, "nobody is left waiting"


def test_an_instance_id_leaves_room_for_the_id_that_is_made_of_it() -> None:
    group = members()
    answer = now(group.join(instance_id="i" * 1025))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert group.stage.machine.groups == {}
    assert waits(group.join(instance_id="i" * 1024))


def test_ids_that_nobody_joins_with_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classic_join, "PENDING_MEMBERS_MAX", 3)
    group = members()
    ids = [group.new_id() for _ in range(3)]
    assert now(group.join()).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert waits(group.join(ids[0]))
    group.new_id()
