"""AlterConfigs (key 33, v0-v2) and IncrementalAlterConfigs (key 44, v0-v1).

The old one replaces a resource's whole set, the new one changes it name by name. Each resource is
changed in one transaction or not at all, and the others are not touched by its failure. The answer
leaves when the change is in the image and this broker goes by it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.handlers.config_resources import (
    ResourceType,
    ensure_may,
    ensure_this_broker,
    resource_type,
)
from runnel.broker.live_settings import layers_of
from runnel.broker.loggers import alter_levels
from runnel.broker.security import Operation as Right
from runnel.cluster.topic_names import ensure_legal
from runnel.cluster.values import ConfigKind, ConfigOwner
from runnel.config.alterations import (
    CLIENT_METRICS,
    Change,
    Operation,
    ensure_client_metrics,
    ensure_group,
    ensure_topic,
    ensure_well_formed,
    incremental,
    replaced,
)
from runnel.config.definition import Definition
from runnel.config.dynamic import ensure_broker
from runnel.config.registry import BROKER, GROUP, TOPIC
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages import alter_configs as legacy
from runnel.wire.messages import incremental_alter_configs as newer

_KINDS: Final[Mapping[ResourceType, tuple[ConfigKind, Mapping[str, Definition]]]] = {
    ResourceType.TOPIC: ("topic", TOPIC),
    ResourceType.BROKER: ("broker", BROKER),
    ResourceType.CLIENT_METRICS: ("client-metrics", CLIENT_METRICS),
    ResourceType.GROUP: ("group", GROUP),
}

Stored = Mapping[str, str]


async def alter_configs(
    context: RequestContext, services: Services, request: legacy.AlterConfigsRequest
) -> legacy.AlterConfigsResponse:
    responses: list[legacy.AlterConfigsResourceResponse] = []
    twice = _named_twice([(r.resource_type, r.resource_name) for r in request.resources])
    for resource in request.resources:
        answer = legacy.AlterConfigsResourceResponse(
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            _ensure_once(twice, resource.resource_type, resource.resource_name)
            changes = [Change(c.name, Operation.SET, c.value) for c in resource.configs]
            ensure_well_formed(changes)
            kind = resource_type(resource.resource_type)
            if kind is ResourceType.BROKER_LOGGER:
                raise RunnelError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {int(kind)}")
            wanted = {name: value or "" for name, _, value in changes}
            await _alter(
                context,
                services,
                (kind, resource.resource_name),
                partial(replaced, wanted=wanted),
                request.validate_only,
            )
        except RunnelError as error:
            answer.error_code, answer.error_message = error.code, str(error)
        responses.append(answer)
    return legacy.AlterConfigsResponse(responses=responses)


async def incremental_alter_configs(
    context: RequestContext, services: Services, request: newer.IncrementalAlterConfigsRequest
) -> newer.IncrementalAlterConfigsResponse:
    responses: list[newer.AlterConfigsResourceResponse] = []
    twice = _named_twice([(r.resource_type, r.resource_name) for r in request.resources])
    for resource in request.resources:
        answer = newer.AlterConfigsResourceResponse(
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            _ensure_once(twice, resource.resource_type, resource.resource_name)
            changes = [_change(config) for config in resource.configs]
            ensure_well_formed(changes)
            await _incremental(context, services, resource, changes, request.validate_only)
        except RunnelError as error:
            answer.error_code, answer.error_message = error.code, str(error)
        responses.append(answer)
    return newer.IncrementalAlterConfigsResponse(responses=responses)


async def _incremental(
    context: RequestContext,
    services: Services,
    resource: newer.AlterConfigsResource,
    changes: Sequence[Change],
    validate_only: bool,
) -> None:
    kind, name = resource_type(resource.resource_type), resource.resource_name
    if kind is ResourceType.BROKER_LOGGER:
        ensure_may(context, Right.ALTER_CONFIGS, kind, name)
        ensure_this_broker(services, name, word="Node")
        alter_levels(changes, validate_only=validate_only)
        return
    alter = partial(incremental, changes=changes, names=_KINDS[kind][1])
    await _alter(context, services, (kind, name), alter, validate_only)


async def _alter(
    context: RequestContext,
    services: Services,
    resource: tuple[ResourceType, str],
    alter: Callable[[Stored], dict[str, str]],
    validate_only: bool,
) -> None:
    """Raises RunnelError, and then nothing has changed."""
    kind, name = resource
    ensure_may(context, Right.ALTER_CONFIGS, kind, name)
    match kind:
        case ResourceType.TOPIC:
            ensure_legal(name)
        case ResourceType.BROKER if name:
            ensure_this_broker(services, name, word="Node")
        case ResourceType.GROUP if not name:
            raise RunnelError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        case ResourceType.CLIENT_METRICS if not name:
            raise RunnelError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")

    def checked(current: Stored) -> Stored:
        wanted = alter(current)
        _ensure_valid(services, kind, name, current, wanted)
        return wanted

    owner = ConfigOwner(_KINDS[kind][0], name)
    membership = services.membership
    await membership.alter_configs(owner, checked, validate_only=validate_only)
    if not validate_only:
        await services.partitions.caught_up_with(membership.image.revision)


def _ensure_valid(
    services: Services, kind: ResourceType, name: str, current: Stored, wanted: Stored
) -> None:
    layers = layers_of(services.image, services.settings)
    match kind:
        case ResourceType.TOPIC:
            ensure_topic(current, wanted)
        case ResourceType.BROKER:
            before = layers._replace(own=current) if name else layers._replace(default=current)
            after = layers._replace(own=wanted) if name else layers._replace(default=wanted)
            ensure_broker(services.settings, before, after, is_default=not name)
        case ResourceType.GROUP:
            bounds = {n: layers.text(n) for n in BROKER if n.startswith("group.")}
            ensure_group(wanted, {n: text for n, text in bounds.items() if text is not None})
        case ResourceType.CLIENT_METRICS:
            ensure_client_metrics(wanted)


def _change(config: newer.AlterableConfig) -> Change:
    try:
        operation = Operation(config.config_operation)
    except ValueError:
        raise RunnelError(
            ErrorCode.INVALID_REQUEST, f"Unknown operations type {config.config_operation}"
        ) from None
    return Change(config.name, operation, config.value)


def _named_twice(resources: Sequence[tuple[int, str]]) -> set[tuple[int, str]]:
    return {resource for resource, count in Counter(resources).items() if count > 1}


def _ensure_once(twice: set[tuple[int, str]], kind: int, name: str) -> None:
    if (kind, name) in twice:
        raise RunnelError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
