"""AlterReplicaLogDirs (key 34), versions 1-2, flexible from 2.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    STRING,
    array_of,
    message,
    struct,
    wire,
)


@struct
class AlterReplicaLogDirTopic:
    name: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class AlterReplicaLogDir:
    path: str = wire(STRING, default="")
    topics: list[AlterReplicaLogDirTopic] = wire(
        array_of(AlterReplicaLogDirTopic), default_factory=list
    )


@message(api_key=34, versions=(1, 2), flexible_since=2)
class AlterReplicaLogDirsRequest:
    dirs: list[AlterReplicaLogDir] = wire(array_of(AlterReplicaLogDir), default_factory=list)


@struct
class AlterReplicaLogDirPartitionResult:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: str = wire(STRING, default="")
    partitions: list[AlterReplicaLogDirPartitionResult] = wire(
        array_of(AlterReplicaLogDirPartitionResult), default_factory=list
    )


@message(api_key=34, versions=(1, 2), flexible_since=2)
class AlterReplicaLogDirsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    results: list[AlterReplicaLogDirTopicResult] = wire(
        array_of(AlterReplicaLogDirTopicResult), default_factory=list
    )
