"""Tombstones of very many offsets: no batch is too large for the journal."""

from collections.abc import Sequence

import pytest

from runnel.coordinator.groups.expiry import OFFSETS_PER_STEP
from runnel.coordinator.groups.offset_deletion import delete_group
from runnel.coordinator.records import JournalRecord
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.records.offset_commit import OffsetCommitKey, OffsetCommitValue
from tests.support.shards import GroupStage

JOURNAL_BYTES_MAX = 1_000_000  # about Kafka's default of max.message.bytes


@pytest.mark.parametrize(
    ("group_id", "bytes_max"),
    [
        ("g", JOURNAL_BYTES_MAX),
        ("g" * 20_000, JOURNAL_BYTES_MAX),
        ("\U0001f600" * 8_000, JOURNAL_BYTES_MAX),
        ("g", 1_000),
    ],
)
def test_a_group_with_a_long_name_and_many_offsets_can_be_deleted(
    group_id: str, bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = GroupStage()
    stage.journal.batch_bytes_max = bytes_max
    for index in range(1_200):
        key = OffsetCommitKey(group=group_id, topic="t", partition=index)
        stage.shard.write([JournalRecord(key, OffsetCommitValue(offset=1), 4)])
    append = stage.journal.append

    def bounded(
        records: Sequence[tuple[bytes, bytes | None]], producer_id: int, producer_epoch: int
    ) -> None:
        if sum(len(key) + 20 for key, _ in records) > bytes_max:
            raise RunnelError(ErrorCode.MESSAGE_TOO_LARGE, "too large")
        append(records, producer_id, producer_epoch)

    monkeypatch.setattr(stage.journal, "append", bounded)
    turns = len(list(delete_group(stage.machine, group_id)))
    assert turns == 1, "a thousand and the rest"
    assert stage.machine.groups == {}
    assert stage.machine.offsets.committed.by_group == {}
    stage.restart()
    assert stage.machine.groups == {}


def test_very_many_offsets_expire_in_short_turns() -> None:
    stage = GroupStage()
    count = 5 * OFFSETS_PER_STEP // 2
    for index in range(count):
        key = OffsetCommitKey(group="g", topic="t", partition=index)
        value = OffsetCommitValue(offset=1, commit_timestamp=0)
        stage.shard.write([JournalRecord(key, value, 4)])
    stage.clock.now_ms += stage.settings.offsets_retention_check_interval_ms
    turns = 0
    while stage.machine.groups:
        before = stage.journal.end_offset
        stage.timers.run_due(stage.clock.now_ms)
        assert 0 < stage.journal.end_offset - before <= OFFSETS_PER_STEP + 1
        turns += 1
    assert turns == 3
    assert stage.machine.offsets.committed.by_group == {}
