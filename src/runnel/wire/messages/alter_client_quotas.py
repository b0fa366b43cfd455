"""AlterClientQuotas (key 49), versions 0-1, flexible from 1.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    FLOAT64,
    INT16,
    INT32,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class AlterClientQuotasRequestEntityData:
    entity_type: str = wire(STRING, default="")
    entity_name: str | None = wire(nullable(STRING), default="")


@struct
class OpData:
    key: str = wire(STRING, default="")
    value: float = wire(FLOAT64, default=0.0)
    remove: bool = wire(BOOL, default=False)


@struct
class AlterClientQuotasRequestEntryData:
    entity: list[AlterClientQuotasRequestEntityData] = wire(
        array_of(AlterClientQuotasRequestEntityData), default_factory=list
    )
    ops: list[OpData] = wire(array_of(OpData), default_factory=list)


@message(api_key=49, versions=(0, 1), flexible_since=1)
class AlterClientQuotasRequest:
    entries: list[AlterClientQuotasRequestEntryData] = wire(
        array_of(AlterClientQuotasRequestEntryData), default_factory=list
    )
    validate_only: bool = wire(BOOL, default=False)


@struct
class AlterClientQuotasResponseEntityData:
    entity_type: str = wire(STRING, default="")
    entity_name: str | None = wire(nullable(STRING), default="")


@struct
class AlterClientQuotasResponseEntryData:
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
    entity: list[AlterClientQuotasResponseEntityData] = wire(
        array_of(AlterClientQuotasResponseEntityData), default_factory=list
    )


@message(api_key=49, versions=(0, 1), flexible_since=1)
class AlterClientQuotasResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    entries: list[AlterClientQuotasResponseEntryData] = wire(
        array_of(AlterClientQuotasResponseEntryData), default_factory=list
    )
