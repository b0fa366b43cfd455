"""Goal: offsets by place, by time and by epoch, and the start that DeleteRecords raises."""

from runnel.errors import ErrorCode
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode
from runnel.wire.apis import APIS, ApiKey
from runnel.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from runnel.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.asking import FETCH_BY_NAME, batch, create, fetch_request, offset_at, produce
from tests.support.desk import Desk, at_desk


def test_list_offsets_by_place_and_by_time() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        base = 1_700_000_000_000
        empty = await offset_at(desk, -3)
        assert (empty.offset, empty.timestamp) == (-1, -1)
        for codec in (Compression.NONE, Compression.GZIP):
            records = [Record(None, b"v", base + n) for n in (10, 30, 20)]
            await produce(desk, bytes(encode(records, codec=codec)))
        place = {stamp: (await offset_at(desk, stamp)).offset for stamp in range(-6, 0)}
        assert place == {-1: 6, -2: 0, -3: 1, -4: 0, -5: -1, -6: -1}
        assert (await offset_at(desk, base + 15)).offset == 1
        assert (await offset_at(desk, base + 15)).timestamp == base + 30
        assert (await offset_at(desk, base)).offset == 0
        assert (await offset_at(desk, base + 31)).offset == -1
        assert (await offset_at(desk, -3, 6)).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert (await offset_at(desk, -9)).error_code == ErrorCode.UNSUPPORTED_VERSION
        for version in APIS[ApiKey.LIST_OFFSETS].versions:
            assert (await offset_at(desk, -1, version)).offset == 6

    at_desk(test)


async def trim(desk: Desk, offset: int) -> tuple[int, int]:
    asked = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name="t", partitions=[asked])
    response = await desk.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1))
    result = response.topics[0].partitions[0]
    return result.error_code, result.low_watermark


def test_delete_records_raises_the_start() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        for _ in range(4):
            await produce(desk, batch(b"v"))
        assert await trim(desk, 2) == (0, 2)
        assert await trim(desk, 1) == (0, 2)
        assert await trim(desk, 9) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        assert (await offset_at(desk, -2)).offset == 2
        response = await desk.ask(fetch_request(0), FETCH_BY_NAME)
        assert response.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert await trim(desk, -1) == (0, 4)
        await create(desk, "c", cleanup_policy="compact")

    at_desk(test)


def test_offset_for_leader_epoch() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await produce(desk, batch(b"a"))
        desk.broker.partitions.get("t", 0).lead(1, 3, 1, 1)
        await produce(desk, batch(b"b"))
        found = {}
        for epoch in (0, 1, 3, 4):
            asked = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
            topic = OffsetForLeaderTopic(topic="t", partitions=[asked])
            response = await desk.ask(OffsetForLeaderEpochRequest(topics=[topic]))
            end = response.topics[0].partitions[0]
            found[epoch] = (end.leader_epoch, end.end_offset)
        assert found == {0: (0, 1), 1: (0, 1), 3: (3, 2), 4: (-1, -1)}

    at_desk(test)
