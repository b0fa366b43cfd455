"""VotersRecord, version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
    STRING,
    UINT16,
    UUID,
    array_of,
    frozen_struct,
    message,
    struct,
    struct_of,
    wire,
)


@struct
class Endpoint:
    name: str = wire(STRING, default="")
    host: str = wire(STRING, default="")
    port: int = wire(UINT16, default=0)


@frozen_struct
class KRaftVersionFeature:
    min_supported_version: int = wire(INT16, default=0)
    max_supported_version: int = wire(INT16, default=0)


@struct
class Voter:
    voter_id: int = wire(INT32, default=0)
    voter_directory_id: bytes = wire(UUID, default=NO_UUID)
    endpoints: list[Endpoint] = wire(array_of(Endpoint), default_factory=list)
    k_raft_version_feature: KRaftVersionFeature = wire(
        struct_of(KRaftVersionFeature), default=KRaftVersionFeature()
    )


@message(versions=(0, 0), flexible_since=0)
class VotersRecord:
    version: int = wire(INT16, default=0)
    voters: list[Voter] = wire(array_of(Voter), default_factory=list)
