"""Goal: every API answers in every version, and bad requests get the error that Kafka gives.

Method: a broker built as always, on virtual time, asked with real wire messages.
"""

import asyncio
from typing import Any

import pytest

from runnel.broker.api_table import api_table
from runnel.broker.context import RequestContext
from runnel.broker.handlers import fetch as fetch_handler
from runnel.errors import ErrorCode
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode
from runnel.native.records import decode
from runnel.wire.apis import APIS, ApiKey, request_type
from runnel.wire.messages.api_versions import ApiVersionsRequest
from runnel.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from runnel.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from runnel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from runnel.wire.messages.describe_cluster import DescribeClusterRequest
from runnel.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from runnel.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from runnel.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from runnel.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.desk import Desk, at_desk
from tests.support.wire_client import ClosedError, encode_frame

FETCH_BY_NAME = 12
PRODUCE_BY_NAME = 12


async def create(desk: Desk, name: str = "t", partitions: int = 1, **configs: str) -> bytes:
    named = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, configs=named
    )
    response = await desk.ask(CreateTopicsRequest(topics=[topic]))
    (result,) = response.topics
    assert result.error_code == 0, result.error_message
    created: bytes = result.topic_id
    return created


def batch(*values: bytes, at_ms: int | None = None, **options: int) -> bytes:
    when = 1_700_000_000_000 if at_ms is None else at_ms
    return bytes(encode([Record(b"k", value, when) for value in values], **options))  # type: ignore[arg-type]  # options are encode's


async def produce(
    desk: Desk, records: bytes, *, topic: str = "t", index: int = 0, acks: int = -1,
    version: int = PRODUCE_BY_NAME, topic_id: bytes = bytes(16),
) -> PartitionProduceResponse:  # fmt: skip
    data = PartitionProduceData(index=index, records=records)
    request = ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])],
    )
    response = await desk.ask(request, version)
    result: PartitionProduceResponse = response.responses[0].partition_responses[0]
    return result


def fetch_request(offset: int = 0, **fields: int) -> FetchRequest:
    asked = FetchPartition(
        partition=fields.pop("index", 0),
        fetch_offset=offset,
        partition_max_bytes=fields.pop("partition_max_bytes", 1 << 20),
        current_leader_epoch=fields.pop("current_leader_epoch", -1),
        last_fetched_epoch=fields.pop("last_fetched_epoch", -1),
    )
    fields.setdefault("min_bytes", 1)
    return FetchRequest(topics=[FetchTopic(topic="t", partitions=[asked])], **fields)  # type: ignore[arg-type]  # all numbers


def values_of(response: FetchResponse) -> list[bytes | None]:
    records = response.responses[0].partitions[0].records
    assert isinstance(records, bytes | bytearray | memoryview)
    return [row.value for row in decode(records, max_records=10_000, max_bytes=1 << 24).rows()]


# Every version


def test_every_api_answers_in_every_version() -> None:
    """An empty request of each version gets a response of that version."""

    async def test(desk: Desk) -> None:
        await create(desk)
        for row in api_table():
            for version in APIS[row.key].versions:
                if row.key == ApiKey.API_VERSIONS:
                    request: object = ApiVersionsRequest(
                        client_software_name="x", client_software_version="1"
                    )
                elif row.key == ApiKey.PRODUCE:
                    request = ProduceRequest(acks=1)
                elif row.key == ApiKey.INIT_PRODUCER_ID:
                    request = InitProducerIdRequest(transactional_id=None)
                else:
                    request = request_type(row.key)()
                assert await desk.ask(request, version) is not None, (row.key, version)
        assert desk.closed_for is None

    at_desk(test)


