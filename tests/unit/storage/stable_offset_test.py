"""Goal: the last stable offset passes a transaction when its marker is safe, and not before.

Method: a topic that acknowledges after the fsync, so that a marker is in the log for a while and
not yet replicated; all that while somebody reads what is committed.
"""

import asyncio

import pytest

from tests.support.asking import create
from tests.support.desk import Desk, at_desk
from tests.support.transactions import FEW, Sender, committed


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_is_undecided_until_its_marker_is_safe(*, commit: bool) -> None:
    """A crash may take the marker away; and of an aborted one its records would look committed."""

    async def test(desk: Desk) -> None:
        await create(desk, runnel_durability="ack")
        sender, reader = Sender(desk), Desk(desk.broker, desk.clock)
        await sender.init()
        assert (await sender.send(b"v")).error_code == 0
        partition = desk.broker.partitions.get("t", 0)
        assert partition.high_watermark == 1
        ending = asyncio.ensure_future(sender.end(commit=commit))
        was_written = False
        for _ in range(10_000):
            if partition.high_watermark == 2:
                break
            was_written = was_written or partition.log.log_end_offset == 2
            assert partition.last_stable_offset == 0
            assert await committed(reader) == []
            await asyncio.sleep(0.0001)
        assert was_written, "it must be seen between"
        assert partition.last_stable_offset == 2
        assert await committed(reader) == ([b"v"] if commit else [])
        assert (await ending).error_code == 0

    at_desk(test, FEW)


def test_of_several_transactions_the_oldest_that_is_undecided_counts() -> None:
    """Of one that is open, and one that is ended by a marker that is not safe."""

    async def test(desk: Desk) -> None:
        await create(desk, runnel_durability="ack")
        first, second = Sender(desk, "a"), Sender(Desk(desk.broker, desk.clock), "b")
        for sender in (first, second):
            await sender.init()
            assert (await sender.send(b"v")).error_code == 0
        partition = desk.broker.partitions.get("t", 0)
        ending = asyncio.ensure_future(first.end(commit=True))
        was_written = False
        for _ in range(10_000):
            if partition.high_watermark == 3:
                break
            was_written = was_written or partition.log.log_end_offset == 3
            assert partition.last_stable_offset == 0
            await asyncio.sleep(0.0001)
        assert was_written
        assert partition.last_stable_offset == 1, "where the second began"
        assert (await ending).error_code == 0

    at_desk(test, FEW)
