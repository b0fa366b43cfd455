"""A transaction from begin to end, in the protocol before KIP-890 and after it."""

import pytest

from runnel.errors import ErrorCode
from tests.support.asking import create
from tests.support.desk import Desk, at_desk
from tests.support.transactions import FEW, Sender, committed

BOTH = pytest.mark.parametrize("is_new", [False, True], ids=["old", "new"])


@BOTH
def test_what_is_committed_is_read_and_what_is_aborted_is_not(is_new: bool) -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        sender = Sender(desk, is_new=is_new)
        assert (await sender.init()).error_code == 0
        assert sender.epoch == 0
        for number in range(4):
            for index in range(2):
                sent = await sender.send(b"%d" % number, index=index)
                assert sent.error_code == 0, sent
            seen = [b"0", b"2"][: (number + 1) // 2]
            assert await committed(desk) == seen, "not before its end"
            await (sender.abort() if number % 2 else sender.commit())
        assert await committed(desk) == [b"0", b"2"]
        assert await committed(desk, index=1) == [b"0", b"2"]
        assert sender.epoch == (4 if is_new else 0)
        assert sender.state == "CompleteAbort"

    at_desk(test, FEW)


@BOTH
def test_all_of_it_is_there_after_a_restart(is_new: bool) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk, is_new=is_new)
        await sender.init()
        await sender.send(b"one")
        await sender.commit()
        await sender.send(b"two")
        await desk.restart()
        assert sender.state == "Ongoing"
        assert await committed(desk) == [b"one"]
        assert (await sender.send(b"three")).error_code == 0
        await sender.commit()
        assert await committed(desk) == [b"one", b"two", b"three"]

    at_desk(test, FEW)


@BOTH
def test_a_second_producer_fences_the_first(is_new: bool) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        first, second = Sender(desk, is_new=is_new), Sender(desk, is_new=is_new)
        await first.init()
        await first.send(b"lost")
        asked = await second.init_once()
        assert asked.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        await second.init()
        assert second.producer_id == first.producer_id
        assert second.epoch == first.epoch + 2, "one for the abort, one for the new owner"
        assert (await first.end(commit=True)).error_code == ErrorCode.PRODUCER_FENCED
        assert (await first.produce(b"zombie")).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        await second.send(b"kept")
        await second.commit()
        assert await committed(desk) == [b"kept"]

    at_desk(test, FEW)


def test_a_batch_without_its_partition_added_is_refused() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        sender = Sender(desk, is_new=False)
        await sender.init()
        refused = await sender.produce(b"x")
        assert refused.error_code == ErrorCode.INVALID_TXN_STATE
        refused = await sender.produce(b"x", version=11)
        assert refused.error_code == ErrorCode.TRANSACTION_ABORTABLE
        assert await sender.add("t", 0) == [0]
        assert (await sender.produce(b"x")).error_code == 0
        refused = await sender.produce(b"x", index=1)
        assert refused.error_code == ErrorCode.INVALID_TXN_STATE

    at_desk(test, FEW)
