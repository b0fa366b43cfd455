"""ElectLeaders (key 43), versions 0-2, flexible from 2.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    INT8,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class TopicPartitions:
    topic: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@message(api_key=43, versions=(0, 2), flexible_since=2)
class ElectLeadersRequest:
    election_type: int = wire(INT8, default=0, since=1)
    topic_partitions: list[TopicPartitions] | None = wire(
        nullable(array_of(TopicPartitions)), default_factory=list
    )
    timeout_ms: int = wire(INT32, default=60000)


@struct
class PartitionResult:
    partition_id: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")


@struct
class ReplicaElectionResult:
    topic: str = wire(STRING, default="")
    partition_result: list[PartitionResult] = wire(array_of(PartitionResult), default_factory=list)


@message(api_key=43, versions=(0, 2), flexible_since=2)
class ElectLeadersResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0, since=1)
    replica_election_results: list[ReplicaElectionResult] = wire(
        array_of(ReplicaElectionResult), default_factory=list
    )
