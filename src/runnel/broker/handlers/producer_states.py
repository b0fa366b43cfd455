"""DescribeProducers (key 61, v0): who has written to a partition lately, as its leader knows it."""

from runnel.broker.context import RequestContext, Services
from runnel.broker.security import Operation, Resource
from runnel.cluster.topic_names import ensure_legal
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def describe_producers(
    context: RequestContext, services: Services, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _describe(context, services, topic.name, index)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _describe(
    context: RequestContext, services: Services, topic: str, index: int
) -> PartitionResponse:
    try:
        ensure_legal(topic)
        if not context.may(Operation.READ, Resource.TOPIC, topic):
            raise RunnelError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic)
        partition = services.partitions.get(topic, index)
        partition.ensure_leads()
    except RunnelError as error:
        return PartitionResponse(
            partition_index=index, error_code=error.code, error_message=str(error)
        )
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.txn_first_offset,
            )
            for producer_id, producer in partition.log.producers.producers.items()
        ],
    )
