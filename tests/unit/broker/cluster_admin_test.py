"""Goal: the cluster's features, its quorum and its members are told and changed as Kafka's are."""

import pytest

from runnel.cluster import values
from runnel.errors import ErrorCode
from runnel.ports import Put
from runnel.wire.messages.api_versions import ApiVersionsRequest
from runnel.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from runnel.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from runnel.wire.messages.unregister_broker import UnregisterBrokerRequest
from runnel.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.asking import batch, create, produce
from tests.support.desk import Desk, at_desk

ELR = "eligible.leader.replicas.version"


async def levels(desk: Desk) -> dict[str, int]:
    asked = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    response = await desk.ask(asked)
    return {each.name: each.max_version_level for each in response.finalized_features}


@pytest.mark.parametrize("version", range(3))
def test_a_feature_is_lowered_and_raised(version: int) -> None:
    async def test(desk: Desk) -> None:
        update = FeatureUpdateKey(feature=ELR, max_version_level=0)
        if version:
            update.upgrade_type = 2
        else:
            update.allow_downgrade = True
        request = UpdateFeaturesRequest(feature_updates=[update])
        response = await desk.ask(request, version)
        assert response.error_code == 0, response
        assert [each.feature for each in response.results] == ([ELR] if version < 2 else [])
        assert ELR not in await levels(desk)
        update = FeatureUpdateKey(feature=ELR, max_version_level=1)
        response = await desk.ask(UpdateFeaturesRequest(feature_updates=[update]), version)
        assert response.error_code == 0, response
        assert (await levels(desk))[ELR] == 1

    at_desk(test)


def test_features_refuse_what_kafka_refuses_and_nothing_changes() -> None:
    cases = [
        ("no.such", 1, 1, "does not support this feature"),
        ("streams.version", 1, 1, "does not support this feature"),
        (ELR, 2, 1, "only supports versions 0-1"),
        (ELR, -1, 1, "cannot be less than 0"),
        (ELR, 0, 1, "Can't downgrade the version"),
        (ELR, 1, 0, "does not support the given upgrade type"),
        ("metadata.version", 31, 1, "only supports versions 7-30"),
        ("metadata.version", 22, 2, "Refusing to perform the requested downgrade"),
    ]

    async def test(desk: Desk) -> None:
        before = await levels(desk)
        good = FeatureUpdateKey(feature="share.version", max_version_level=0)
        for name, level, kind, why in cases:
            bad = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            response = await desk.ask(UpdateFeaturesRequest(feature_updates=[good, bad]))
            assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION, name
            assert why in response.error_message
        twice = [good, FeatureUpdateKey(feature="share.version", max_version_level=1)]
        response = await desk.ask(UpdateFeaturesRequest(feature_updates=twice))
        assert response.error_code == ErrorCode.INVALID_REQUEST
        down = FeatureUpdateKey(feature=ELR, max_version_level=0, upgrade_type=2)
        dry = UpdateFeaturesRequest(feature_updates=[down], validate_only=True)
        assert (await desk.ask(dry)).error_code == 0
        assert await levels(desk) == before

    at_desk(test)


@pytest.mark.parametrize("version", range(3))
def test_the_quorum_is_one_voter(version: int) -> None:
    async def test(desk: Desk) -> None:
        partitions = [DescribeQuorumRequestPartitionData(partition_index=0)]
        topic = DescribeQuorumRequestTopicData(
            topic_name="__cluster_metadata", partitions=partitions
        )
        response = await desk.ask(DescribeQuorumRequest(topics=[topic]), version)
        (partition,) = response.topics[0].partitions
        assert (partition.error_code, partition.leader_id, partition.observers) == (0, 1, [])
        (voter,) = partition.current_voters
        assert (voter.replica_id, voter.log_end_offset) == (1, partition.high_watermark)
        assert partition.high_watermark > 0
        if version == 2:
            assert voter.replica_directory_id != bytes(16)
            assert [(node.node_id, node.listeners[0].port) for node in response.nodes] == [
                (1, 9092)
            ]
        other = DescribeQuorumRequestTopicData(topic_name="t", partitions=partitions)
        response = await desk.ask(DescribeQuorumRequest(topics=[other]), version)
        assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    at_desk(test)


def test_only_a_broker_that_is_gone_is_unregistered() -> None:
    async def test(desk: Desk) -> None:
        unknown = await desk.ask(UnregisterBrokerRequest(broker_id=7))
        assert unknown.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
        assert unknown.error_message == "Broker ID 7 is not currently registered"
        running = await desk.ask(UnregisterBrokerRequest(broker_id=1))
        assert running.error_code == ErrorCode.INVALID_REQUEST
        store = desk.broker._ports.store
        epoch = values.BrokerEpoch("x", "", 0)
        await store.txn([], [Put(values.epoch_key(7), values.encode(epoch))])
        while 7 not in desk.broker._membership.image.brokers:
            await desk.broker._membership._reload()
        assert (await desk.ask(UnregisterBrokerRequest(broker_id=7))).error_code == 0
        assert 7 not in desk.broker._membership.image.brokers
        again = await desk.ask(UnregisterBrokerRequest(broker_id=7))
        assert again.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED

    at_desk(test)


def test_producers_of_a_partition() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        sent = batch(b"a", b"b", producer_id=5, producer_epoch=2, base_sequence=0)
        assert (await produce(desk, sent)).error_code == 0
        asked = [
            TopicRequest(name="t", partition_indexes=[0, 4]),
            TopicRequest(name="b/d", partition_indexes=[0]),
        ]
        response = await desk.ask(DescribeProducersRequest(topics=asked))
        known, missing = response.topics[0].partitions
        (producer,) = known.active_producers
        assert (producer.producer_id, producer.producer_epoch) == (5, 2)
        assert (producer.last_sequence, producer.current_txn_start_offset) == (1, -1)
        assert producer.last_timestamp == 1_700_000_000_000
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert response.topics[1].partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

    at_desk(test)
