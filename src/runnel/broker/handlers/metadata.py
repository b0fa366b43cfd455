"""Metadata (key 3, v0-v13) and DescribeCluster (key 60, v0-v2): who leads what, and where.

Version notes: in v0 an empty list of topics means all of them, from v1 on null does; v4 lets the
client forbid auto-creation, v10 knows topic ids, v12 allows asking by id alone. Everything is
answered from the image without IO; only a topic that must be created first makes the client wait.
"""

from collections.abc import Coroutine, Iterable
from typing import Any, Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.security import (
    CLUSTER_NAME,
    CLUSTER_OPERATIONS,
    TOPIC_OPERATIONS,
    Operation,
    Resource,
)
from runnel.cluster.image import Topic
from runnel.cluster.topic_names import ensure_legal, is_internal
from runnel.cluster.topics import NewTopic
from runnel.errors import ErrorCode, RunnelError
from runnel.types import NO_TOPIC_ID
from runnel.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from runnel.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NOT_ASKED: Final = -(2**31)
BROKER_ENDPOINT: Final = 1
FIRST_VERSION_WITHOUT_NAME: Final = 12


def metadata(
    context: RequestContext, services: Services, request: MetadataRequest
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    missing = _to_create(context, services, request)
    if missing:
        return _create_then_describe(context, services, request, missing)
    return _describe(context, services, request, {})


def _to_create(context: RequestContext, services: Services, request: MetadataRequest) -> list[str]:
    """Names that do not exist and may be created by asking for them."""
    if not (
        request.topics
        and request.allow_auto_topic_creation
        and services.settings.auto_create_topics_enable
    ):
        return []
    names = [topic.name for topic in request.topics if topic.name]
    return [
        name
        for name in dict.fromkeys(names)
        if name not in services.image.topics and context.may(Operation.CREATE, Resource.TOPIC, name)
    ]


async def _create_then_describe(
    context: RequestContext, services: Services, request: MetadataRequest, names: list[str]
) -> MetadataResponse:
    refused: dict[str, ErrorCode] = {}
    for name in names:
        try:
            await services.topics.create(NewTopic(name), validate_only=False)
        except RunnelError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                refused[name] = error.code
    return _describe(context, services, request, refused)


def _describe(
    context: RequestContext,
    services: Services,
    request: MetadataRequest,
    refused: dict[str, ErrorCode],
) -> MetadataResponse:
    image = services.image
    asked = request.topics
    with_rights = request.include_topic_authorized_operations
    if asked is None or (context.api_version == 0 and not asked):
        topics = [
            _topic(context, topic, with_rights)
            for topic in image.topics.values()
            if context.may(Operation.DESCRIBE, Resource.TOPIC, topic.name)
        ]
    else:
        topics = [_asked_topic(context, services, each, with_rights, refused) for each in asked]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=broker_id, host=host, port=port, rack=rack)
            for broker_id, host, port, rack in _brokers(context, services)
        ],
        cluster_id=image.cluster_id,
        controller_id=_controller_id(services),
        topics=topics,
        cluster_authorized_operations=context.rights(
            Resource.CLUSTER, CLUSTER_NAME, CLUSTER_OPERATIONS
        )
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def _asked_topic(
    context: RequestContext,
    services: Services,
    asked: MetadataRequestTopic,
    with_rights: bool,
    refused: dict[str, ErrorCode],
) -> MetadataResponseTopic:
    image = services.image
    by_id = asked.topic_id != NO_TOPIC_ID
    topic = image.topics_by_id.get(asked.topic_id) if by_id else image.topics.get(asked.name or "")
    name = asked.name if topic is None else topic.name
    if name and not context.may(Operation.DESCRIBE, Resource.TOPIC, name):
        return MetadataResponseTopic(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            name=_unnamed(context) if by_id else name,
        )
    if topic is not None:
        return _topic(context, topic, with_rights)
    if by_id:
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID,
            name=_unnamed(context),
            topic_id=asked.topic_id,
        )
    code = refused.get(asked.name or "") or _why_unknown(asked.name or "")
    return MetadataResponseTopic(error_code=code, name=asked.name)


def _why_unknown(name: str) -> ErrorCode:
    """A name that no topic can have is told apart, also where nothing is created by asking."""
    try:
        ensure_legal(name)
    except RunnelError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _unnamed(context: RequestContext) -> str | None:
    return None if context.api_version >= FIRST_VERSION_WITHOUT_NAME else ""


def _topic(context: RequestContext, topic: Topic, with_rights: bool) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=[
            MetadataResponsePartition(
                error_code=0 if record.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=record.index,
                leader_id=record.leader,
                leader_epoch=record.leader_epoch,
                replica_nodes=list(record.replicas),
                isr_nodes=record.isr_ids,
            )
            for record in topic.partitions
        ],
        topic_authorized_operations=context.rights(Resource.TOPIC, topic.name, TOPIC_OPERATIONS)
        if with_rights
        else NOT_ASKED,
    )


def _brokers(
    context: RequestContext, services: Services
) -> Iterable[tuple[int, str, int, str | None]]:
    """Every live broker at its address for the listener that the client came in by."""
    for broker in services.image.ready_brokers():
        for listener in broker.listeners:
            if listener.name == context.listener:
                yield broker.id, listener.host, listener.port, broker.rack


def _controller_id(services: Services) -> int:
    """Clients send administrative requests there; any broker of ours can carry them out."""
    controller = services.image.controller
    return -1 if controller is None else controller.broker_id


def describe_cluster(
    context: RequestContext, services: Services, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    if request.endpoint_type != BROKER_ENDPOINT:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="this is a broker listener; ask for endpoint type 1",
        )
    return DescribeClusterResponse(
        cluster_id=services.image.cluster_id,
        controller_id=_controller_id(services),
        brokers=[
            DescribeClusterBroker(broker_id=broker_id, host=host, port=port, rack=rack)
            for broker_id, host, port, rack in _brokers(context, services)
        ],
        cluster_authorized_operations=context.rights(
            Resource.CLUSTER, CLUSTER_NAME, CLUSTER_OPERATIONS
        )
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )
