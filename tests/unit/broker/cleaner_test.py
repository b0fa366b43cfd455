"""The cleaner of a broker: what it takes up, what it leaves alone, and what it survives."""

import asyncio

from runnel.errors import ErrorCode
from runnel.metrics import Slot
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.types import TopicPartition
from runnel.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from runnel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.support.asking import create, fetch_request, offset_at, produce, values_of
from tests.support.cleaner_effects import close_segment, compacted, is_cleaned, log_of, put
from tests.support.compacting import latest
from tests.support.configuring import TOPIC as TOPIC_TYPE
from tests.support.configuring import set_configs
from tests.support.desk import Desk, at_desk

SETTINGS = {"log.cleaner.backoff.ms": "100", "log.retention.check.interval.ms": "100"}
SLOW = {**SETTINGS, "log.cleaner.io.max.bytes.per.second": "2000"}


async def _fill(desk: Desk, rounds: int = 5, size: int = 100) -> None:
    for number in range(rounds):
        for key in "abc":
            await put(desk, key, f"{number}" * size)


def test_a_topic_is_cleaned_and_read_on() -> None:
    async def test(desk: Desk) -> None:
        await compacted(desk)
        await _fill(desk)
        before = latest(log_of(desk))
        assert await is_cleaned(desk)
        assert log_of(desk).segment_count == 2
        assert latest(log_of(desk)) == before
        response = await desk.ask(fetch_request(0), 12)
        assert [v and v[:1] for v in values_of(response)] == [b"4", b"4", b"4"]
        slots = desk.broker.metrics.slots
        assert slots[Slot.CLEANER_RUNS] >= 1
        assert slots[Slot.CLEANER_READ_BYTES] > slots[Slot.CLEANER_WRITTEN_BYTES] > 0
        assert slots[Slot.CLEANER_LAST_LOOK_MS] > 0
        await desk.restart()
        assert latest(log_of(desk)) == before
        assert log_of(desk).first_dirty_offset == 15
        runs = desk.broker.metrics.slots[Slot.CLEANER_RUNS]
        await asyncio.sleep(5)
        assert desk.broker.metrics.slots[Slot.CLEANER_RUNS] == runs, "nothing to do"

    at_desk(test, SETTINGS)


def test_a_topic_in_memory_is_cleaned_too() -> None:
    async def test(desk: Desk) -> None:
        await compacted(desk, runnel_storage="memory")
        await _fill(desk)
        before = latest(log_of(desk))
        assert await is_cleaned(desk)
        assert log_of(desk).segment_count == 2
        assert latest(log_of(desk)) == before

    at_desk(test, SETTINGS)


def test_a_topic_that_is_not_compacted_is_left_alone() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await _fill(desk)
        assert not await is_cleaned(desk, 5.0)
        assert log_of(desk).segment_count == 16

    at_desk(test, SETTINGS)


def test_without_the_cleaner_nothing_is_cleaned() -> None:
    async def test(desk: Desk) -> None:
        await compacted(desk)
        await _fill(desk)
        assert not await is_cleaned(desk, 5.0)

    at_desk(test, {**SETTINGS, "log.cleaner.enable": "false"})


def test_a_retried_batch_is_known_after_a_compaction_and_a_restart() -> None:
    async def test(desk: Desk) -> None:
        await compacted(desk)
        record = Record(b"a", b"1", desk.clock.wall_ms())
        raw = bytes(encode([record], producer_id=9, producer_epoch=0, base_sequence=0))
        first = await produce(desk, raw)
        close_segment(desk)
        await _fill(desk)
        assert await is_cleaned(desk)
        for _ in range(2):
            again = await produce(desk, raw)
            assert (again.error_code, again.base_offset) == (0, first.base_offset)
            await desk.restart()

    at_desk(test, SETTINGS)


def test_a_deleted_topic_ends_its_cleaning() -> None:
    async def test(desk: Desk) -> None:
        await compacted(desk)
        await _fill(desk, size=1000)
        await asyncio.sleep(1)
        cleaner = desk.broker._cleaner
        assert cleaner.is_cleaning(TopicPartition("t", 0))
        await desk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000))
        await asyncio.sleep(1)
        assert not cleaner.is_cleaning(TopicPartition("t", 0))
        await compacted(desk)
        await put(desk, "x", "y")
        assert await is_cleaned(desk, 2.0)
        assert cleaner.uncleanable == {}

    at_desk(test, SLOW)


