"""Compaction while other things happen to the log, and when what rewrites it is broken."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from errno import EMFILE
from typing import Any

import pytest

from runnel.errors import ErrorCode
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.storage import cleaning_plan
from runnel.storage.cleaning_plan import CleaningPlan
from runnel.storage.folder import CLEANED, SWAP
from runnel.storage.log import Log
from runnel.storage.rewriting import Cleaned
from runnel.types import TopicPartition
from runnel.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.support.asking import create, produce
from tests.support.cleaner_effects import compacted, is_cleaned, log_of, put
from tests.support.compacting import latest
from tests.support.desk import Desk, at_desk
from tests.support.stores import flush

SETTINGS = {"log.cleaner.backoff.ms": "100", "log.retention.check.interval.ms": "100"}
SLOW = {**SETTINGS, "log.cleaner.io.max.bytes.per.second": "500000"}
LARGE = "v" * 600_000  # two of these are not in one segment


def _watch_renames(desk: Desk) -> list[str]:
    """What is being put in place while a start would not finish it, see `folder.py`."""
    disk: Any = desk.broker._ports.disk
    rename = disk.rename
    found: list[str] = []

    def watched(source: str, target: str) -> None:
        if source.endswith(SWAP):
            folder, _, name = source.rpartition("/")
            found.extend(
                f"{name} past {other}"
                for other in disk.list(folder)
                if other.endswith(CLEANED) and other[:20] < name[:20]
            )
        rename(source, target)

    disk.rename = watched
    return found


def test_what_retention_takes_meanwhile_brings_no_deleted_key_back() -> None:
    async def test(desk: Desk) -> None:
        await create(
            desk,
            cleanup_policy="compact,delete",
            segment_bytes="1048576",
            delete_retention_ms="0",
            min_cleanable_dirty_ratio="0",
        )
        endangered = _watch_renames(desk)
        cleaner = desk.broker._cleaner
        cleaner.settings, settings = replace(cleaner.settings, enable=False), cleaner.settings
        await put(desk, "x", "goes")
        await put(desk, "k", LARGE)
        await put(desk, "l", LARGE)
        await put(desk, "k", None)
        cleaner.settings = settings
        assert sorted(latest(log_of(desk))) == [b"l", b"x"]
        await asyncio.sleep(0.3)
        assert cleaner.is_cleaning(TopicPartition("t", 0))
        where = DeleteRecordsPartition(partition_index=0, offset=1)
        topic = DeleteRecordsTopic(name="t", partitions=[where])
        await desk.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1000))
        await asyncio.sleep(1)
        assert log_of(desk).segments[0].base_offset == 1, "one of the first group is gone"
        assert await is_cleaned(desk, 60.0)
        for n in range(3):  # and the tombstone with it
            await put(desk, "m", LARGE + str(n))
            assert await is_cleaned(desk, 60.0)
        assert sorted(latest(log_of(desk))) == [b"l", b"m"]
        assert endangered == []

    at_desk(test, SLOW)


def test_what_retention_takes_while_the_plan_is_made_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan of many segments takes many turns of the loop."""

    async def test(desk: Desk) -> None:
        await create(desk, cleanup_policy="compact,delete", min_cleanable_dirty_ratio="0")
        cleaner = desk.broker._cleaner
        taken: list[int] = []
        cleaner.settings, settings = replace(cleaner.settings, enable=False), cleaner.settings
        for n in range(5):
            await put(desk, "k", f"{n}")
        collect = Log.collect_aborted

        def collect_and_lose(log: Log, *asked: Any) -> bool:  # noqa: ANN401  # as `collect`
            if not taken:
                taken.append(log.segments[0].base_offset)
                log.delete_records(1)
                log.retain(desk.clock.wall_ms(), log.log_end_offset)
            return collect(log, *asked)

        monkeypatch.setattr(Log, "collect_aborted", collect_and_lose)
        cleaner.settings = settings
        await asyncio.sleep(1)
        assert taken == [0]
        assert await is_cleaned(desk)
        assert cleaner.uncleanable == {}
        assert latest(log_of(desk))[b"k"][:2] == (4, b"4")

    monkeypatch.setattr(cleaning_plan, "ITEMS_PER_STEP", 1)
    at_desk(test, SETTINGS)


def test_what_retention_takes_before_the_plan_is_made_leaves_nothing_to_do() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, cleanup_policy="compact,delete", min_cleanable_dirty_ratio="0")
        cleaner = desk.broker._cleaner
        write_checkpoints = cleaner._write_checkpoints

        async def write_slowly() -> None:
            await write_checkpoints()
            log = log_of(desk)
            log.delete_records(log.log_end_offset)
            log.retain(desk.clock.wall_ms(), log.log_end_offset)

        cleaner._write_checkpoints = write_slowly
        await put(desk, "k", "v")
        await asyncio.sleep(1)
        cleaner._write_checkpoints = write_checkpoints
        assert log_of(desk).segment_count == 1
        assert cleaner.uncleanable == {}
        await put(desk, "k", "v")
        assert await is_cleaned(desk)

    at_desk(test, SETTINGS)


def test_a_want_of_descriptors_passes() -> None:
    async def test(desk: Desk) -> None:
        await compacted(desk, segment_ms="1000")
        disk: Any = desk.broker._ports.disk
        raw = bytes(encode([Record(b"k", b"v", desk.clock.wall_ms())]))
        assert (await produce(desk, raw)).error_code == ErrorCode.NONE
        for _ in range(500):
            disk.fail("open", EMFILE, path=".snapshot")
        await asyncio.sleep(3)
        assert log_of(desk).offline is None
        assert log_of(desk).segment_count == 1, "it could not be closed"
        disk.heal()
        await asyncio.sleep(3)
        flush(log_of(desk))
        assert await is_cleaned(desk)
        assert desk.broker._cleaner.uncleanable == {}

    at_desk(test, SETTINGS)


class _Broken:
    """A fault of our own."""

    async def rewrite(self, _plan: CleaningPlan) -> AsyncGenerator[Cleaned, None]:
        raise ZeroDivisionError
        yield

    def rest(self) -> None:
        pass


def test_a_fault_of_our_own_costs_one_log_its_cleaning_and_nobody_else_anything() -> None:
    async def test(desk: Desk) -> None:
        await compacted(desk)
        cleaner = desk.broker._cleaner
        disk, right = cleaner._on_disk
        cleaner._on_disk = disk, _Broken()
        await put(desk, "k", "v")
        assert not await is_cleaned(desk)
        assert list(cleaner.uncleanable) == [TopicPartition("t", 0)]
        cleaner._on_disk = disk, right
        await compacted(desk, "u")
        await put(desk, "k", "v", "u")
        assert await is_cleaned(desk, topic="u")
        raw = bytes(encode([Record(b"k", b"v", desk.clock.wall_ms())]))
        assert (await produce(desk, raw)).error_code == ErrorCode.NONE

    at_desk(test, SETTINGS)
