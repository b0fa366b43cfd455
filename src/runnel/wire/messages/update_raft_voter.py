"""UpdateRaftVoter (key 82), version 0, flexible from 0.

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
    nullable,
    struct,
    struct_of,
    wire,
)


@struct
class Listener:
    name: str = wire(STRING, default="")
    host: str = wire(STRING, default="")
    port: int = wire(UINT16, default=0)


@frozen_struct
class KRaftVersionFeature:
    min_supported_version: int = wire(INT16, default=0)
    max_supported_version: int = wire(INT16, default=0)


@message(api_key=82, versions=(0, 0), flexible_since=0)
class UpdateRaftVoterRequest:
    cluster_id: str | None = wire(nullable(STRING), default="")
    current_leader_epoch: int = wire(INT32, default=0)
    voter_id: int = wire(INT32, default=0)
    voter_directory_id: bytes = wire(UUID, default=NO_UUID)
    listeners: list[Listener] = wire(array_of(Listener), default_factory=list)
    k_raft_version_feature: KRaftVersionFeature = wire(
        struct_of(KRaftVersionFeature), default=KRaftVersionFeature()
    )


@frozen_struct
class CurrentLeader:
    leader_id: int = wire(INT32, default=-1)
    leader_epoch: int = wire(INT32, default=-1)
    host: str = wire(STRING, default="")
    port: int = wire(INT32, default=0)


@message(api_key=82, versions=(0, 0), flexible_since=0)
class UpdateRaftVoterResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    current_leader: CurrentLeader = wire(struct_of(CurrentLeader), default=CurrentLeader(), tag=0)
