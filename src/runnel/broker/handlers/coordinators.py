"""FindCoordinator (key 10, v0-v6): who coordinates a group or a transactional id.

Version notes: up to v3 one key is asked for, from v4 on several; v6 may ask for share groups, which
nobody coordinates here.

The internal topic that the answer depends on is created by the first who asks, and the answer
waits for it, so that a client's first group works without a retry.
"""

from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.coordinators import Coordinators
from runnel.broker.security import Operation, Resource
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

FIRST_VERSION_WITH_KEYS: Final = 4
GROUP: Final = 0
TRANSACTION: Final = 1


def find_coordinator(
    context: RequestContext, services: Services, request: FindCoordinatorRequest
) -> FindCoordinatorResponse | Coroutine[Any, Any, FindCoordinatorResponse]:
    coordinators = _coordinators(services, request.key_type)
    if coordinators is None or _is_open(services, coordinators):
        return _answer(context, services, request, coordinators)
    return _create_then_answer(context, services, request, coordinators)


def _is_open(services: Services, coordinators: Coordinators[Any]) -> bool:
    """Whether the topic is there, and open where this broker leads it.

    Clients whose commit is refused by who was named to them a moment ago do not all ask again.
    """
    topic = services.image.topics.get(coordinators.topic)
    if topic is None:
        return False
    me = services.settings.node_id
    return all(coordinators.has(record.index) for record in topic.partitions if record.leader == me)


async def _create_then_answer(
    context: RequestContext,
    services: Services,
    request: FindCoordinatorRequest,
    coordinators: Coordinators[Any],
) -> FindCoordinatorResponse:
    with suppress(RunnelError):  # the topic is not there then, which each key's answer says
        await coordinators.ensure_topic(services.topics)
    await services.partitions.caught_up_with(services.image.revision)
    return _answer(context, services, request, coordinators)


def _coordinators(services: Services, key_type: int) -> Coordinators[Any] | None:
    if key_type == GROUP:
        return services.groups
    if key_type == TRANSACTION:
        return services.transactions
    return None


def _answer(
    context: RequestContext,
    services: Services,
    request: FindCoordinatorRequest,
    coordinators: Coordinators[Any] | None,
) -> FindCoordinatorResponse:
    if context.api_version < FIRST_VERSION_WITH_KEYS:
        found = _find(context, services, request.key_type, request.key, coordinators)
        return FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=found.error_message or ErrorCode.NONE.name,  # as Kafka says it
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    return FindCoordinatorResponse(
        coordinators=[
            _find(context, services, request.key_type, key, coordinators)
            for key in request.coordinator_keys
        ]
    )


def _find(
    context: RequestContext,
    services: Services,
    key_type: int,
    key: str,
    coordinators: Coordinators[Any] | None,
) -> Coordinator:
    try:
        resource = Resource.TRANSACTIONAL_ID if key_type == TRANSACTION else Resource.GROUP
        context.ensure_may(Operation.DESCRIBE, resource, key)
        if coordinators is None:
            raise RunnelError(ErrorCode.INVALID_REQUEST, f"no coordinators of type {key_type}")
        index = coordinators.index_of(key)
        topic = services.image.topics[coordinators.topic]
        broker = services.image.brokers.get(topic.partitions[index].leader)
        addresses = () if broker is None else broker.listeners
        listener = next((each for each in addresses if each.name == context.listener), None)
        if broker is None or listener is None:
            raise RunnelError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic.name}-{index}")
    except RunnelError as error:
        return Coordinator(
            key=key, node_id=-1, port=-1, error_code=error.code, error_message=str(error)
        )
    return Coordinator(
        key=key, node_id=broker.id, host=listener.host, port=listener.port, error_message=""
    )
