"""BrokerRegistration (key 62), versions 0-4, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
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


@message(api_key=62, versions=(0, 4), flexible_since=0)
class BrokerRegistrationRequest:
    broker_id: int = wire(INT32, default=0)
    cluster_id: str = wire(STRING, default="")
    incarnation_id: bytes = wire(UUID, default=NO_UUID)
    listeners: list[Listener] = wire(array_of(Listener), default_factory=list)
    features: list[Feature] = wire(array_of(Feature), default_factory=list)
    rack: str | None = wire(nullable(STRING), default="")
    is_migrating_zk_broker: bool = wire(BOOL, default=False, since=1)
    log_dirs: list[bytes] = wire(array_of(UUID), default_factory=list, since=2, ignorable=True)
    previous_broker_epoch: int = wire(INT64, default=-1, since=3, ignorable=True)


@message(api_key=62, versions=(0, 4), flexible_since=0)
class BrokerRegistrationResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    broker_epoch: int = wire(INT64, default=-1)