@pytest.mark.parametrize("version", APIS[ApiKey.PRODUCE].versions)
@pytest.mark.parametrize("codec", list(Compression))
def test_what_is_produced_is_fetched_in_every_version(version: int, codec: Compression) -> None:
    async def test(desk: Desk) -> None:
        topic_id = await create(desk)
        records = batch(b"one", b"two", codec=codec)
        result = await produce(desk, records, version=version, topic_id=topic_id)
        if codec is Compression.ZSTD and version < 7:
            assert result.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
            return
        assert (result.error_code, result.base_offset) == (0, 0)
        for fetch_version in APIS[ApiKey.FETCH].versions:
            request = fetch_request()
            request.topics[0].topic_id = topic_id
            response = await desk.ask(request, fetch_version)
            assert values_of(response) == [b"one", b"two"], fetch_version

    at_desk(test)


# ApiVersions


def test_api_versions_is_the_table_and_nothing_else() -> None:
    async def test(desk: Desk) -> None:
        asked = ApiVersionsRequest(client_software_name="a-b.c", client_software_version="1.0")
        response = await desk.ask(asked)
        told = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        assert set(told) == {int(row.key) for row in api_table()}
        assert told[ApiKey.PRODUCE] == (0, 13)
        assert told[ApiKey.INIT_PRODUCER_ID] == (0, 5)
        assert response.finalized_features == []
        refused = await desk.ask(ApiVersionsRequest(client_software_name="-bad"))
        assert refused.error_code == ErrorCode.INVALID_REQUEST

    at_desk(test)


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    async def test(desk: Desk) -> None:
        frame = bytes.fromhex("0000000c 0012 0063 00000007 ffff 00 00".replace(" ", ""))
        desk.put(frame)
        reply = await desk._next_frame()
        assert reply[:4] == b"\0\0\0\x07"
        assert int.from_bytes(reply[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION
        assert reply[6:] == bytes.fromhex("00000001 0012 0000 0004".replace(" ", ""))

    at_desk(test)


@pytest.mark.parametrize("frame", ["0000 0063 00000001 ffff", "03e7 0000 00000001 ffff", "0001"])
def test_unknown_apis_and_versions_close_the_connection(frame: str) -> None:
    async def test(desk: Desk) -> None:
        raw = bytes.fromhex(frame.replace(" ", ""))
        raw += bytes(max(0, 8 - len(raw)))
        desk.put(len(raw).to_bytes(4, "big") + raw)
        assert desk.closed_for

    at_desk(test)


# Produce


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


# Fetch


def test_a_fetch_waits_for_bytes_and_not_longer_than_it_may() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        before = desk.clock.monotonic_ms()
        empty = await desk.ask(fetch_request(max_wait_ms=500), FETCH_BY_NAME)
        assert values_of(empty) == []
        assert desk.clock.monotonic_ms() - before == pytest.approx(500, abs=5)
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


# ListOffsets, OffsetForLeaderEpoch, DeleteRecords


async def offset_at(desk: Desk, timestamp: int, version: int = 11) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name="t", partitions=[asked])
    response = await desk.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), version)
    found: ListOffsetsPartitionResponse = response.topics[0].partitions[0]
    return found


def test_list_offsets_by_place_and_by_time() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        base = 1_700_000_000_000
        empty = await offset_at(desk, -3)
        assert (empty.offset, empty.timestamp) == (-1, -1)
        for codec in (Compression.NONE, Compression.GZIP):
            records = [Record(None, b"v", base + n) for n in (10, 30, 20)]
            await produce(desk, bytes(encode(records, codec=codec)))
        place = {stamp: (await offset_at(desk, stamp)).offset for stamp in range(-6, 0)}
        assert place == {-1: 6, -2: 0, -3: 1, -4: 0, -5: -1, -6: -1}
        assert (await offset_at(desk, base + 15)).offset == 1
        assert (await offset_at(desk, base + 15)).timestamp == base + 30
        assert (await offset_at(desk, base)).offset == 0
        assert (await offset_at(desk, base + 31)).offset == -1
        assert (await offset_at(desk, -3, 6)).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert (await offset_at(desk, -9)).error_code == ErrorCode.UNSUPPORTED_VERSION
        for version in APIS[ApiKey.LIST_OFFSETS].versions:
            assert (await offset_at(desk, -1, version)).offset == 6

    at_desk(test)


async def trim(desk: Desk, offset: int) -> tuple[int, int]:
    asked = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name="t", partitions=[asked])
    response = await desk.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1))
    result = response.topics[0].partitions[0]
    return result.error_code, result.low_watermark


def test_delete_records_raises_the_start() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        for _ in range(4):
            await produce(desk, batch(b"v"))
        assert await trim(desk, 2) == (0, 2)
        assert await trim(desk, 1) == (0, 2)
        assert await trim(desk, 9) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        assert (await offset_at(desk, -2)).offset == 2
        response = await desk.ask(fetch_request(0), FETCH_BY_NAME)
        assert response.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert await trim(desk, -1) == (0, 4)
        await create(desk, "c", cleanup_policy="compact")

    at_desk(test)


def test_offset_for_leader_epoch() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await produce(desk, batch(b"a"))
        desk.broker.partitions.get("t", 0).lead(1, 3, 1, 1)
        await produce(desk, batch(b"b"))
        found = {}
        for epoch in (0, 1, 3, 4):
            asked = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
            topic = OffsetForLeaderTopic(topic="t", partitions=[asked])
            response = await desk.ask(OffsetForLeaderEpochRequest(topics=[topic]))
            end = response.topics[0].partitions[0]
            found[epoch] = (end.leader_epoch, end.end_offset)
        assert found == {0: (0, 1), 1: (0, 1), 3: (3, 2), 4: (-1, -1)}

    at_desk(test)


# Topics


def test_creating_topics_refuses_what_kafka_refuses() -> None:
    cases = {
        "exists": (CreatableTopic(name="t", num_partitions=1, replication_factor=1), 36),
        "name": (CreatableTopic(name="a b", num_partitions=1, replication_factor=1), 17),
        "long": (CreatableTopic(name="x" * 250, num_partitions=1, replication_factor=1), 17),
        "count": (CreatableTopic(name="n", num_partitions=0, replication_factor=1), 37),
        "factor": (CreatableTopic(name="n", num_partitions=1, replication_factor=2), 38),
        "config": (
            CreatableTopic(
                name="n",
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="no.such", value="1")],
            ),
            40,
        ),
        "assignment": (
            CreatableTopic(
                name="n",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[99])],
            ),
            39,
        ),
    }

    async def test(desk: Desk) -> None:
        await create(desk)
        for name, (topic, code) in cases.items():
            response = await desk.ask(CreateTopicsRequest(topics=[topic]))
            assert response.topics[0].error_code == code, (name, response.topics[0])
        twice = [CreatableTopic(name="d", num_partitions=1, replication_factor=1)] * 2
        response = await desk.ask(CreateTopicsRequest(topics=twice))
        assert [each.error_code for each in response.topics] == [ErrorCode.INVALID_REQUEST]
        dry = CreatableTopic(name="dry", num_partitions=3, replication_factor=-1)
        response = await desk.ask(CreateTopicsRequest(topics=[dry], validate_only=True))
        assert (response.topics[0].error_code, response.topics[0].num_partitions) == (0, 3)
        names = (await desk.ask(MetadataRequest(topics=None))).topics
        assert [topic.name for topic in names] == ["t"]

    at_desk(test)


def test_created_topics_tell_their_configuration() -> None:
    async def test(desk: Desk) -> None:
        topic = CreatableTopic(
            name="t",
            num_partitions=-1,
            replication_factor=-1,
            configs=[CreatableTopicConfig(name="retention.ms", value="1000")],
        )
        response = await desk.ask(CreateTopicsRequest(topics=[topic]))
        told = {each.name: (each.value, each.config_source) for each in response.topics[0].configs}
        assert told["retention.ms"] == ("1000", 1)
        assert told["max.message.bytes"] == ("1048588", 5)
        assert told["segment.bytes"] == ("2000000", 4)
        assert response.topics[0].num_partitions == 2

    at_desk(test, {"num.partitions": "2", "log.segment.bytes": "2000000"})


