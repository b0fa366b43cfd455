"""What time does: an id that nobody uses is forgotten, a partition that is away is waited for."""

import asyncio

from runnel.errors import ErrorCode
from runnel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.asking import create
from tests.support.desk import Desk, at_desk
from tests.support.transactions import FEW, READ_COMMITTED, Sender, committed

OFTEN = {**FEW, "transaction.remove.expired.transaction.cleanup.interval.ms": "10000"}


def known(desk: Desk) -> set[str]:
    return {tx for shard in desk.broker.transactions for tx in shard.machine.transactions}


def test_ids_that_nobody_uses_are_forgotten_and_stay_so() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        idle, busy, odd = Sender(desk, "idle"), Sender(desk, "busy"), Sender(desk, "open")
        for sender in (idle, busy, odd):
            await sender.init(timeout_ms=900_000)
        await idle.send(b"x")
        await idle.commit()
        await asyncio.sleep(40)
        await busy.send(b"x")
        await busy.commit()
        await asyncio.sleep(31)
        assert known(desk) == {"busy"}
        await desk.restart()
        assert known(desk) == {"busy"}
        late = await idle.produce(b"late")
        assert late.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert (await idle.init()).error_code == 0
        assert idle.epoch == 0

    at_desk(test, {**OFTEN, "transactional.id.expiration.ms": "60000"})


def test_a_topic_deleted_meanwhile_does_not_keep_a_transaction_open() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await create(desk, "gone")
        sender = Sender(desk)
        await sender.init()
        await sender.send(b"kept")
        await sender.send(b"gone", topic="gone")
        await desk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")]))
        await sender.commit()
        assert sender.state == "CompleteCommit"
        assert await committed(desk) == [b"kept"]

    at_desk(test, FEW)


def test_a_partition_that_is_away_is_waited_for() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        sender = Sender(desk)
        await sender.init()
        for index in range(2):
            await sender.send(b"x", index=index)
        away = desk.broker.partitions.get("t", 1)
        epoch = away.leader_epoch
        away.resign(7, epoch + 1)
        await sender.commit()
        assert sender.state == "PrepareCommit", "decided, whatever happens"
        assert await committed(desk) == [b"x"]
        waits = asyncio.create_task(sender.send(b"y"))
        await asyncio.sleep(0.2)
        assert (await waits).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        again = await sender.init_once()
        assert again.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        away.lead(1, epoch + 2, 1, 1)
        await asyncio.sleep(2)
        assert sender.state == "CompleteCommit"
        assert await committed(desk, index=1) == [b"x"]
        assert (await sender.send(b"y")).error_code == 0

    at_desk(test, FEW)


def test_a_reader_that_waits_for_committed_records_wakes_with_the_marker() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk)
        await sender.init()
        await sender.send(b"x")
        reader = Desk(desk.broker, desk.clock)
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=30_000,
            min_bytes=1,
            isolation_level=READ_COMMITTED,
            topics=[FetchTopic(topic="t", partitions=[asked])],
        )
        waits = asyncio.create_task(reader.ask(request, 12))
        await asyncio.sleep(1)
        assert not waits.done()
        before_ms = desk.clock.monotonic_ms()
        await sender.commit()
        (found,) = (await waits).responses[0].partitions
        assert found.last_stable_offset == 2
        assert len(found.records)
        assert desk.clock.monotonic_ms() - before_ms < 100

    at_desk(test, FEW)


def test_times_that_no_transaction_may_take() -> None:
    async def test(desk: Desk) -> None:
        await Sender(desk).init()
        for timeout_ms, code in (
            (0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
            (10_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
            (10_000, ErrorCode.NONE),
        ):
            request = InitProducerIdRequest(
                transactional_id="tx", transaction_timeout_ms=timeout_ms
            )
            assert (await desk.ask(request)).error_code == code

    at_desk(test, {**FEW, "transaction.max.timeout.ms": "10000"})


def test_with_the_feature_switched_off_the_old_protocol_is_all_there_is() -> None:
    """Records are then written without tags, and an abort by the broker does not rotate ids."""

    async def test(desk: Desk) -> None:
        await create(desk)
        update = FeatureUpdateKey(
            feature="transaction.version", max_version_level=0, upgrade_type=2
        )
        assert (await desk.ask(UpdateFeaturesRequest(feature_updates=[update]))).error_code == 0
        first, second = Sender(desk, is_new=False), Sender(desk, is_new=False)
        await first.init()
        await first.send(b"lost")
        await second.init()
        assert second.epoch == 2
        await second.send(b"kept")
        await second.commit()
        await desk.restart()
        assert second.state == "CompleteCommit"
        assert await committed(desk) == [b"kept"]

    at_desk(test, FEW)


def test_many_that_are_overdue_or_decided_are_dealt_with_step_by_step() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        senders = [Sender(desk, f"tx-{number}") for number in range(250)]
        for sender in senders:
            await sender.init(timeout_ms=5_000)
            await sender.send(b"late")
        away = desk.broker.partitions.get("t", 0)
        epoch = away.leader_epoch
        away.resign(7, epoch + 1)
        await asyncio.sleep(16)
        assert {sender.state for sender in senders} == {"PrepareAbort"}
        await desk.restart()
        await asyncio.sleep(1)
        assert {sender.state for sender in senders} == {"CompleteAbort"}
        partition = desk.broker.partitions.get("t", 0)
        assert partition.last_stable_offset == partition.log.log_end_offset == 500

    at_desk(test, FEW)


def test_a_clock_that_is_set_forward_ends_no_transaction_and_forgets_no_id() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sender, idle = Sender(desk), Sender(desk, "idle")
        await idle.init()
        await sender.init(timeout_ms=60_000)
        await sender.send(b"x")
        desk.clock.jumped_ms = 10 * 24 * 3_600_000
        await asyncio.sleep(45)
        assert sender.state == "Ongoing"
        await asyncio.sleep(26)
        assert sender.state == "CompleteAbort", "its time has come by the other clock"
        assert known(desk) == {"tx", "idle"}
        desk.clock.jumped_ms = 0
        await asyncio.sleep(7_200)
        assert known(desk) == {"tx", "idle"}, "it was a mistake, and was put right"
        desk.clock.jumped_ms = 10 * 24 * 3_600_000
        await asyncio.sleep(3_000)
        assert known(desk) == {"tx", "idle"}
        await asyncio.sleep(7_200)
        assert known(desk) == {"tx"}, "it stays so: then it is the time"

    at_desk(test, OFTEN)
