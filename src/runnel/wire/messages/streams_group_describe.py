"""StreamsGroupDescribe (key 89), version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    array_of,
    message,
    nullable,
    struct,
    struct_of,
    wire,
)


@message(api_key=89, versions=(0, 0), flexible_since=0)
class StreamsGroupDescribeRequest:
    group_ids: list[str] = wire(array_of(STRING), default_factory=list)
    include_authorized_operations: bool = wire(BOOL, default=False)


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
class Subtopology:
    subtopology_id: str = wire(STRING, default="")
    source_topics: list[str] = wire(array_of(STRING), default_factory=list)
    repartition_sink_topics: list[str] = wire(array_of(STRING), default_factory=list)
    state_changelog_topics: list[TopicInfo] = wire(array_of(TopicInfo), default_factory=list)
    repartition_source_topics: list[TopicInfo] = wire(array_of(TopicInfo), default_factory=list)


@struct
class Topology:
    epoch: int = wire(INT32, default=0)
    subtopologies: list[Subtopology] | None = wire(nullable(array_of(Subtopology)), default=None)


@struct
class Endpoint:
    host: str = wire(STRING, default="")
    port: int = wire(UINT16, default=0)


@struct
class TaskOffset:
    subtopology_id: str = wire(STRING, default="")
    partition: int = wire(INT32, default=0)
    offset: int = wire(INT64, default=0)


@struct
class TaskIds:
    subtopology_id: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class Assignment:
    active_tasks: list[TaskIds] = wire(array_of(TaskIds), default_factory=list)
    standby_tasks: list[TaskIds] = wire(array_of(TaskIds), default_factory=list)
    warmup_tasks: list[TaskIds] = wire(array_of(TaskIds), default_factory=list)


@struct
class Member:
    member_id: str = wire(STRING, default="")
    member_epoch: int = wire(INT32, default=0)
    instance_id: str | None = wire(nullable(STRING), default=None)
    rack_id: str | None = wire(nullable(STRING), default=None)
    client_id: str = wire(STRING, default="")
    client_host: str = wire(STRING, default="")
    topology_epoch: int = wire(INT32, default=0)
    process_id: str = wire(STRING, default="")
    user_endpoint: Endpoint | None = wire(nullable(struct_of(Endpoint)), default=None)
    client_tags: list[KeyValue] = wire(array_of(KeyValue), default_factory=list)
    task_offsets: list[TaskOffset] = wire(array_of(TaskOffset), default_factory=list)
    task_end_offsets: list[TaskOffset] = wire(array_of(TaskOffset), default_factory=list)
    assignment: Assignment = wire(struct_of(Assignment), default_factory=Assignment)
    target_assignment: Assignment = wire(struct_of(Assignment), default_factory=Assignment)
    is_classic: bool = wire(BOOL, default=False)


@struct
class DescribedGroup:
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    group_id: str = wire(STRING, default="")
    group_state: str = wire(STRING, default="")
    group_epoch: int = wire(INT32, default=0)
    assignment_epoch: int = wire(INT32, default=0)
    topology: Topology | None = wire(nullable(struct_of(Topology)), default=None)
    members: list[Member] = wire(array_of(Member), default_factory=list)
    authorized_operations: int = wire(INT32, default=-2147483648)


@message(api_key=89, versions=(0, 0), flexible_since=0)
class StreamsGroupDescribeResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    groups: list[DescribedGroup] = wire(array_of(DescribedGroup), default_factory=list)
