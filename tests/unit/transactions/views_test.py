"""DescribeTransactions, ListTransactions, and the markers that end a transaction by hand."""

import asyncio
from typing import Any

import pytest

from runnel.errors import ErrorCode
from runnel.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from runnel.wire.messages.describe_transactions import DescribeTransactionsRequest
from runnel.wire.messages.list_transactions import ListTransactionsRequest
from runnel.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.support.asking import create
from tests.support.desk import Desk, at_desk
from tests.support.transactions import FEW, Sender, committed


async def ids(desk: Desk, version: int = 2, **filters: object) -> list[str]:
    response = await desk.ask(ListTransactionsRequest(**filters), version)  # type: ignore[arg-type]  # fields of the request
    assert response.error_code == 0, response
    return sorted(each.transactional_id for each in response.transaction_states)


def test_transactions_are_listed_by_state_producer_duration_and_pattern() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        senders = {name: Sender(desk, name) for name in ("orders-1", "orders-2", "clicks")}
        for sender in senders.values():
            await sender.init()
        await senders["orders-1"].send(b"x")
        await asyncio.sleep(5)
        await senders["clicks"].send(b"x")
        assert await ids(desk) == ["clicks", "orders-1", "orders-2"]
        assert await ids(desk, state_filters=["Ongoing"]) == ["clicks", "orders-1"]
        assert await ids(desk, state_filters=["Empty", "Nonsense"]) == ["orders-2"]
        wanted = [senders["clicks"].producer_id]
        assert await ids(desk, producer_id_filters=wanted) == ["clicks"]
        assert await ids(desk, state_filters=["Ongoing"], duration_filter=3000) == ["orders-1"]
        assert await ids(desk, transactional_id_pattern="orders-.*") == ["orders-1", "orders-2"]
        assert await ids(desk, transactional_id_pattern="orders") == []
        response = await desk.ask(ListTransactionsRequest(state_filters=["Nonsense"]))
        assert response.unknown_state_filters == ["Nonsense"]
        bad = await desk.ask(ListTransactionsRequest(transactional_id_pattern="(a"))
        assert bad.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION

    at_desk(test, FEW)


def test_a_transaction_is_described_with_its_partitions() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=3)
        sender = Sender(desk)
        await sender.init(timeout_ms=12_345)
        for index in (2, 0):
            await sender.send(b"x", index=index)
        asked = DescribeTransactionsRequest(transactional_ids=["tx", "nobody", ""])
        found, nobody, empty = (await desk.ask(asked)).transaction_states
        assert (found.error_code, found.transaction_state) == (0, "Ongoing")
        assert (found.producer_id, found.producer_epoch) == (sender.producer_id, 0)
        assert found.transaction_timeout_ms == 12_345
        assert found.transaction_start_time_ms == desk.clock.wall_ms()
        assert [(each.topic, each.partitions) for each in found.topics] == [("t", [0, 2])]
        assert nobody.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert empty.error_code == ErrorCode.INVALID_REQUEST

    at_desk(test, FEW)


def marker(
    sender: Sender, epoch: int, *, commit: bool = False, coordinator_epoch: int = 0, level: int = 0
) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=sender.producer_id,
                producer_epoch=epoch,
                transaction_result=commit,
                coordinator_epoch=coordinator_epoch,
                transaction_version=level,
                topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
            )
        ]
    )


async def told(desk: Desk, request: WriteTxnMarkersRequest, version: int = 2) -> int:
    response: Any = await desk.ask(request, version)
    code: int = response.markers[0].topics[0].partitions[0].error_code
    return code


@pytest.mark.parametrize("version", [1, 2])
def test_a_hanging_transaction_is_found_and_aborted_by_a_marker(version: int) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk, is_new=False)
        await sender.init()
        await sender.send(b"hangs")
        desk.broker.transactions.shard_of("tx").machine.transactions.clear()  # nobody knows of it
        asked = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
        (found,) = (await desk.ask(asked)).topics[0].partitions[0].active_producers
        assert (found.producer_id, found.current_txn_start_offset) == (sender.producer_id, 0)
        assert await told(desk, marker(sender, found.producer_epoch), version) == 0
        (found,) = (await desk.ask(asked)).topics[0].partitions[0].active_producers
        assert found.current_txn_start_offset == -1
        other = Sender(desk, "other", is_new=False)
        await other.init()
        await other.send(b"seen")
        await other.commit()
        assert await committed(desk) == [b"seen"]

    at_desk(test, FEW)


def test_markers_of_the_past_are_refused() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk)
        await sender.init()
        await sender.send(b"x")
        await sender.commit()
        epoch = sender.epoch
        assert await told(desk, marker(sender, epoch - 1)) == ErrorCode.INVALID_PRODUCER_EPOCH
        before = desk.broker.partitions.get("t", 0).log.log_end_offset
        assert await told(desk, marker(sender, epoch, commit=True, level=2)) == 0, "once more"
        assert desk.broker.partitions.get("t", 0).log.log_end_offset == before
        await sender.send(b"y")
        late = marker(sender, epoch, level=2)
        assert await told(desk, late) == ErrorCode.INVALID_PRODUCER_EPOCH, "S18: the next one"
        await sender.commit()
        assert await committed(desk) == [b"x", b"y"]
        nowhere = marker(sender, epoch + 2)
        nowhere.markers[0].topics[0].name = "nowhere"
        assert await told(desk, nowhere) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        stale = marker(sender, epoch + 2, coordinator_epoch=-1)
        assert await told(desk, stale) == ErrorCode.TRANSACTION_COORDINATOR_FENCED

    at_desk(test, FEW)


def test_markers_in_the_name_of_a_later_coordinator_hold_up_no_transaction_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The coordinator is fenced where they stand, and cannot end what follows by itself."""

    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk, is_new=False)
        await sender.init()
        await sender.send(b"aborted by hand")
        by_hand = marker(sender, sender.epoch, coordinator_epoch=99)
        assert await told(desk, by_hand) == 0
        await sender.commit()
        await asyncio.sleep(1)
        assert sender.state == "CompleteCommit", "nothing was open any more"
        assert "needs no marker" in caplog.text
        await sender.send(b"held up")
        await sender.commit()
        await asyncio.sleep(10)
        assert sender.state == "PrepareCommit"
        assert caplog.text.count("runnel transaction find-hanging --topic t") == 1
        by_hand = marker(sender, sender.epoch, coordinator_epoch=99, commit=True)
        assert await told(desk, by_hand) == 0
        await asyncio.sleep(2)
        assert sender.state == "CompleteCommit"
        assert await committed(desk) == [b"held up"]

    caplog.set_level("INFO")
    at_desk(test, FEW)
