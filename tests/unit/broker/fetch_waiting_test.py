"""Goal: a fetch that finds nothing waits no longer than it may, and is told first of what comes."""

import asyncio

import pytest

from runnel.broker.connection import Part
from runnel.client.raw import encode_frame
from runnel.native.records import decode
from runnel.types import FileSlice
from runnel.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
)
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


def test_a_fetch_waits_for_bytes_and_not_longer_than_it_may() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        before = desk.clock.monotonic_ms()
        empty = await desk.ask(fetch_request(max_wait_ms=500), FETCH_BY_NAME)
        assert values_of(empty) == []
        assert 500 <= desk.clock.monotonic_ms() - before <= 500 * 7 / 6  # see broker/waiting.py
        other = Desk(desk.broker, desk.clock)
        waiting = asyncio.ensure_future(desk.ask(fetch_request(max_wait_ms=500), FETCH_BY_NAME))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await produce(other, batch(b"now"))
        before = desk.clock.monotonic_ms()
        assert values_of(await waiting) == [b"now"]
        assert desk.clock.monotonic_ms() - before < 5

    at_desk(test)


def test_min_bytes_keeps_a_fetch_waiting_for_more() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        other = Desk(desk.broker, desk.clock)
        request = fetch_request(max_wait_ms=10_000, min_bytes=2000)
        waiting = asyncio.ensure_future(desk.ask(request, FETCH_BY_NAME))
        await produce(other, batch(bytes(1000)))
        await asyncio.sleep(1)
        assert not waiting.done()
        await produce(other, batch(bytes(1000)))
        await asyncio.sleep(0.01)
        assert waiting.done()
        assert len(values_of(await waiting)) == 2

    at_desk(test)


def test_a_fetch_does_not_wait_for_what_its_own_limit_forbids() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, segment_bytes="1048576")
        for _ in range(30):
            assert (await produce(desk, batch(bytes(100_000)))).error_code == 0
        before = desk.clock.monotonic_ms()
        for limits in (
            {"min_bytes": 300_000, "max_bytes": 300_000},
            {"min_bytes": 500_000, "partition_max_bytes": 450_000},
            {"min_bytes": 3_000_000},
        ):
            await desk.ask(fetch_request(0, max_wait_ms=2000, **limits), FETCH_BY_NAME)
        assert desk.clock.monotonic_ms() - before < 50
        last = desk.broker.partitions.get("t", 0).log.log_end_offset - 1
        await desk.ask(fetch_request(last, max_wait_ms=2000, min_bytes=500_000), FETCH_BY_NAME)
        assert desk.clock.monotonic_ms() - before > 1900, "at the end it waits"

    at_desk(test)


def told_of(desk: Desk, name: str, told: list[tuple[str, int]]) -> None:
    """Note what leaves, in order: whose it is, and how many slices of files are in it."""
    send = desk.send

    def noted(parts: list[Part]) -> int:
        told.append((name, sum(isinstance(part, FileSlice) for part in parts)))
        return send(parts)

    desk.send = noted  # type: ignore[method-assign]  # the connection asks for it by name


@pytest.mark.parametrize(("size", "slices"), [(100, 0), (20_000, 1)])
def test_a_record_reaches_who_waits_before_its_producer_hears_of_it(size: int, slices: int) -> None:
    """A small one as it came, without a look into the file; a large one by the kernel."""
    told: list[tuple[str, int]] = []

    async def test(desk: Desk) -> None:
        await create(desk)
        consumer = Desk(desk.broker, desk.clock)
        for offset in range(3):
            value = bytes([offset]) * size
            waiting = asyncio.ensure_future(
                consumer.ask(fetch_request(offset, max_wait_ms=5000), FETCH_BY_NAME)
            )
            await asyncio.sleep(0.1)
            if not offset:
                told_of(consumer, "consumer", told)
                told_of(desk, "producer", told)
            result = await produce(desk, batch(value))
            assert result.base_offset == offset
            assert values_of(await waiting) == [value]

    at_desk(test)
    assert told == [("consumer", slices), ("producer", 0)] * 3


def test_who_waits_for_several_partitions_of_a_request_is_woken_once() -> None:
    told: list[tuple[str, int]] = []

    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        consumer = Desk(desk.broker, desk.clock)
        asked = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
            for index in range(2)
        ]
        request = FetchRequest(
            topics=[FetchTopic(topic="t", partitions=asked)], max_wait_ms=5000, min_bytes=1
        )
        waiting = asyncio.ensure_future(consumer.ask(request, FETCH_BY_NAME))
        await asyncio.sleep(0.1)
        told_of(consumer, "consumer", told)
        told_of(desk, "producer", told)
        data = [PartitionProduceData(index=index, records=batch(b"v")) for index in range(2)]
        topic = TopicProduceData(name="t", partition_data=data)
        await desk.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]), PRODUCE_BY_NAME)
        (answered,) = (await waiting).responses
        assert [len(each.records) > 0 for each in answered.partitions] == [True] * 2

    at_desk(test)
    assert [name for name, _ in told] == ["consumer", "producer"]


def test_requests_that_come_together_wake_once_for_all_of_them() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        consumer = Desk(desk.broker, desk.clock)
        waiting = asyncio.ensure_future(
            consumer.ask(fetch_request(0, max_wait_ms=5000), FETCH_BY_NAME)
        )
        await asyncio.sleep(0.1)
        frames = []
        for value in (b"1", b"2", b"3"):
            data = PartitionProduceData(index=0, records=batch(value))
            topic = TopicProduceData(name="t", partition_data=[data])
            request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
            frames.append(encode_frame(request, PRODUCE_BY_NAME))
        desk.put(b"".join(frames))
        assert values_of(await waiting) == [b"1", b"2", b"3"]

    at_desk(test)


def test_idle_consumers_come_back_together() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        answered: dict[float, int] = {}

        async def consumer(number: int) -> None:
            await asyncio.sleep(number / 1000)
            await Desk(desk.broker, desk.clock).ask(fetch_request(max_wait_ms=500), FETCH_BY_NAME)
            now_ms = desk.clock.monotonic_ms()
            answered[now_ms] = answered.get(now_ms, 0) + 1

        await asyncio.gather(*(consumer(number) for number in range(100)))
        assert sum(answered.values()) == 100
        assert len(answered) <= 6, "a round of the loop for each tick, not for each consumer"

    at_desk(test)


def test_who_waits_is_given_what_is_in_the_log_and_not_what_was_sent() -> None:
    """Its offset, and its time where the broker stamps it, although it is not read again."""
    told: list[tuple[str, int]] = []

    async def test(desk: Desk) -> None:
        await create(desk, message_timestamp_type="LogAppendTime")
        consumer = Desk(desk.broker, desk.clock)
        for offset in range(2):
            request = fetch_request(offset, max_wait_ms=5000)
            waiting = asyncio.ensure_future(consumer.ask(request, FETCH_BY_NAME))
            await asyncio.sleep(0.1)
            if not offset:
                told_of(consumer, "consumer", told)
            result = await produce(desk, batch(b"v", at_ms=5))
            assert result.log_append_time_ms == desk.clock.wall_ms()
            given = (await waiting).responses[0].partitions[0].records
            (row,) = decode(given, max_records=9, max_bytes=999).rows()
            assert (row.offset, row.timestamp) == (offset, result.log_append_time_ms)
            again = await desk.ask(fetch_request(offset), FETCH_BY_NAME)
            assert given == again.responses[0].partitions[0].records

    at_desk(test)
    assert told == [("consumer", 0)] * 2, "from memory"
