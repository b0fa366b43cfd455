"""DefaultPrincipalData, version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    STRING,
    message,
    wire,
)


@message(versions=(0, 0), flexible_since=0)
class DefaultPrincipalData:
    type: str = wire(STRING, default="")
    name: str = wire(STRING, default="")
    token_authenticated: bool = wire(BOOL, default=False)
