"""Goal: who waits hears of a produce before its reply is made, only where that harms nobody.

Method: a broker at a desk, and a consumer beside it that waits.
"""

import asyncio
from struct import unpack_from

import pytest

from runnel.broker.connection import Part
from runnel.broker.partition import Partition
from runnel.client.raw import encode_frame
from runnel.wire import hot
from runnel.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.asking import (
    FETCH_BY_NAME,
    PRODUCE_BY_NAME,
    batch,
    create,
    fetch_request,
    produce,
    values_of,
)
from tests.support.desk import Desk, at_desk

TIMEOUT_MS = 5000


def produce_request(*topics: str, records: bytes, acks: int = 1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=acks,
        timeout_ms=TIMEOUT_MS,
        topic_data=[TopicProduceData(name=name, partition_data=[data]) for name in topics],
    )


def produce_frame(topic: str, records: bytes, *, acks: int = 1, number: int = 7) -> bytes:
    request = produce_request(topic, records=records, acks=acks)
    return encode_frame(request, PRODUCE_BY_NAME, correlation_id=number)


async def replies(desk: Desk) -> list[int]:
    """The correlation ids of all that has come."""
    found = list[int]()
    while desk.has_reply:
        found += unpack_from(">i", await desk.next_frame())
    return found


@pytest.mark.skipif(hot.COMPILED, reason="a method of a compiled class cannot be replaced")
def test_who_waits_for_a_produce_of_its_own_is_not_woken_by_its_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would go on while its frames are cut, and take the same one twice."""
    second = produce_frame("t", batch(b"then"), number=2)
    flushed = Partition.flushed

    async def test(desk: Desk) -> None:
        await create(desk)
        await create(desk, "s", runnel_durability="ack")
        rest = [second[50:]]

        def flushed_and_more_comes(partition: Partition) -> None:
            """In one turn of the loop: the first one's wait is over, and the second is whole."""
            flushed(partition)
            if partition.topic_partition.topic == "s" and partition.waiters and rest:
                desk.put(rest.pop())

        monkeypatch.setattr(Partition, "flushed", flushed_and_more_comes)
        desk.put(produce_frame("s", batch(b"first"), acks=-1, number=1) + second[:50])
        await asyncio.sleep(1)
        assert not rest
        assert await replies(desk) == [1, 2]
        for topic in "st":
            assert desk.broker.partitions.get(topic, 0).log.log_end_offset == 1
        assert desk.closed_for is None

    at_desk(test)


def test_who_waits_for_several_topics_of_a_request_is_told_of_all() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, "t")
        await create(desk, "u")
        consumer = Desk(desk.broker, desk.clock)
        asked = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
        request = FetchRequest(
            topics=[FetchTopic(topic=name, partitions=asked) for name in "tu"],
            max_wait_ms=TIMEOUT_MS,
            min_bytes=1,
        )
        waiting = asyncio.ensure_future(consumer.ask(request, FETCH_BY_NAME))
        await asyncio.sleep(0.1)
        await desk.ask(produce_request("t", "u", records=batch(b"v")), PRODUCE_BY_NAME)
        told = {each.topic: len(each.partitions[0].records) for each in (await waiting).responses}
        assert told.keys() == {"t", "u"}
        assert all(told.values()), "as one answer, not the second when it asks again"

    at_desk(test)


def test_under_quotas_nobody_pays_for_what_those_who_wait_are_told() -> None:
    """A consumer's answer is made in the time of the produce that wakes it, if that wakes it."""

    async def test(desk: Desk) -> None:
        await create(desk)
        entity = AlterClientQuotasRequestEntityData(entity_type="client-id", entity_name="desk")
        limit = OpData(key="request_percentage", value=1.0)
        entry = AlterClientQuotasRequestEntryData(entity=[entity], ops=[limit])
        await desk.ask(AlterClientQuotasRequest(entries=[entry]))
        consumer = Desk(desk.broker, desk.clock, client_id="consumer")
        waiting = asyncio.ensure_future(
            consumer.ask(fetch_request(max_wait_ms=TIMEOUT_MS), FETCH_BY_NAME)
        )
        await asyncio.sleep(0.1)
        now_s = [0.0]
        send = consumer.send

        def send_slowly(parts: list[Part]) -> int:
            now_s[0] += 60.0
            return send(parts)

        consumer.send = send_slowly  # type: ignore[method-assign]  # the connection asks by name
        desk.monotonic = lambda: now_s[0]  # type: ignore[method-assign]  # likewise
        request = produce_request("t", records=batch(b"v"))
        response = await desk.ask(request, PRODUCE_BY_NAME)
        assert values_of(await waiting) == [b"v"]
        assert now_s == [60.0]
        assert response.throttle_time_ms == 0

    at_desk(test)


def test_a_refusal_without_a_reply_does_not_leave_others_waiting() -> None:
    """Nothing asks who is to be woken when a connection just ends; an fsync's waiters must be."""

    async def test(desk: Desk) -> None:
        await create(desk)
        await create(desk, "s", runnel_durability="ack")
        other = Desk(desk.broker, desk.clock)
        before_ms = desk.clock.monotonic_ms()
        waiting = asyncio.ensure_future(produce(desk, batch(b"v"), topic="s"))
        await asyncio.sleep(0)
        assert desk.broker.partitions.get("s", 0).waiters
        damaged = batch(b"v")[:-1] + b"!"
        other.put(produce_frame("t", damaged, acks=0))
        assert other.closed_for is not None
        assert (await waiting).error_code == 0
        assert desk.clock.monotonic_ms() - before_ms < 500, "not by its timeout, of a second"

    at_desk(test)
