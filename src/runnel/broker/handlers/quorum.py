"""DescribeQuorum (key 55, v0-v2) and UnregisterBroker (key 64, v0): the cluster's own members.

Version notes: DescribeQuorum v1 adds times, v2 directory ids, messages and nodes.

Runnel has no Raft log. What Kafka's tools call the metadata quorum is the metadata store, and the
broker that holds the controller's lease leads it: one voter, whose log ends at the revision of the
store; other brokers that are up observe it.
"""

from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.cluster.image import Broker
from runnel.errors import ErrorCode, RunnelError
from runnel.types import NO_TOPIC_ID
from runnel.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from runnel.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

METADATA_TOPIC: Final = "__cluster_metadata"
FIRST_VERSION_WITH_NODES: Final = 2
EPOCH_MASK: Final = 2**31 - 1  # ours are revisions of the store, and longer


def describe_quorum(
    context: RequestContext, services: Services, request: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    if not _asks_for_metadata(request.topics):
        return DescribeQuorumResponse(
            error_message=None,
            topics=[
                DescribeQuorumResponseTopicData(
                    topic_name=topic.topic_name,
                    partitions=[
                        DescribeQuorumResponsePartitionData(
                            partition_index=each.partition_index,
                            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                            error_message="This server does not host this topic-partition.",
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )
    partition = _quorum(context, services)
    if context.api_version < FIRST_VERSION_WITH_NODES:
        topic = DescribeQuorumResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        return DescribeQuorumResponse(topics=[topic])
    return DescribeQuorumResponse(
        error_message=None,
        topics=[DescribeQuorumResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=[
            Node(
                node_id=broker.id,
                listeners=[
                    Listener(name=each.name, host=each.host, port=each.port)
                    for each in broker.listeners
                ],
            )
            for broker in services.image.ready_brokers()
            if broker.id == partition.leader_id
        ],
    )


def _asks_for_metadata(topics: list[DescribeQuorumRequestTopicData]) -> bool:
    return [
        (topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in topics
    ] == [(METADATA_TOPIC, [0])]


def _quorum(context: RequestContext, services: Services) -> DescribeQuorumResponsePartitionData:
    image = services.image
    term = image.controller
    if term is None:
        return DescribeQuorumResponsePartitionData(
            error_code=ErrorCode.LEADER_NOT_AVAILABLE, error_message="No controller is elected."
        )

    def state(broker: Broker) -> ReplicaState:
        is_here = broker.id == services.settings.node_id
        is_told = is_here and context.api_version >= FIRST_VERSION_WITH_NODES
        now_ms = services.clock.wall_ms()
        return ReplicaState(
            replica_id=broker.id,
            replica_directory_id=services.log_dirs.ids[0] if is_told else NO_TOPIC_ID,
            log_end_offset=image.revision,
            last_fetch_timestamp=now_ms,
            last_caught_up_timestamp=now_ms,
        )

    brokers = image.ready_brokers()
    return DescribeQuorumResponsePartitionData(
        error_message=None,
        leader_id=term.broker_id,
        leader_epoch=term.create_revision & EPOCH_MASK,
        high_watermark=image.revision,
        current_voters=[state(broker) for broker in brokers if broker.id == term.broker_id],
        observers=[state(broker) for broker in brokers if broker.id != term.broker_id],
    )


async def unregister_broker(
    context: RequestContext, services: Services, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    try:
        await services.membership.unregister(request.broker_id)
    except RunnelError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=str(error))
    return UnregisterBrokerResponse(error_message=None)
