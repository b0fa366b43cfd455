"""What runs now and then: checkpoints are written when there is something new to write."""

import asyncio

from runnel.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from runnel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.support.asking import batch, create, produce
from tests.support.desk import Desk, at_desk


def test_whatever_is_checkpointed_changes_the_fingerprint() -> None:
    async def test(desk: Desk) -> None:
        partitions = desk.broker.partitions
        seen = [partitions.fingerprint()]

        async def is_new() -> bool:
            seen.append(partitions.fingerprint())
            await asyncio.sleep(0.2)
            return seen[-1] not in seen[:-1]

        await create(desk, partitions=2)
        await asyncio.sleep(3)
        assert await is_new(), "two logs came"
        await produce(desk, batch(b"a", b"b"))
        assert await is_new(), "the high watermark moved"
        await asyncio.sleep(3)
        assert await is_new(), "a flush moved the recovery point"
        delete = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name="t",
                    partitions=[DeleteRecordsPartition(partition_index=0, offset=1)],
                )
            ],
            timeout_ms=1000,
        )
        await desk.ask(delete)
        assert await is_new(), "the log start moved"
        await create(desk, "u")
        assert await is_new(), "a log came"
        last = partitions.fingerprint()
        await asyncio.sleep(10)
        assert partitions.fingerprint() == last, "nothing happened"

    at_desk(test)


def test_what_was_deleted_goes_when_its_delay_is_over() -> None:
    """Not with the next look of retention, which may be minutes away on a full disk."""

    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        await produce(desk, batch(b"a"))
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
        (deleted,) = (await desk.ask(request)).responses
        assert not deleted.error_code
        await asyncio.sleep(1)
        assert deleted_folders(desk) == 2
        await asyncio.sleep(61)
        assert deleted_folders(desk) == 0

    at_desk(test)


def deleted_folders(desk: Desk) -> int:
    return sum(name.endswith("-delete") for name in desk.disk.list("data"))
