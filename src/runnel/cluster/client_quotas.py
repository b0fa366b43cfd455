"""Client quotas as the metadata holds them: whom they bind, which there are, what may be set.

An entity is one or two of user, client-id and ip, each with a name or the default (None). Rules
and wording are Kafka's; where Kafka would look up a host name, an address is asked for: nothing
here may wait for a name server.
"""

import ipaddress
import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from runnel.errors import ErrorCode, RunnelError

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

CLIENT_KEYS: Final = (
    PRODUCER_BYTE_RATE,
    CONSUMER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    CONTROLLER_MUTATION_RATE,
)
IP_KEYS: Final = (CONNECTION_CREATION_RATE,)
# Kafka keeps the others as doubles. These are whole numbers, up to the maximum of their type.
WHOLE_MAX: Final = {
    PRODUCER_BYTE_RATE: 2**63 - 1,
    CONSUMER_BYTE_RATE: 2**63 - 1,
    CONNECTION_CREATION_RATE: 2**31 - 1,
}
NAME_LENGTH_MAX: Final = 1024
ENTITIES_MAX: Final = 10_000

Entity = tuple[tuple[str, str | None], ...]  # type and name, by type; None: the default


class QuotaAlteration(NamedTuple):
    entity: Entity
    changes: Mapping[str, float | None]  # None: remove


def quota_key(entity: Entity) -> str:
    parts = [t if name is None else f"{t}={quote(name, safe='')}" for t, name in entity]
    return f"quota/{'/'.join(parts)}"


def parse_entity(rest: str) -> Entity:
    """What stands behind `quota/`."""
    found: list[tuple[str, str | None]] = []
    for part in rest.split("/"):
        kind, equals, name = part.partition("=")
        found.append((kind, unquote(name) if equals else None))
    return tuple(found)


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """Raises RunnelError where the parts make no entity that a quota can bind."""
    names: dict[str, str | None] = {}
    for kind, name in parts:
        if kind in names:
            raise _invalid(f"Invalid client quota entity, duplicate entity entry {kind}")
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name is not None and len(name) > NAME_LENGTH_MAX:
            raise _invalid(f"The name of a {kind} has at most {NAME_LENGTH_MAX} characters")
        names[kind] = name
    if not names:
        raise _invalid("Invalid empty client quota entity")
    if IP in names:
        if len(names) > 1:
            raise _invalid(
                "Invalid quota entity combination, IP entity should not be combined with User or "
                "ClientId"
            )
        ensure_address(names[IP])
    return tuple(sorted(names.items(), key=lambda item: item[0]))


def ensure_address(text: str | None) -> None:
    try:
        if text is not None:
            ipaddress.ip_address(text)
    except ValueError:
        raise _invalid(f"{text} is not a valid IP address.") from None


def alteration(entity: Entity, operations: Iterable[tuple[str, float | None]]) -> QuotaAlteration:
    """The changes of one entity, checked. Raises RunnelError(INVALID_REQUEST)."""
    known = IP_KEYS if entity[0][0] == IP else CLIENT_KEYS
    changes: dict[str, float | None] = {}
    for key, value in operations:
        if key in changes:
            raise _invalid(f"Duplicate quota key {key} not updating quota for this entity")
        if value is not None:
            if key not in known:
                raise _invalid(f"Invalid configuration key {key}")
            _ensure_value(key, value)
        changes[key] = value
    return QuotaAlteration(entity, changes)


def _ensure_value(key: str, value: float) -> None:
    if not value > 0 or math.isinf(value):
        raise _invalid(f"Quota {key} must be greater than 0")
    whole_max = WHOLE_MAX.get(key)
    if whole_max is None:
        return
    if value > whole_max:
        raise _invalid(f"Proposed value for {key} is too large for its type.")
    if value % 1.0 > 1e-6:
        raise _invalid(f"{key} cannot be a fractional value.")


def altered(old: Mapping[str, float], changes: Mapping[str, float | None]) -> dict[str, float]:
    merged = {**old, **changes}
    return {key: value for key, value in sorted(merged.items()) if value is not None}


def _invalid(why: str) -> RunnelError:
    return RunnelError(ErrorCode.INVALID_REQUEST, why)
