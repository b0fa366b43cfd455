"""Goal: Fetch gives what is there, waits no longer than it may, and sessions tell only news."""

import asyncio
from typing import Any

import pytest

from runnel.broker.connection import Part
from runnel.broker.context import RequestContext
from runnel.broker.handlers import fetch as fetch_handler
from runnel.broker.handlers.fetch_plan import Plan, make_plan
from runnel.client.raw import ClosedError, encode_frame
from runnel.errors import ErrorCode
from runnel.types import FileSlice
from runnel.wire import hot
from runnel.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
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


def test_fetch_limits_and_errors() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        for n in range(3):
            await produce(desk, batch(b"%d" % n * 5000, b"x"))
        middle = await desk.ask(fetch_request(3), FETCH_BY_NAME)
        assert len(values_of(middle)) == 4, "a fetch into a batch gives the whole batch"
        first = await desk.ask(fetch_request(0, max_bytes=10), FETCH_BY_NAME)
        assert len(values_of(first)) == 2, "the first batch is given whole"
        code = {}
        for offset in (-1, 6, 7):
            response = await desk.ask(fetch_request(offset), FETCH_BY_NAME)
            code[offset] = response.responses[0].partitions[0].error_code
        assert code == {-1: ErrorCode.OFFSET_OUT_OF_RANGE, 6: 0, 7: ErrorCode.OFFSET_OUT_OF_RANGE}
        for epoch, expected in ((5, ErrorCode.UNKNOWN_LEADER_EPOCH), (0, ErrorCode.NONE)):
            response = await desk.ask(fetch_request(0, current_leader_epoch=epoch), FETCH_BY_NAME)
            assert response.responses[0].partitions[0].error_code == expected
        refused = await desk.ask(fetch_request(0, replica_id=2), FETCH_BY_NAME)
        assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    at_desk(test)


def test_a_reader_that_went_another_way_is_told_where() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await produce(desk, batch(b"a"))
        partition = desk.broker.partitions.get("t", 0)
        partition.lead(1, 4, 1, 1)
        await produce(desk, batch(b"b"))
        response = await desk.ask(fetch_request(2, last_fetched_epoch=0), FETCH_BY_NAME)
        diverging = response.responses[0].partitions[0].diverging_epoch
        assert (diverging.epoch, diverging.end_offset) == (0, 1)
        agreeing = await desk.ask(fetch_request(2, last_fetched_epoch=4), FETCH_BY_NAME)
        assert agreeing.responses[0].partitions[0].diverging_epoch.epoch == -1

    at_desk(test)


def test_fetch_sessions_tell_only_news() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=3)
        topics = [
            FetchTopic(
                topic="t",
                partitions=[
                    FetchPartition(partition=n, partition_max_bytes=9999) for n in (0, 1, 2)
                ],
            )
        ]
        full = await desk.ask(FetchRequest(session_epoch=0, topics=topics), FETCH_BY_NAME)
        assert full.session_id > 0
        assert len(full.responses[0].partitions) == 3
        session = {"session_id": full.session_id}
        quiet = await desk.ask(FetchRequest(**session, session_epoch=1), FETCH_BY_NAME)
        assert quiet.responses == []
        await produce(desk, batch(b"v"), index=1)
        news = await desk.ask(FetchRequest(**session, session_epoch=2), FETCH_BY_NAME)
        (told,) = news.responses[0].partitions
        assert told.partition_index == 1
        wrong = await desk.ask(FetchRequest(**session, session_epoch=2), FETCH_BY_NAME)
        assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        forget = [ForgottenTopic(topic="t", partitions=[1])]
        request = FetchRequest(**session, session_epoch=3, forgotten_topics_data=forget)
        assert (await desk.ask(request, FETCH_BY_NAME)).responses == []
        unknown = await desk.ask(FetchRequest(session_id=99, session_epoch=4), FETCH_BY_NAME)
        assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

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


@pytest.mark.skipif(hot.COMPILED, reason="compiled code does not look up a replaced function")
def test_a_parked_request_that_fails_costs_only_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    def fragile(context: RequestContext, *rest: Any, **named: Any) -> Plan:  # noqa: ANN401  # passed on
        found = make_plan(context, *rest, **named)
        assert not (context.client_id == "broken" and found.size_bytes), "planted"
        return found

    async def test(desk: Desk) -> None:
        await create(desk)
        broken = Desk(desk.broker, desk.clock, client_id="broken")
        well = Desk(desk.broker, desk.clock)
        request = fetch_request(max_wait_ms=5000)
        lost = asyncio.ensure_future(broken.ask(request, FETCH_BY_NAME))
        found = asyncio.ensure_future(well.ask(request, FETCH_BY_NAME))
        await asyncio.sleep(0.1)
        await produce(desk, batch(b"v"))
        assert values_of(await found) == [b"v"]
        with pytest.raises(ClosedError):
            await lost
        partition = desk.broker.partitions.get("t", 0)
        assert not partition.waiters, "it would fail again with every record"

    monkeypatch.setattr(fetch_handler, "make_plan", fragile)
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


def test_an_epoch_that_nobody_has_opens_no_session() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        for epoch in (-2, -256, 5):
            answer = await desk.ask(fetch_request(session_epoch=epoch), FETCH_BY_NAME)
            assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            assert answer.session_id == 0

    at_desk(test)
