"""AlterPartition (key 56), versions 2-3, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    INT8,
    UUID,
    array_of,
    message,
    struct,
    wire,
)


@struct
class BrokerState:
    broker_id: int = wire(INT32, default=0, since=3)
    broker_epoch: int = wire(INT64, default=-1, since=3)


@struct
class AlterPartitionRequestPartitionData:
    partition_index: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=0)
    new_isr: list[int] = wire(array_of(INT32), default_factory=list, until=2)
    new_isr_with_epochs: list[BrokerState] = wire(
        array_of(BrokerState), default_factory=list, since=3
    )
    leader_recovery_state: int = wire(INT8, default=0)
    partition_epoch: int = wire(INT32, default=0)


@struct
class AlterPartitionRequestTopicData:
    topic_id: bytes = wire(UUID, default=NO_UUID, ignorable=True)
    partitions: list[AlterPartitionRequestPartitionData] = wire(
        array_of(AlterPartitionRequestPartitionData), default_factory=list
    )


@message(api_key=56, versions=(2, 3), flexible_since=0)
class AlterPartitionRequest:
    broker_id: int = wire(INT32, default=0)
    broker_epoch: int = wire(INT64, default=-1)
    topics: list[AlterPartitionRequestTopicData] = wire(
        array_of(AlterPartitionRequestTopicData), default_factory=list
    )


@struct
class AlterPartitionResponsePartitionData:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    leader_id: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=0)
    isr: list[int] = wire(array_of(INT32), default_factory=list)
    leader_recovery_state: int = wire(INT8, default=0, ignorable=True)
    partition_epoch: int = wire(INT32, default=0)


@struct
class AlterPartitionResponseTopicData:
    topic_id: bytes = wire(UUID, default=NO_UUID, ignorable=True)
    partitions: list[AlterPartitionResponsePartitionData] = wire(
        array_of(AlterPartitionResponsePartitionData), default_factory=list
    )


@message(api_key=56, versions=(2, 3), flexible_since=0)
class AlterPartitionResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    topics: list[AlterPartitionResponseTopicData] = wire(
        array_of(AlterPartitionResponseTopicData), default_factory=list
    )
