"""Goal: what Produce stores, refuses and acknowledges is what Kafka would."""

import asyncio

import lz4.frame
import pytest

from runnel.client.raw import encode_frame
from runnel.errors import ErrorCode
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode
from runnel.native.records import decode
from runnel.wire import hot
from runnel.wire.batch import CRC_START, HEADER_SIZE, LOG_OVERHEAD, crc32c
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
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


def with_dependent_blocks(plain: bytes) -> bytes:
    """The batch with its records in an lz4 frame that librdkafka reads and Java does not."""
    records: bytes = lz4.frame.compress(plain[HEADER_SIZE:], block_linked=True)
    attributes = (int(Compression.LZ4)).to_bytes(2, "big")
    summed = attributes + plain[CRC_START + 2 : HEADER_SIZE] + records
    head = plain[:8] + (HEADER_SIZE - LOG_OVERHEAD + len(records)).to_bytes(4, "big")
    return head + plain[12:17] + crc32c(summed).to_bytes(4, "big") + summed


def test_refused_batches_get_kafkas_error_and_store_nothing() -> None:
    good = batch(b"v")
    cases = {
        "crc": (good[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE),
        "short": (good[:60], ErrorCode.INVALID_RECORD),
        "cut": (good[:-1], ErrorCode.CORRUPT_MESSAGE),
        "two": (good + good, ErrorCode.INVALID_RECORD),
        "magic": (good[:16] + b"\1" + good[17:], ErrorCode.INVALID_RECORD),
        "offset": (batch(b"v", base_offset=5), ErrorCode.INVALID_RECORD),
        "large": (batch(bytes(2_000_000)), ErrorCode.MESSAGE_TOO_LARGE),
        "control": (batch(b"v", control=True), ErrorCode.INVALID_RECORD),
        "transaction": (
            batch(b"v", transactional=True, producer_id=1, producer_epoch=0, base_sequence=0),
            ErrorCode.INVALID_TXN_STATE,
        ),
        "sequence": (batch(b"v", producer_id=1, producer_epoch=0), ErrorCode.INVALID_RECORD),
        "lz4": (with_dependent_blocks(batch(bytes(300_000))), ErrorCode.INVALID_RECORD),
        "future": (batch(b"v", at_ms=1_700_000_000_000 + 7_200_000), ErrorCode.INVALID_TIMESTAMP),
    }

    async def test(desk: Desk) -> None:
        await create(desk)
        for name, (records, code) in cases.items():
            result = await produce(desk, records)
            assert result.error_code == code, (name, result.error_message)
            assert result.base_offset == -1
        assert (await produce(desk, good, topic="nope")).error_code == 3
        assert (await produce(desk, good, index=9)).error_code == 3
        assert (await produce(desk, good, acks=5)).error_code == ErrorCode.INVALID_REQUIRED_ACKS
        assert (await produce(desk, good, version=13, topic_id=b"x" * 16)).error_code == 100
        assert (await produce(desk, good)).base_offset == 0

    at_desk(test)


def test_acks_0_gets_no_reply_and_an_error_ends_the_connection() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        data = PartitionProduceData(index=0, records=batch(b"v"))
        request = ProduceRequest(
            acks=0, topic_data=[TopicProduceData(name="t", partition_data=[data])]
        )
        desk.put(encode_frame(request, PRODUCE_BY_NAME))
        await asyncio.sleep(1)
        assert not desk.has_reply
        assert desk.closed_for is None
        request.topic_data[0].name = "nope"
        desk.put(encode_frame(request, PRODUCE_BY_NAME))
        assert desk.closed_for is not None
        desk.reconnect()
        assert values_of(await desk.ask(fetch_request(), FETCH_BY_NAME)) == [b"v"]

    at_desk(test)


def test_an_idempotent_producers_last_five_batches_are_recognised() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        given = await desk.ask(InitProducerIdRequest(transactional_id=None))
        assert given.error_code == 0
        who = given.producer_id
        sent = [
            batch(b"%d" % n, producer_id=who, producer_epoch=0, base_sequence=n) for n in range(7)
        ]
        for n, records in enumerate(sent):
            assert (await produce(desk, records)).base_offset == n
        for n in range(2, 7):
            again = await produce(desk, sent[n])
            assert (again.error_code, again.base_offset) == (0, n)
        assert (await produce(desk, sent[0])).error_code in (
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        )  # fmt: skip
        gap = batch(b"g", producer_id=who, producer_epoch=0, base_sequence=9)
        refused = await produce(desk, gap)
        assert refused.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        newer = batch(b"n", producer_id=who, producer_epoch=1, base_sequence=0)
        assert (await produce(desk, newer)).base_offset == 7
        old = batch(b"o", producer_id=who, producer_epoch=0, base_sequence=7)
        assert (await produce(desk, old)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH

    at_desk(test)


def test_log_append_time_is_stamped_and_told() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, message_timestamp_type="LogAppendTime")
        result = await produce(desk, batch(b"v", at_ms=5))
        assert result.log_append_time_ms == desk.clock.wall_ms()
        response = await desk.ask(fetch_request(), FETCH_BY_NAME)
        (row,) = decode(
            response.responses[0].partitions[0].records, max_records=9, max_bytes=999
        ).rows()
        assert row.timestamp == result.log_append_time_ms

    at_desk(test)


def test_a_repeated_batch_is_told_the_time_that_is_in_the_log() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, message_timestamp_type="LogAppendTime")
        records = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0)
        first = await produce(desk, records)
        await asyncio.sleep(60)
        again = await produce(desk, records)
        assert again.base_offset == first.base_offset
        assert again.log_append_time_ms == first.log_append_time_ms

    at_desk(test)


