"""FindCoordinator (key 10), versions 0-6, flexible from 3.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    INT8,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@message(api_key=10, versions=(0, 6), flexible_since=3)
class FindCoordinatorRequest:
    key: str = wire(STRING, default="", until=3)
    key_type: int = wire(INT8, default=0, since=1)
    coordinator_keys: list[str] = wire(array_of(STRING), default_factory=list, since=4)


@struct
class Coordinator:
    key: str = wire(STRING, default="", since=4)
    node_id: int = wire(INT32, default=0, since=4)
    host: str = wire(STRING, default="", since=4)
    port: int = wire(INT32, default=0, since=4)
    error_code: int = wire(INT16, default=0, since=4)
    error_message: str | None = wire(nullable(STRING), default="", since=4, ignorable=True)


@message(api_key=10, versions=(0, 6), flexible_since=3)
class FindCoordinatorResponse:
    throttle_time_ms: int = wire(INT32, default=0, since=1, ignorable=True)
    error_code: int = wire(INT16, default=0, until=3)
    error_message: str | None = wire(
        nullable(STRING, until=3), default="", since=1, until=3, ignorable=True
    )
    node_id: int = wire(INT32, default=0, until=3)
    host: str = wire(STRING, default="", until=3)
    port: int = wire(INT32, default=0, until=3)
    coordinators: list[Coordinator] = wire(array_of(Coordinator), default_factory=list, since=4)
