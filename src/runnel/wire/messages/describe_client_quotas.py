"""DescribeClientQuotas (key 48), versions 0-1, flexible from 1.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    FLOAT64,
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


@struct
class ComponentData:
    entity_type: str = wire(STRING, default="")
    match_type: int = wire(INT8, default=0)
    match: str | None = wire(nullable(STRING), default="")


@message(api_key=48, versions=(0, 1), flexible_since=1)
class DescribeClientQuotasRequest:
    components: list[ComponentData] = wire(array_of(ComponentData), default_factory=list)
    strict: bool = wire(BOOL, default=False)


@struct
class EntityData:
    entity_type: str = wire(STRING, default="")
    entity_name: str | None = wire(nullable(STRING), default="")


@struct
class ValueData:
    key: str = wire(STRING, default="")
    value: float = wire(FLOAT64, default=0.0)


@struct
class EntryData:
    entity: list[EntityData] = wire(array_of(EntityData), default_factory=list)
    values: list[ValueData] = wire(array_of(ValueData), default_factory=list)


@message(api_key=48, versions=(0, 1), flexible_since=1)
class DescribeClientQuotasResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
    entries: list[EntryData] | None = wire(nullable(array_of(EntryData)), default_factory=list)
