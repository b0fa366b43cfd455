"""ControlRecordTypeSchema, version 0, never flexible.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    message,
    wire,
)


@message(versions=(0, 0))
class ControlRecordTypeSchema:
    type: int = wire(INT16, default=0)
