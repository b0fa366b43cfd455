"""What runs now and then: checkpoints are written when there is something new to write."""

import asyncio

from runnel.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
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
