"""StreamsGroupHeartbeat (key 88), version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    INT8,
    STRING,
    UINT16,
    array_of,
    frozen_struct,
    message,
    nullable,
    struct,
    struct_of,
    wire,
)


@struct
class KeyValue:
    key: str = wire(STRING, default="")
    value: str = wire(STRING, default="")


@struct
class TopicInfo:
    name: str = wire(STRING, default="")
    partitions: int = wire(INT32, default=0)
    replication_factor: int = wire(INT16, default=0)
    topic_configs: list[KeyValue] = wire(array_of(KeyValue), default_factory=list)


@struct
class CopartitionGroup:
    source_topics: list[int] = wire(array_of(INT16), default_factory=list)
    source_topic_regex: list[int] = wire(array_of(INT16), default_factory=list)
    repartition_source_topics: list[int] = wire(array_of(INT16), default_factory=list)


@struct
class Subtopology:
    subtopology_id: str = wire(STRING, default="")
    source_topics: list[str] = wire(array_of(STRING), default_factory=list)
    source_topic_regex: list[str] = wire(array_of(STRING), default_factory=list)
    state_changelog_topics: list[TopicInfo] = wire(array_of(TopicInfo), default_factory=list)
    repartition_sink_topics: list[str] = wire(array_of(STRING), default_factory=list)
    repartition_source_topics: list[TopicInfo] = wire(array_of(TopicInfo), default_factory=list)
    copartition_groups: list[CopartitionGroup] = wire(
        array_of(CopartitionGroup), default_factory=list
    )


@struct
class Topology:
    epoch: int = wire(INT32, default=0)
    subtopologies: list[Subtopology] = wire(array_of(Subtopology), default_factory=list)


@struct
class StreamsGroupHeartbeatRequestTaskIds:
    subtopology_id: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class StreamsGroupHeartbeatRequestEndpoint:
    host: str = wire(STRING, default="")
    port: int = wire(UINT16, default=0)


@struct
class TaskOffset:
    subtopology_id: str = wire(STRING, default="")
    partition: int = wire(INT32, default=0)
    offset: int = wire(INT64, default=0)


@message(api_key=88, versions=(0, 0), flexible_since=0)
class StreamsGroupHeartbeatRequest:
    group_id: str = wire(STRING, default="")
    member_id: str = wire(STRING, default="")
    member_epoch: int = wire(INT32, default=0)
    endpoint_information_epoch: int = wire(INT32, default=0)
    instance_id: str | None = wire(nullable(STRING), default=None)
    rack_id: str | None = wire(nullable(STRING), default=None)
    rebalance_timeout_ms: int = wire(INT32, default=-1)
    topology: Topology | None = wire(nullable(struct_of(Topology)), default=None)
    active_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = wire(
        nullable(array_of(StreamsGroupHeartbeatRequestTaskIds)), default=None
    )
    standby_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = wire(
        nullable(array_of(StreamsGroupHeartbeatRequestTaskIds)), default=None
    )
    warmup_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = wire(
        nullable(array_of(StreamsGroupHeartbeatRequestTaskIds)), default=None
    )
    process_id: str | None = wire(nullable(STRING), default=None)
    user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = wire(
        nullable(struct_of(StreamsGroupHeartbeatRequestEndpoint)), default=None
    )
    client_tags: list[KeyValue] | None = wire(nullable(array_of(KeyValue)), default=None)
    task_offsets: list[TaskOffset] | None = wire(nullable(array_of(TaskOffset)), default=None)
    task_end_offsets: list[TaskOffset] | None = wire(nullable(array_of(TaskOffset)), default=None)
    shutdown_application: bool = wire(BOOL, default=False)


@struct
class Status:
    status_code: int = wire(INT8, default=0)
    status_detail: str = wire(STRING, default="")


@struct
class StreamsGroupHeartbeatResponseTaskIds:
    subtopology_id: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@frozen_struct
class StreamsGroupHeartbeatResponseEndpoint:
    host: str = wire(STRING, default="")
    port: int = wire(UINT16, default=0)


@struct
class TopicPartition:
    topic: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class EndpointToPartitions:
    user_endpoint: StreamsGroupHeartbeatResponseEndpoint = wire(
        struct_of(StreamsGroupHeartbeatResponseEndpoint),
        default=StreamsGroupHeartbeatResponseEndpoint(),
    )
    active_partitions: list[TopicPartition] = wire(array_of(TopicPartition), default_factory=list)
    standby_partitions: list[TopicPartition] = wire(array_of(TopicPartition), default_factory=list)


@message(api_key=88, versions=(0, 0), flexible_since=0)
class StreamsGroupHeartbeatResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    member_id: str = wire(STRING, default="")
    member_epoch: int = wire(INT32, default=0)
    heartbeat_interval_ms: int = wire(INT32, default=0)
    acceptable_recovery_lag: int = wire(INT32, default=0)
    task_offset_interval_ms: int = wire(INT32, default=0)
    status: list[Status] | None = wire(nullable(array_of(Status)), default_factory=list)
    active_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = wire(
        nullable(array_of(StreamsGroupHeartbeatResponseTaskIds)), default=None
    )
    standby_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = wire(
        nullable(array_of(StreamsGroupHeartbeatResponseTaskIds)), default=None
    )
    warmup_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = wire(
        nullable(array_of(StreamsGroupHeartbeatResponseTaskIds)), default=None
    )
    endpoint_information_epoch: int = wire(INT32, default=0)
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = wire(
        nullable(array_of(EndpointToPartitions)), default=None
    )
