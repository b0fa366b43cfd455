"""ConsumerGroupRegularExpression (key 16); value: version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT64,
    STRING,
    array_of,
    message,
    wire,
)


@message(api_key=16, versions=(0, 0))
class ConsumerGroupRegularExpressionKey:
    group_id: str = wire(STRING, default="")
    regular_expression: str = wire(STRING, default="")


@message(api_key=16, versions=(0, 0), flexible_since=0)
class ConsumerGroupRegularExpressionValue:
    topics: list[str] = wire(array_of(STRING), default_factory=list)
    version: int = wire(INT64, default=0)
    timestamp: int = wire(INT64, default=0)
