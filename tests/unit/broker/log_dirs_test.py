"""Goal: several data folders: spread, described, moved between while in use, and failing apart."""

import asyncio
from errno import EIO

import pytest

from runnel.errors import ErrorCode
from runnel.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from runnel.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from runnel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from runnel.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from tests.simulated.disk import Operation, SimDisk
from tests.support.asking import batch, create, fetch_request, offset_at, produce, values_of
from tests.support.desk import Desk, at_desk

TWO = {"log.dirs": "/data/a,/data/b"}


def held(response: DescribeLogDirsResponse) -> dict[str, list[tuple[str, int, bool]]]:
    return {
        folder.log_dir: sorted(
            (topic.name, each.partition_index, each.is_future_key)
            for topic in folder.topics
            for each in topic.partitions
        )
        for folder in response.results
    }


async def folders(desk: Desk) -> dict[str, list[tuple[str, int, bool]]]:
    return held(await desk.ask(DescribeLogDirsRequest(topics=None)))


async def move(desk: Desk, path: str, name: str = "t", index: int = 0, version: int = 2) -> int:
    topic = AlterReplicaLogDirTopic(name=name, partitions=[index])
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[topic])])
    code: int = (await desk.ask(request, version)).results[0].partitions[0].error_code
    return code


async def read(desk: Desk, offset: int = 0) -> list[bytes | None]:
    found: list[bytes | None] = []
    while True:
        values = values_of(await desk.ask(fetch_request(offset + len(found), max_wait_ms=0), 12))
        if not values:
            return found
        found += values


def disk_of(desk: Desk) -> SimDisk:
    disk = desk.broker._ports.disk
    assert isinstance(disk, SimDisk)
    return disk


@pytest.mark.parametrize("version", range(1, 6))
def test_folders_are_described(version: int) -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=3)
        await create(desk, "m", runnel_storage="memory")
        sent = batch(b"v" * 100)
        await produce(desk, sent)
        response = await desk.ask(DescribeLogDirsRequest(topics=None), version)
        assert response.error_code == 0
        assert held(response) == {
            "/data/a": [("t", 0, False), ("t", 2, False)],
            "/data/b": [("t", 1, False)],
            ":memory:": [("m", 0, False)],
        }
        first = response.results[0].topics[0].partitions[0]
        assert (first.partition_size, first.offset_lag) == (len(sent), 0)
        if version >= 4:
            assert response.results[0].total_bytes > response.results[0].usable_bytes > 0
        asked = [DescribableLogDirTopic(topic="t", partitions=[1, 9])]
        some = held(await desk.ask(DescribeLogDirsRequest(topics=asked), version))
        assert some == {"/data/a": [], "/data/b": [("t", 1, False)], ":memory:": []}

    at_desk(test, TWO)


@pytest.mark.parametrize("version", [1, 2])
def test_a_log_moves_while_it_is_written(version: int) -> None:
    async def test(desk: Desk) -> None:
        await create(desk, segment_bytes="1048576")
        sent = []
        for number in range(60):
            sent.append(b"%d" % number + b"x" * 100_000)
            await produce(desk, batch(sent[-1], producer_id=9, producer_epoch=0,
                                      base_sequence=number))  # fmt: skip
        assert await move(desk, "/data/b", version=version) == 0
        seen = await folders(desk)
        assert seen == {"/data/a": [("t", 0, False)], "/data/b": [("t", 0, True)]}
        for number in range(60, 70):
            sent.append(b"%d" % number)
            result = await produce(desk, batch(sent[-1], producer_id=9, producer_epoch=0,
                                               base_sequence=number))  # fmt: skip
            assert result.base_offset == number
            await asyncio.sleep(0.002)
        await asyncio.sleep(5)
        assert await folders(desk) == {"/data/a": [], "/data/b": [("t", 0, False)]}
        again = batch(sent[-3], producer_id=9, producer_epoch=0, base_sequence=67)
        assert (await produce(desk, again)).base_offset == 67, "its producers moved with it"
        assert (await produce(desk, batch(b"last"))).base_offset == 70
        assert await read(desk) == [*sent, b"last"]
        names = disk_of(desk).list("/data/b")
        assert [name for name in names if name.startswith("t-")] == ["t-0"]

    at_desk(test, TWO)


def test_there_and_back_with_a_raised_start() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await produce(desk, batch(*[b"%d" % n for n in range(10)]))
        partition = DeleteRecordsPartition(partition_index=0, offset=4)
        topic = DeleteRecordsTopic(name="t", partitions=[partition])
        await desk.ask(DeleteRecordsRequest(topics=[topic]))
        for path in ("/data/b", "/data/a", "/data/b"):
            assert await move(desk, path) == 0
            await asyncio.sleep(5)
            assert (await folders(desk))[path] == [("t", 0, False)]
            assert (await offset_at(desk, -2)).offset == 4
            assert (await offset_at(desk, -1)).offset == 10
        assert (await read(desk, 4))[-6:] == [b"%d" % n for n in range(4, 10)]

    at_desk(test, TWO)


