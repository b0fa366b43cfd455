"""SaslHandshake (key 17), versions 0-1, never flexible.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    STRING,
    array_of,
    message,
    wire,
)


@message(api_key=17, versions=(0, 1))
class SaslHandshakeRequest:
    mechanism: str = wire(STRING, default="")


@message(api_key=17, versions=(0, 1))
class SaslHandshakeResponse:
    error_code: int = wire(INT16, default=0)
    mechanisms: list[str] = wire(array_of(STRING), default_factory=list)
