"""SnapshotHeaderRecord, version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT64,
    message,
    wire,
)


@message(versions=(0, 0), flexible_since=0)
class SnapshotHeaderRecord:
    version: int = wire(INT16, default=0)
    last_contained_log_timestamp: int = wire(INT64, default=0)
