"""DescribeLogDirs (key 35, v1-v5) and AlterReplicaLogDirs (key 34, v1-v2): the data folders.

Version notes: DescribeLogDirs v3 has an error for the whole, v4 tells the space of the disk, v5
whether a folder takes no new partitions, which none of ours does. AlterReplicaLogDirs answers when
a move has begun; DescribeLogDirs shows it as a future replica until it is over.
"""

from pathlib import Path

from runnel.broker.context import RequestContext, Services
from runnel.broker.log_dirs import LogDir
from runnel.cluster.topic_names import ensure_legal
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.store_state import MEMORY_FOLDER
from runnel.types import TopicPartition
from runnel.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from runnel.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


async def describe_log_dirs(
    context: RequestContext, services: Services, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    asked = None if request.topics is None else _asked(request.topics)
    return DescribeLogDirsResponse(
        results=[
            _result(each, asked, is_cordoned=each.path in services.settings.cordoned_log_dirs)
            for each in await services.log_dirs.describe()
        ]
    )


def _absolute(path: str) -> str:
    return str(Path(path).absolute())


def _asked(topics: list[DescribableLogDirTopic]) -> set[tuple[str, int]]:
    return {(topic.topic, index) for topic in topics for index in topic.partitions}


def _result(
    found: LogDir, asked: set[tuple[str, int]] | None, *, is_cordoned: bool
) -> DescribeLogDirsResult:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for (topic, index), size_bytes, offset_lag, is_future in found.replicas:
        if asked is None or (topic, index) in asked:
            named = topics.setdefault(topic, DescribeLogDirsTopic(name=topic))
            named.partitions.append(
                DescribeLogDirsPartition(
                    partition_index=index,
                    partition_size=size_bytes,
                    offset_lag=offset_lag,
                    is_future_key=is_future,
                )
            )
    return DescribeLogDirsResult(
        error_code=found.error,
        log_dir=found.path if found.path == MEMORY_FOLDER else _absolute(found.path),
        topics=list(topics.values()),
        total_bytes=found.space.total_bytes,
        usable_bytes=found.space.usable_bytes,
        is_cordoned=is_cordoned,
    )


def alter_replica_log_dirs(
    context: RequestContext, services: Services, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    paths = {_absolute(path): path for path in services.log_dirs.paths}
    results: dict[str, dict[int, int]] = {}
    for target in request.dirs:
        for topic in target.topics:
            for index in topic.partitions:
                path = paths.get(target.path)  # as DescribeLogDirs tells it, absolute
                code = _move(services, TopicPartition(topic.name, index), path)
                results.setdefault(topic.name, {})[index] = code
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    for index, code in codes.items()
                ],
            )
            for name, codes in results.items()
        ]
    )


def _move(services: Services, partition: TopicPartition, path: str | None) -> int:
    try:
        ensure_legal(partition.topic)
        if path is None:
            raise RunnelError(ErrorCode.LOG_DIR_NOT_FOUND, "no such folder")
        services.log_dirs.move(partition, path)
    except RunnelError as error:
        return error.code
    return 0
