"""ControllerRegistration (key 70), version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    STRING,
    UINT16,
    UUID,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class Listener:
    name: str = wire(STRING, default="")
    host: str = wire(STRING, default="")
    port: int = wire(UINT16, default=0)
    security_protocol: int = wire(INT16, default=0)


@struct
class Feature:
    name: str = wire(STRING, default="")
    min_supported_version: int = wire(INT16, default=0)
    max_supported_version: int = wire(INT16, default=0)


@message(api_key=70, versions=(0, 0), flexible_since=0)
class ControllerRegistrationRequest:
    controller_id: int = wire(INT32, default=0)
    incarnation_id: bytes = wire(UUID, default=NO_UUID)
    zk_migration_ready: bool = wire(BOOL, default=False)
    listeners: list[Listener] = wire(array_of(Listener), default_factory=list)
    features: list[Feature] = wire(array_of(Feature), default_factory=list)


@message(api_key=70, versions=(0, 0), flexible_since=0)
class ControllerRegistrationResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
