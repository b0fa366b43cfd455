"""DescribeConfigs (key 32, v1-v4) and ListConfigResources (key 74, v0-v1).

Version notes: DescribeConfigs v3 has types and documentation; ListConfigResources v0 knows only
the subscriptions of client metrics. Resources are answered one by one: what is wrong with one is
told with it, and the others are not touched by it.
"""

from collections.abc import Iterable
from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.handlers.config_resources import (
    ResourceType,
    ensure_may,
    ensure_this_broker,
    resource_type,
)
from runnel.broker.live_settings import layers_of
from runnel.broker.loggers import levels
from runnel.broker.security import Operation, Resource
from runnel.cluster.image import Topic
from runnel.cluster.topic_names import ensure_legal
from runnel.cluster.values import ConfigOwner
from runnel.config.described import (
    Described,
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from runnel.config.effective import Source
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from runnel.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_UNNAMED: Final = {
    ResourceType.BROKER_LOGGER: "Broker id",
    ResourceType.CLIENT_METRICS: "Client metrics subscription name",
    ResourceType.GROUP: "Group name",
}


def describe_configs(
    context: RequestContext, services: Services, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    results: list[DescribeConfigsResult] = []
    for resource in request.resources:
        result = DescribeConfigsResult(
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            kind = resource_type(resource.resource_type)
            ensure_may(context, Operation.DESCRIBE_CONFIGS, kind, resource.resource_name)
            found = _describe(services, kind, resource.resource_name)
            result.configs = [_result(config, request) for config in _asked_for(found, resource)]
        except RunnelError as error:
            result.error_code, result.error_message = error.code, str(error)
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _asked_for(found: Iterable[Described], asked: DescribeConfigsResource) -> list[Described]:
    names = set(asked.configuration_keys or ())  # none named: all of them
    return [config for config in found if not names or config.name in names]


def _describe(services: Services, kind: ResourceType, name: str) -> Iterable[Described]:
    image, layers = services.image, layers_of(services.image, services.settings)
    if not name and kind in _UNNAMED:
        raise RunnelError(ErrorCode.INVALID_REQUEST, f"{_UNNAMED[kind]} must not be empty")
    match kind:
        case ResourceType.TOPIC:
            return describe_topic(_topic(services, name).configs, layers)
        case ResourceType.BROKER if not name:
            return describe_broker_default(layers.default)
        case ResourceType.BROKER:
            ensure_this_broker(services, name, "expected {} or empty string, but")
            return describe_broker(layers)
        case ResourceType.BROKER_LOGGER:
            ensure_this_broker(services, name, "expected {} but")
            return _levels()
        case ResourceType.CLIENT_METRICS:
            return describe_client_metrics(image.configs_of(ConfigOwner("client-metrics", name)))
        case ResourceType.GROUP:
            return describe_group(image.configs_of(ConfigOwner("group", name)), layers)


def _topic(services: Services, name: str) -> Topic:
    ensure_legal(name)
    topic = services.image.topics.get(name)
    if topic is None:
        raise RunnelError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )
    return topic


def _levels() -> list[Described]:
    return [Described(name, level, Source.BROKER_LOGGER, []) for name, level in levels().items()]


def _result(config: Described, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = config.synonyms if request.include_synonyms else []
    return DescribeConfigsResourceResult(
        name=config.name,
        value=config.value,
        read_only=config.is_read_only,
        config_source=config.source,
        is_sensitive=config.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source)
            for each in synonyms
        ],
        config_type=config.type_code,
        documentation=config.documentation if request.include_documentation else None,
    )


def list_config_resources(
    context: RequestContext, services: Services, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    asked: Iterable[int] = request.resource_types
    if context.api_version == 0:
        asked = [ResourceType.CLIENT_METRICS]
    elif not asked:
        asked = list(ResourceType)
    if not set(asked) <= set(ResourceType):
        raise RunnelError(ErrorCode.UNSUPPORTED_VERSION, "a type of resource that nobody knows")
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in map(ResourceType, dict.fromkeys(asked))
            for name in _names(context, services, kind)
        ]
    )


def _names(context: RequestContext, services: Services, kind: ResourceType) -> list[str]:
    image = services.image
    match kind:
        case ResourceType.TOPIC:
            return [
                name
                for name in sorted(image.topics)
                if context.may(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, name)
            ]
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return [str(broker.id) for broker in image.ready_brokers()]
        case ResourceType.CLIENT_METRICS | ResourceType.GROUP:
            stored = "group" if kind is ResourceType.GROUP else "client-metrics"
            return sorted(
                owner.name
                for owner, held in image.configs.items()
                if owner.kind == stored and held.values
            )
