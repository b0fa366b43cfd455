"""Goal: every API answers in every version, and bad requests get the error that Kafka gives.

Method: a broker built as always, on virtual time, asked with real wire messages.
"""

import pytest

from runnel.broker.api_table import api_table
from runnel.client.raw import encode_frame
from runnel.errors import ErrorCode
from runnel.native.compression import Compression
from runnel.wire.apis import APIS, ApiKey, request_type
from runnel.wire.messages.api_versions import ApiVersionsRequest
from runnel.wire.messages.describe_cluster import DescribeClusterRequest
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from runnel.wire.messages.produce import (
    ProduceRequest,
)
from tests.support.asking import batch, create, fetch_request, produce, values_of
from tests.support.desk import Desk, at_desk


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


def test_api_versions_is_the_table_and_nothing_else() -> None:
    async def test(desk: Desk) -> None:
        asked = ApiVersionsRequest(client_software_name="a-b.c", client_software_version="1.0")
        response = await desk.ask(asked)
        told = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        assert set(told) == {int(row.key) for row in api_table()}
        assert told[ApiKey.PRODUCE] == (0, 13)
        assert told[ApiKey.INIT_PRODUCER_ID] == (0, 5)
        finalized = {each.name: each.max_version_level for each in response.finalized_features}
        assert finalized == {
            "metadata.version": 30,
            "eligible.leader.replicas.version": 1,
            "group.version": 1,
            "transaction.version": 2,
        }
        assert len(response.supported_features) == 7
        old = await desk.ask(asked, 3)
        assert [each.name for each in old.supported_features] == ["metadata.version"]
        refused = await desk.ask(ApiVersionsRequest(client_software_name="-bad"))
        assert refused.error_code == ErrorCode.INVALID_REQUEST

    at_desk(test)


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    async def test(desk: Desk) -> None:
        frame = bytes.fromhex("0000000c 0012 0063 00000007 ffff 00 00".replace(" ", ""))
        desk.put(frame)
        reply = await desk.next_frame()
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


def test_a_transactional_id_without_its_topic_has_no_coordinator() -> None:
    async def test(desk: Desk) -> None:
        request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
        response = await desk.ask(request)
        assert response.error_code == ErrorCode.NOT_COORDINATOR
        assert response.producer_epoch == -1

    at_desk(test)


def test_bytes_to_spare_are_left_unread_as_kafka_does() -> None:
    """librdkafka 2.16 sends three of them after a Metadata v13 for all topics."""

    async def test(desk: Desk) -> None:
        frame = encode_frame(MetadataRequest(topics=None), 12)
        size = int.from_bytes(frame[:4], "big") + 1
        desk.put(size.to_bytes(4, "big") + frame[4:] + b"\0")
        assert await desk.next_frame()
        assert desk.closed_for is None

    at_desk(test)