@pytest.mark.parametrize("wanted", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("size", [10, 40_000])
def test_recompression_keeps_the_records(wanted: str, size: int) -> None:
    async def test(desk: Desk) -> None:
        await create(desk, compression_type=wanted)
        sent = [b"a" * size, b"b" * size]
        assert (await produce(desk, batch(*sent, codec=Compression.LZ4))).error_code == 0
        response = await desk.ask(fetch_request(), FETCH_BY_NAME)
        assert values_of(response) == sent
        header = response.responses[0].partitions[0].records[22] & 7
        assert header == {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}.get(wanted, 0)

    at_desk(test)


def test_a_compacted_topic_wants_keys() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, cleanup_policy="compact")
        keyless = bytes(encode([Record(None, b"v", 1_700_000_000_000)]))
        assert (await produce(desk, keyless)).error_code == ErrorCode.INVALID_RECORD
        assert (await produce(desk, batch(b"v"))).error_code == 0

    at_desk(test)


def test_ack_durability_answers_after_the_flush() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, runnel_durability="ack")
        for acks in (1, -1):
            result = await produce(desk, batch(b"v"), acks=acks)
            assert result.error_code == 0
        partition = desk.broker.partitions.get("t", 0)
        assert partition.log.flushed_offset == partition.high_watermark == 2

    at_desk(test)


@pytest.mark.skipif(hot.COMPILED, reason="a method of a compiled class cannot be replaced")
def test_a_log_that_fails_tells_those_who_wait_for_it() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, runnel_durability="ack")
        partition = desk.broker.partitions.get("t", 0)
        partition.log.begin_flush = lambda **_: None  # type: ignore[method-assign]  # no fsync ever comes back
        waiting = asyncio.ensure_future(produce(desk, batch(b"v")))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        partition.log.fail(OSError(5, "input/output error"))
        await asyncio.sleep(0.01)
        assert waiting.done()
        assert (await waiting).error_code == ErrorCode.KAFKA_STORAGE_ERROR

    at_desk(test)


def test_stopping_answers_produces_that_wait_for_an_fsync() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, runnel_durability="ack")
        waiting = asyncio.ensure_future(produce(desk, batch(b"v")))
        await asyncio.sleep(0)
        await desk.broker.drain()
        await asyncio.sleep(0)
        assert waiting.done()
        assert (await waiting).error_code == 0

    at_desk(test)


def test_flush_messages_and_flush_ms_flush_early() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, "t", flush_messages="3", runnel_durability="os")
        await create(desk, "u", flush_ms="50", runnel_durability="interval")
        counted = desk.broker.partitions.get("t", 0).log
        timed = desk.broker.partitions.get("u", 0).log
        await asyncio.sleep(1.5)
        for expected in (0, 0, 3):
            await produce(desk, batch(b"v"))
            await asyncio.sleep(0.02)
            assert counted.flushed_offset >= expected or expected == 0
        await produce(desk, batch(b"v"), topic="u")
        assert timed.flushed_offset == 0
        await asyncio.sleep(0.2)
        assert timed.flushed_offset == 1

    at_desk(test)
