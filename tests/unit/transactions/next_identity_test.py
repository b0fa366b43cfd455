"""Goal: whoever comes back as whom it goes on is told to wait while its last end is carried out.

Method: every acknowledgement is on the disk, so that an end is answered before its markers are
written; then the next request at once, as another epoch or, at the last one, as another id.
"""

import asyncio

import pytest

from runnel.errors import ErrorCode
from tests.support.asking import create
from tests.support.asking_groups import find
from tests.support.desk import Desk, at_desk
from tests.support.transactions import FEW, Sender
from tests.unit.transactions.scenarios_test import at_epoch

ON_DISK = FEW | {"runnel.durability": "ack"}
LAST_EPOCH = 32766


@pytest.mark.parametrize("epoch", [5, LAST_EPOCH])
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("asked", ["end", "init", "offsets", "add"])
def test_it_comes_too_early_and_then_in_time(asked: str, commit: bool, epoch: int) -> None:
    async def ask(sender: Sender) -> int:
        match asked:
            case "end":
                return int((await sender.end(commit=False, keeps_epoch=True)).error_code)
            case "init":
                return int((await sender.init_once(continues=True)).error_code)
            case "offsets":
                (code,) = await sender.send_offsets({0: 1})
                return int(code)
        (code,) = await sender.add("t", 0)
        return int(code)

    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        sender = Sender(desk)
        await sender.init()
        await at_epoch(desk, sender, epoch)
        assert (await sender.send(b"a")).error_code == 0
        assert (await sender.end(commit=commit)).error_code == 0
        assert sender.state == ("PrepareCommit" if commit else "PrepareAbort")
        assert await ask(sender) == ErrorCode.CONCURRENT_TRANSACTIONS
        await asyncio.sleep(1)
        assert await ask(sender) == 0

    at_desk(test, ON_DISK)


@pytest.mark.parametrize("epoch", [5, LAST_EPOCH])
def test_a_record_of_the_next_transaction_waits(epoch: int) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk)
        await sender.init()
        await at_epoch(desk, sender, epoch)
        assert (await sender.send(b"a")).error_code == 0
        assert (await sender.end(commit=True)).error_code == 0
        assert (await sender.send(b"b")).error_code == 0
        await sender.commit()

    at_desk(test, ON_DISK)
