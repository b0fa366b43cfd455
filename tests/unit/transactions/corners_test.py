"""Requests that no client of good will sends, and records that are deleted under a transaction."""

import asyncio

import pytest

from runnel.broker import markers
from runnel.coordinator.transactions.transitions import Identity
from runnel.errors import ErrorCode
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.native.records import decode
from runnel.types import TopicPartition
from runnel.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.asking import create
from tests.support.desk import Desk, at_desk
from tests.support.transactions import (
    FEW,
    NEW_PRODUCE,
    OLD_PRODUCE,
    READ_COMMITTED,
    Sender,
    committed,
)


@pytest.mark.parametrize("version", [OLD_PRODUCE, NEW_PRODUCE])
def test_a_partition_named_twice_passes_no_verification(version: int) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk)
        await sender.init()
        fenced = Sender(desk)
        fenced.producer_id, fenced.epoch = sender.producer_id, sender.epoch
        await sender.init()
        records = encode(
            [Record(b"k", b"v", desk.clock.wall_ms())],
            producer_id=fenced.producer_id,
            producer_epoch=fenced.epoch,
            base_sequence=0,
            transactional=True,
        )
        twice = [PartitionProduceData(index=0, records=bytes(records)) for _ in range(2)]
        response = await desk.ask(
            ProduceRequest(
                transactional_id="tx",
                acks=-1,
                timeout_ms=1000,
                topic_data=[TopicProduceData(name="t", partition_data=twice)],
            ),
            version,
        )
        codes = [each.error_code for each in response.responses[0].partition_responses]
        assert codes == [ErrorCode.INVALID_PRODUCER_EPOCH] * 2
        assert desk.broker.partitions.get("t", 0).log.log_end_offset == 0

    at_desk(test, FEW)


def test_a_reader_is_told_of_the_aborted_transactions_in_its_bytes_alone() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, segment_bytes="1048576")
        sender = Sender(desk)
        await sender.init()
        for _ in range(10):
            await sender.send(bytes(300_000))
            await sender.abort()
        await sender.send(b"kept")
        await sender.commit()
        log = desk.broker.partitions.get("t", 0).log
        assert log.segment_count > 2
        offset, told = 0, []
        while offset < log.log_end_offset:
            wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=350_000)
            request = FetchRequest(
                isolation_level=READ_COMMITTED,
                max_bytes=350_000,
                topics=[FetchTopic(topic="t", partitions=[wanted])],
            )
            (topic,) = (await desk.ask(request, 12)).responses
            (data,) = topic.partitions
            batches = decode(bytes(data.records), max_records=99, max_bytes=1 << 30, control=True)
            headers = [batch.header for batch in batches.batches]
            firsts = [each.first_offset for each in data.aborted_transactions]
            hidden = [h.base_offset for h in headers if not h.is_control and h.base_offset < 20]
            assert set(hidden) <= set(firsts), "all that it needs"
            told.append(len(firsts))
            offset = headers[-1].next_offset
        assert max(told) <= 3, told

    at_desk(test, FEW)


def test_the_last_stable_offset_is_never_before_the_start_of_the_log() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk)
        await sender.init()
        for number in range(5):
            await sender.send(b"%d" % number)
        where = DeleteRecordsPartition(partition_index=0, offset=3)
        topic = DeleteRecordsTopic(name="t", partitions=[where])
        await desk.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1000))
        partition = desk.broker.partitions.get("t", 0)
        assert partition.log.log_start_offset == partition.last_stable_offset == 3
        await sender.commit()
        assert partition.last_stable_offset == partition.high_watermark == 6

    at_desk(test, FEW)


@pytest.mark.parametrize("commit", [False, True])
def test_markers_of_many_partitions_are_written_step_by_step(
    commit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markers, "AT_ONCE_MAX", 3)

    async def test(desk: Desk) -> None:
        await create(desk, partitions=10)
        sender = Sender(desk)
        await sender.init()
        for index in range(10):
            await sender.send(b"x", index=index)
        away = desk.broker.partitions.get("t", 4)
        epoch = away.leader_epoch
        away.resign(7, epoch + 1)
        assert (await sender.end(commit=commit)).error_code == 0
        await asyncio.sleep(1)
        ends = [desk.broker.partitions.get("t", index).log.log_end_offset for index in range(10)]
        assert ends == [2] * 4 + [1] + [2] * 5
        away.lead(1, epoch + 2, 1, 1)
        await asyncio.sleep(3)
        assert sender.state == ("CompleteCommit" if commit else "CompleteAbort")
        for index in range(10):
            assert await committed(desk, index=index) == ([b"x"] if commit else [])
            assert desk.broker.partitions.get("t", index).log.log_end_offset == 2

    at_desk(test, FEW)


def test_nobody_waits_for_what_others_write_to_the_same_journal() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        one, other = Sender(desk, "one"), Sender(desk, "other")
        await one.init()
        await other.init()
        await one.send(b"x")
        shard = desk.broker.transactions.shard_of("one")
        who = Identity(other.producer_id, other.epoch)
        shard.machine.add_partitions("other", who, frozenset({TopicPartition("t", 1)}), 2)
        assert not shard.is_settled(shard.journal.end_offset)
        assert shard.machine.is_settled("one")
        assert not shard.machine.is_settled("other")
        await asyncio.sleep(1)
        assert shard.machine.is_settled("other")

    at_desk(test, {**FEW, "runnel.durability": "ack"})
