"""EndTxnMarker, version 0, never flexible.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT32,
    message,
    wire,
)


@message(versions=(0, 0))
class EndTxnMarker:
    coordinator_epoch: int = wire(INT32, default=0)
