"""Commits that are gathered: one batch for all of them, and nothing has happened before it.

Method: a shard on a list as its journal, asked as the handler does.
"""

import pytest

from runnel.coordinator.gathering import BATCH_BYTES_MAX, Gathered
from runnel.coordinator.groups.offset_deletion import delete_group
from runnel.errors import ErrorCode, RunnelError
from tests.support.asking_groups import commit_request
from tests.support.shards import GroupStage

VERSION = 9


def _stage(*groups: str) -> GroupStage:
    """With groups that are there already: each has committed 0."""
    stage = GroupStage()
    stage.topics.set(t=3)
    for group in groups:
        assert _commit(stage, 0, group=group, gathers=False) is None
    return stage


def _commit(
    stage: GroupStage, offset: int, *, group: str = "g", metadata: str = "", gathers: bool = True
) -> Gathered | None:
    request = commit_request({0: offset}, group=group, metadata=metadata)
    stage.machine.offsets.commit(request, request.topics, VERSION, gathers=gathers)
    return stage.shard.gathered


def _offset(stage: GroupStage, group: str = "g") -> int | None:
    found = stage.machine.offsets.committed.get(group, "t", 0)
    return None if found is None else found.offset


def test_nothing_has_happened_until_it_is_written_and_then_all_of_it_in_one_batch() -> None:
    stage = _stage("g", "h")
    gathered = _commit(stage, 5)
    assert gathered is not None
    assert _commit(stage, 6, group="h") is gathered
    assert _commit(stage, 7) is gathered
    assert (_offset(stage), _offset(stage, "h"), len(stage.journal.batches)) == (0, 0, 2)
    stage.shard.write_gathered()
    assert stage.shard.gathered is None
    assert (gathered.is_over, gathered.code) == (True, ErrorCode.NONE)
    assert (_offset(stage), _offset(stage, "h"), stage.journal.batches) == (7, 6, [1, 1, 3])
    stage.restart()
    assert (_offset(stage), _offset(stage, "h")) == (7, 6)


def test_a_journal_that_refuses_has_changed_nothing_and_all_are_told() -> None:
    stage = _stage("g", "h")
    gathered = _commit(stage, 5)
    _commit(stage, 6, group="h")
    stage.journal.refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
    stage.shard.write_gathered()
    assert gathered is not None
    assert (gathered.is_over, gathered.code) == (True, ErrorCode.NOT_COORDINATOR)
    assert (_offset(stage), _offset(stage, "h")) == (0, 0)
    stage.journal.refusal = None
    assert _commit(stage, 8) is not gathered
    stage.shard.write_gathered()
    assert _offset(stage) == 8


def test_the_first_commit_of_a_group_is_written_at_once_after_what_was_gathered() -> None:
    stage = _stage("g")
    gathered = _commit(stage, 5)
    assert _commit(stage, 6, group="new") is None
    assert gathered is not None
    assert gathered.is_over
    assert (_offset(stage), _offset(stage, "new"), stage.journal.batches) == (5, 6, [1, 1, 1])


def test_a_commit_that_is_refused_gathers_nothing() -> None:
    stage = _stage("g")
    request = commit_request({0: 1}, member="m", generation=3)
    with pytest.raises(RunnelError, match="no member m"):
        stage.machine.offsets.commit(request, request.topics, VERSION, gathers=True)
    assert stage.shard.gathered is None


def test_what_time_brings_about_comes_after_what_was_gathered() -> None:
    stage = _stage("g")
    seen: list[int | None] = []
    stage.shard.after(10, lambda: seen.append(_offset(stage)))
    _commit(stage, 5)
    stage.advance_ms(10)
    assert seen == [5]


def test_a_group_is_deleted_with_what_was_gathered_for_it() -> None:
    stage = _stage("g")
    _commit(stage, 5)
    for _ in delete_group(stage.machine, "g"):
        pass
    assert _offset(stage) is None
    stage.restart()
    assert _offset(stage) is None
    assert "g" not in stage.machine.groups


def test_a_shard_that_is_closed_has_not_written_it() -> None:
    stage = _stage("g")
    gathered = _commit(stage, 5)
    stage.shard.close()
    assert gathered is not None
    assert (gathered.is_over, gathered.code) == (True, ErrorCode.NOT_COORDINATOR)
    stage.restart()
    assert _offset(stage) == 0


def test_no_batch_becomes_too_large_for_the_journal() -> None:
    stage = _stage("g")
    batches = {_commit(stage, offset, metadata="m" * 4000) for offset in range(100)}
    stage.shard.write_gathered()
    assert len(batches) == 4
    assert all(each is not None and each.size_bytes <= BATCH_BYTES_MAX for each in batches)
    assert sum(stage.journal.batches) == 101
    assert _offset(stage) == 99


def test_a_journal_that_takes_little_at_once_gets_what_it_takes() -> None:
    """max.message.bytes of the topic may be set to anything; each of these would fit by itself."""
    stage = _stage("g")
    stage.journal.batch_bytes_max = 1_000
    batches = [_commit(stage, offset, metadata="m" * 300) for offset in range(6)]
    stage.shard.write_gathered()
    assert all(each is not None and each.size_bytes < 1_000 for each in batches)
    assert stage.journal.batches == [1, 2, 2, 2]


def test_a_bug_is_not_told_as_a_success_and_costs_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = _stage("g")
    gathered = _commit(stage, 5)
    monkeypatch.setattr(stage.journal, "append", None)  # what is called raises TypeError
    stage.shard.write_gathered()
    assert gathered is not None
    assert (gathered.is_over, gathered.code) == (True, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert _offset(stage) == 0


def test_to_decide_without_what_was_gathered_is_a_bug_that_is_noticed() -> None:
    stage = _stage("g")
    _commit(stage, 5)
    with pytest.raises(AssertionError, match="gathered"):
        stage.shard.append([(b"\0\x7f", b"")])
