"""CreateTopics (key 19), versions 2-7, flexible from 5.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT8,
    STRING,
    UUID,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class CreatableReplicaAssignment:
    partition_index: int = wire(INT32, default=0)
    broker_ids: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class CreatableTopicConfig:
    name: str = wire(STRING, default="")
    value: str | None = wire(nullable(STRING), default="")


@struct
class CreatableTopic:
    name: str = wire(STRING, default="")
    num_partitions: int = wire(INT32, default=0)
    replication_factor: int = wire(INT16, default=0)
    assignments: list[CreatableReplicaAssignment] = wire(
        array_of(CreatableReplicaAssignment), default_factory=list
    )
    configs: list[CreatableTopicConfig] = wire(array_of(CreatableTopicConfig), default_factory=list)


@message(api_key=19, versions=(2, 7), flexible_since=5)
class CreateTopicsRequest:
    topics: list[CreatableTopic] = wire(array_of(CreatableTopic), default_factory=list)
    timeout_ms: int = wire(INT32, default=60000)
    validate_only: bool = wire(BOOL, default=False)


@struct
class CreatableTopicConfigs:
    name: str = wire(STRING, default="", since=5)
    value: str | None = wire(nullable(STRING), default="", since=5)
    read_only: bool = wire(BOOL, default=False, since=5)
    config_source: int = wire(INT8, default=-1, since=5, ignorable=True)
    is_sensitive: bool = wire(BOOL, default=False, since=5)


@struct
class CreatableTopicResult:
    name: str = wire(STRING, default="")
    topic_id: bytes = wire(UUID, default=NO_UUID, since=7, ignorable=True)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="", ignorable=True)
    topic_config_error_code: int = wire(INT16, default=0, since=5, tag=0, ignorable=True)
    num_partitions: int = wire(INT32, default=-1, since=5, ignorable=True)
    replication_factor: int = wire(INT16, default=-1, since=5, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = wire(
        nullable(array_of(CreatableTopicConfigs)), default_factory=list, since=5, ignorable=True
    )


@message(api_key=19, versions=(2, 7), flexible_since=5)
class CreateTopicsResponse:
    throttle_time_ms: int = wire(INT32, default=0, ignorable=True)
    topics: list[CreatableTopicResult] = wire(array_of(CreatableTopicResult), default_factory=list)