def test_a_log_on_its_way_to_another_folder_is_not_cleaned() -> None:
    async def test(desk: Desk) -> None:
        await compacted(desk)
        await _fill(desk, size=2000)
        await asyncio.sleep(1)
        name = TopicPartition("t", 0)
        cleaner, moves = desk.broker._cleaner, desk.broker._log_dirs
        assert cleaner.is_cleaning(name)
        moves.bytes_per_second = 5000
        before = latest(log_of(desk))
        folder = log_of(desk).folder
        moves.move(name, "/more" if folder.startswith("/data") else "/data")
        await asyncio.sleep(2)
        assert not cleaner.is_cleaning(name)
        assert log_of(desk).segment_count == 16, "given up"
        moves.bytes_per_second = 10_000_000
        await asyncio.sleep(5)
        assert log_of(desk).folder != folder
        close_segment(desk)  # which they all are one of now
        assert await is_cleaned(desk, 300.0)
        assert latest(log_of(desk)) == before

    at_desk(test, {**SLOW, "log.dirs": "/data,/more"})


def test_records_deleted_meanwhile_stay_deleted() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, "t", 1, cleanup_policy="compact,delete")
        await _fill(desk, size=200)
        await asyncio.sleep(1)
        assert desk.broker._cleaner.is_cleaning(TopicPartition("t", 0))
        topic = DeleteRecordsTopic(
            name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=14)]
        )
        await desk.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1000))
        await asyncio.sleep(1)
        assert await is_cleaned(desk, 60.0)
        log = log_of(desk)
        assert log.log_start_offset == 14
        assert sorted(latest(log)) == [b"c"]
        assert log.offline is None

    at_desk(test, SLOW)


def test_both_policies_at_once() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, "t", 1, cleanup_policy="compact,delete", retention_ms="3000")
        await _fill(desk)
        assert await is_cleaned(desk)
        assert len(latest(log_of(desk))) == 3
        await asyncio.sleep(5)
        assert log_of(desk).log_start_offset == 15, "retention takes what compaction left"
        await _fill(desk, 2)
        assert await is_cleaned(desk)
        assert len(latest(log_of(desk))) == 3

    at_desk(test, SETTINGS)


def test_a_damaged_log_is_told_of_and_left_alone() -> None:
    async def test(desk: Desk) -> None:
        await compacted(desk, "good")
        await compacted(desk, min_cleanable_dirty_ratio="1")
        await _fill(desk)
        log = log_of(desk)
        file = log.segments[2].file
        file.write_at(80, b"\xff\xff")
        files = [name for name in desk.broker._ports.disk.list(log.folder) if "cleaned" not in name]
        await set_configs(desk, TOPIC_TYPE, "t", {"min.cleanable.dirty.ratio": "0"})
        await put(desk, "k", "v", "good")
        assert await is_cleaned(desk, 2.0, "good")
        assert not await is_cleaned(desk)
        cleaner = desk.broker._cleaner
        assert list(cleaner.uncleanable) == [TopicPartition("t", 0)]
        assert "wrong CRC" in cleaner.uncleanable[TopicPartition("t", 0)].why
        assert desk.broker.metrics.slots[Slot.CLEANER_UNCLEANABLE] == 1
        assert desk.broker._ports.disk.list(log.folder) == files, "not a file is touched"
        assert log.offline is None
        raw = bytes(encode([Record(b"k", b"v", desk.clock.wall_ms())]))
        assert (await produce(desk, raw)).error_code == ErrorCode.NONE
        await desk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000))
        await compacted(desk)
        await put(desk, "k", "v")
        assert await is_cleaned(desk), "another log of the same name"

    at_desk(test, SETTINGS)


def test_times_are_found_after_a_compaction() -> None:
    async def test(desk: Desk) -> None:
        await compacted(desk)
        started_ms = desk.clock.wall_ms()
        for number in range(10):
            await put(desk, str(number % 3), "v")
            await asyncio.sleep(0.01)
        assert await is_cleaned(desk)
        kept = sorted((offset, at) for offset, _, at in latest(log_of(desk)).values())
        assert [offset for offset, _ in kept] == [7, 8, 9]
        assert (await offset_at(desk, started_ms)).offset == 7
        for offset, timestamp in kept:
            assert (await offset_at(desk, timestamp)).offset == offset

    at_desk(test, SETTINGS)