def test_an_empty_log_moves_and_keeps_its_offsets() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await produce(desk, batch(b"a", b"b"))
        log = desk.broker.partitions.get("t", 0).log
        log.truncate_fully_and_start_at(500)
        assert await move(desk, "/data/b") == 0
        await asyncio.sleep(5)
        assert (await folders(desk))["/data/b"] == [("t", 0, False)]
        assert (await produce(desk, batch(b"c"))).base_offset == 500

    at_desk(test, TWO)


def test_moves_that_are_refused_or_need_nothing() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await create(desk, "m", runnel_storage="memory")
        assert await move(desk, "/elsewhere") == ErrorCode.LOG_DIR_NOT_FOUND
        assert await move(desk, "/data/b", index=7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await move(desk, "/data/b", "b/d") == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert await move(desk, "/data/b", "m") == ErrorCode.INVALID_REQUEST
        assert await move(desk, "/data/a") == 0
        await asyncio.sleep(5)
        assert (await folders(desk))["/data/a"] == [("t", 0, False)]

    at_desk(test, TWO)


def test_a_move_that_a_stop_cut_short_is_finished_after_the_next_start() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sent = [b"%d" % n + b"x" * 400_000 for n in range(30)]
        for value in sent:
            await produce(desk, batch(value))
        assert await move(desk, "/data/b") == 0
        await asyncio.sleep(0.001)
        assert desk.broker._logs.futures, "it is under way"
        await desk.restart()
        await asyncio.sleep(5)
        assert await folders(desk) == {"/data/a": [], "/data/b": [("t", 0, False)]}
        assert await read(desk) == sent

    at_desk(test, TWO)


def test_a_move_is_taken_back_and_a_deleted_topic_leaves_nothing() -> None:
    async def test(desk: Desk) -> None:
        topic_id = await create(desk)
        for _ in range(30):
            await produce(desk, batch(b"x" * 400_000))
        assert await move(desk, "/data/b") == 0
        assert await move(desk, "/data/a") == 0
        await asyncio.sleep(5)
        assert await folders(desk) == {"/data/a": [("t", 0, False)], "/data/b": []}
        assert await move(desk, "/data/b") == 0
        state = DeleteTopicState(topic_id=topic_id)
        await desk.ask(DeleteTopicsRequest(topics=[state]))
        await asyncio.sleep(5)
        assert await folders(desk) == {"/data/a": [], "/data/b": []}
        assert not [name for name in disk_of(desk).list("/data/b") if name.startswith("t-")]

    at_desk(test, TWO)


@pytest.mark.parametrize("operation", ["write", "sync", "rename", "sync_dir", "open"])
def test_a_folder_that_fails_costs_the_move_and_not_the_log(operation: Operation) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await produce(desk, batch(b"v"))
        disk_of(desk).fail(operation, EIO, path="/data/b")
        assert await move(desk, "/data/b") == 0
        await asyncio.sleep(5)
        assert await folders(desk) == {"/data/a": [("t", 0, False)], "/data/b": []}
        assert (await produce(desk, batch(b"w"))).base_offset == 1
        assert await read(desk) == [b"v", b"w"]

    at_desk(test, TWO)


@pytest.mark.parametrize("operation", ["open", "write", "sync"])
def test_a_folder_that_fails_at_the_start_takes_only_its_own_partitions_offline(
    operation: Operation,
) -> None:
    """And they are not made anew, neither at the start nor when their topic changes."""

    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        for index in (0, 1):
            await produce(desk, batch(b"v"), index=index)
        for _ in range(2):
            disk_of(desk).fail(operation, EIO, path="/data/b/meta.properties")
            await desk.restart()
            assert (await produce(desk, batch(b"w"))).base_offset == 1
            there = await produce(desk, batch(b"w"), index=1)
            assert there.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            response = await desk.ask(DescribeLogDirsRequest(topics=None))
            codes = {folder.log_dir: folder.error_code for folder in response.results}
            assert codes == {"/data/a": 0, "/data/b": ErrorCode.KAFKA_STORAGE_ERROR}
            assert await move(desk, "/data/b") == ErrorCode.LOG_DIR_NOT_FOUND
            new = await create(desk, "new", 2)
            assert (await produce(desk, batch(b"n"), topic="new", index=1)).error_code == 0
            state = DeleteTopicState(topic_id=new)
            await desk.ask(DeleteTopicsRequest(topics=[state]))
            disk_of(desk).heal()
            await desk.restart()
            assert (await produce(desk, batch(b"w"), index=1)).error_code == 0
            await desk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
            await create(desk, partitions=2)
            for index in (0, 1):
                await produce(desk, batch(b"v"), index=index)

    at_desk(test, TWO)
