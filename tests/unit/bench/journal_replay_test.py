"""The journal that the benchmark puts into a folder is one that a coordinator has written."""

from pathlib import Path

import pytest

from bench.journal_replay import JOURNAL, SEGMENT, write_journal
from runnel.bench.pipeline import LoadError
from runnel.broker.coordinators import java_hash
from runnel.coordinator.records import decode_record, kinds_of
from runnel.native.records import decode
from runnel.wire.messages.records.offset_commit import OffsetCommitKey, OffsetCommitValue

KINDS = kinds_of((OffsetCommitKey, OffsetCommitValue))
GROUPS = [f"g{number}" for number in range(7)]
PARTITIONS = 3


def test_every_group_is_in_its_partition_and_ends_with_its_last_offset(tmp_path: Path) -> None:
    for index in range(PARTITIONS):
        folder = tmp_path / f"{JOURNAL}-{index}"
        folder.mkdir()
        (folder / f"{SEGMENT}.index").write_bytes(b"of what was there before")
    last = write_journal(tmp_path, GROUPS, commits=70)
    assert last == 10
    found: dict[str, list[int]] = {}
    for index in range(PARTITIONS):
        (log,) = (tmp_path / f"{JOURNAL}-{index}").iterdir()
        columns = decode(log.read_bytes(), max_records=1000, max_bytes=1 << 20)
        rows = list(columns.rows())
        assert [row.offset for row in rows] == list(range(len(rows)))
        assert len(columns.batches) == len(rows)  # a batch for each commit
        for row in rows:
            record = decode_record(KINDS, row.key or b"", row.value)
            assert record is not None and record.value is not None
            assert java_hash(record.key.group) % PARTITIONS == index
            found.setdefault(record.key.group, []).append(record.value.offset)
    assert sorted(found) == GROUPS
    assert all(len(offsets) == 10 and offsets[-1] == last for offsets in found.values())


def test_a_folder_without_a_journal(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=JOURNAL):
        write_journal(tmp_path, GROUPS, commits=70)
