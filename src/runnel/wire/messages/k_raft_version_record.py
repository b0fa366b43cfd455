"""KRaftVersionRecord, version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    message,
    wire,
)


@message(versions=(0, 0), flexible_since=0)
class KRaftVersionRecord:
    version: int = wire(INT16, default=0)
    k_raft_version: int = wire(INT16, default=0)