def test_deleting_topics_by_name_and_id() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        other = await create(desk, "u")
        old = await desk.ask(DeleteTopicsRequest(topic_names=["t", "nope"]), 5)
        assert [each.error_code for each in old.responses] == [0, 3]
        states = [DeleteTopicState(topic_id=other), DeleteTopicState(topic_id=b"y" * 16)]
        new = await desk.ask(DeleteTopicsRequest(topics=states))
        assert [each.error_code for each in new.responses] == [0, ErrorCode.UNKNOWN_TOPIC_ID]
        assert (await produce(desk, batch(b"v"))).error_code == 3
        again = await create(desk)
        assert again
        assert (await offset_at(desk, -1)).offset == 0, "a new topic starts empty"

    at_desk(test)


# Metadata and the cluster


def test_metadata_creates_on_demand_unless_forbidden() -> None:
    async def test(desk: Desk) -> None:
        asked = [MetadataRequestTopic(name="new")]
        no = await desk.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
        assert no.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        yes = await desk.ask(MetadataRequest(topics=asked))
        (topic,) = yes.topics
        assert (topic.error_code, topic.name, len(topic.partitions)) == (0, "new", 1)
        assert (topic.partitions[0].leader_id, topic.partitions[0].isr_nodes) == (1, [1])
        by_id = MetadataRequestTopic(topic_id=topic.topic_id, name=None)
        assert (await desk.ask(MetadataRequest(topics=[by_id]))).topics[0].name == "new"
        bad = [MetadataRequestTopic(name="no/good")]
        refused = await desk.ask(MetadataRequest(topics=bad))
        assert refused.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert (yes.brokers[0].node_id, yes.brokers[0].port) == (1, 9092)
        assert yes.controller_id == 1
        everything = await desk.ask(MetadataRequest(topics=[]), 0)
        assert [each.name for each in everything.topics] == ["new"]

    at_desk(test)


def test_metadata_creates_nothing_where_that_is_switched_off() -> None:
    async def test(desk: Desk) -> None:
        response = await desk.ask(MetadataRequest(topics=[MetadataRequestTopic(name="new")]))
        assert response.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    at_desk(test, {"auto.create.topics.enable": "false"})


def test_describe_cluster() -> None:
    async def test(desk: Desk) -> None:
        response = await desk.ask(
            DescribeClusterRequest(include_cluster_authorized_operations=True)
        )
        assert response.cluster_id
        assert response.cluster_authorized_operations > 0
        assert [broker.broker_id for broker in response.brokers] == [1]
        wrong = await desk.ask(DescribeClusterRequest(endpoint_type=2))
        assert wrong.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE

    at_desk(test)


def test_a_transactional_id_is_told_at_once_that_nobody_coordinates() -> None:
    async def test(desk: Desk) -> None:
        response = await desk.ask(InitProducerIdRequest(transactional_id="x"))
        assert response.error_code == ErrorCode.NOT_COORDINATOR

    at_desk(test)


def test_bytes_to_spare_are_left_unread_as_kafka_does() -> None:
    """librdkafka 2.16 sends three of them after a Metadata v13 for all topics."""

    async def test(desk: Desk) -> None:
        frame = encode_frame(MetadataRequest(topics=None), 12)
        size = int.from_bytes(frame[:4], "big") + 1
        desk.put(size.to_bytes(4, "big") + frame[4:] + b"\0")
        assert await desk._next_frame()
        assert desk.closed_for is None

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


# What a review found


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


def test_a_parked_request_that_fails_costs_only_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = fetch_handler._plan

    def fragile(context: RequestContext, *rest: Any) -> fetch_handler.Plan:  # noqa: ANN401  # passed on
        found = plan(context, *rest)
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

    monkeypatch.setattr(fetch_handler, "_plan", fragile)
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


def test_deleting_a_topic_whose_folder_is_gone() -> None:
    async def test(desk: Desk) -> None:
        topic_id = await create(desk)
        log = desk.broker.partitions.get("t", 0).log
        log._around.disk.remove_tree(log.folder)
        response = await desk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=topic_id)]))
        assert response.responses[0].error_code == 0
        assert await create(desk)
        assert (await produce(desk, batch(b"v"))).base_offset == 0

    at_desk(test)
