"""AssignReplicasToDirs (key 73), version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    UUID,
    array_of,
    message,
    struct,
    wire,
)


@struct
class AssignReplicasToDirsRequestPartitionData:
    partition_index: int = wire(INT32, default=0)


@struct
class AssignReplicasToDirsRequestTopicData:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[AssignReplicasToDirsRequestPartitionData] = wire(
        array_of(AssignReplicasToDirsRequestPartitionData), default_factory=list
    )


@struct
class AssignReplicasToDirsRequestDirectoryData:
    id: bytes = wire(UUID, default=NO_UUID)
    topics: list[AssignReplicasToDirsRequestTopicData] = wire(
        array_of(AssignReplicasToDirsRequestTopicData), default_factory=list
    )


@message(api_key=73, versions=(0, 0), flexible_since=0)
class AssignReplicasToDirsRequest:
    broker_id: int = wire(INT32, default=0)
    broker_epoch: int = wire(INT64, default=-1)
    directories: list[AssignReplicasToDirsRequestDirectoryData] = wire(
        array_of(AssignReplicasToDirsRequestDirectoryData), default_factory=list
    )


@struct
class AssignReplicasToDirsResponsePartitionData:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)


@struct
class AssignReplicasToDirsResponseTopicData:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[AssignReplicasToDirsResponsePartitionData] = wire(
        array_of(AssignReplicasToDirsResponsePartitionData), default_factory=list
    )


@struct
class AssignReplicasToDirsResponseDirectoryData:
    id: bytes = wire(UUID, default=NO_UUID)
    topics: list[AssignReplicasToDirsResponseTopicData] = wire(
        array_of(AssignReplicasToDirsResponseTopicData), default_factory=list
    )


@message(api_key=73, versions=(0, 0), flexible_since=0)
class AssignReplicasToDirsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    directories: list[AssignReplicasToDirsResponseDirectoryData] = wire(
        array_of(AssignReplicasToDirsResponseDirectoryData), default_factory=list
    )
