"""Resources that have settings, named as Kafka names them, and whom a client may ask about them."""

from enum import IntEnum

from runnel.broker.context import RequestContext, Services
from runnel.broker.security import CLUSTER_NAME, Operation, Resource
from runnel.errors import ErrorCode, RunnelError


class ResourceType(IntEnum):
    """Kafka's ConfigResource.Type codes."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def resource_type(code: int) -> ResourceType:
    try:
        return ResourceType(code)
    except ValueError:
        raise RunnelError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {code}") from None


def ensure_may(
    context: RequestContext, operation: Operation, kind: ResourceType, name: str
) -> None:
    match kind:
        case ResourceType.TOPIC:
            resource = Resource.TOPIC
        case ResourceType.GROUP:
            resource = Resource.GROUP
        case _:
            resource, name = Resource.CLUSTER, CLUSTER_NAME
    context.ensure_may(operation, resource, name)


def ensure_this_broker(
    services: Services, name: str, expected: str = "expected {}, but", *, word: str = "Broker"
) -> None:
    """A broker's settings are its own affair. Raises RunnelError(INVALID_REQUEST)."""
    node_id = services.settings.node_id
    digits = name.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 11):
        raise RunnelError(
            ErrorCode.INVALID_REQUEST, f"{word} id must be an integer, but it is: {name[:250]}"
        )
    if int(name) != node_id:
        raise RunnelError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, {expected.format(node_id)} received {name}",
        )
