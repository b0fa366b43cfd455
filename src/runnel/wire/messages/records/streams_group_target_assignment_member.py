"""StreamsGroupTargetAssignmentMember (key 21); value: version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT32,
    STRING,
    array_of,
    message,
    struct,
    wire,
)


@message(api_key=21, versions=(0, 0))
class StreamsGroupTargetAssignmentMemberKey:
    group_id: str = wire(STRING, default="")
    member_id: str = wire(STRING, default="")


@struct
class TaskIds:
    subtopology_id: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@message(api_key=21, versions=(0, 0), flexible_since=0)
class StreamsGroupTargetAssignmentMemberValue:
    active_tasks: list[TaskIds] = wire(array_of(TaskIds), default_factory=list)
    standby_tasks: list[TaskIds] = wire(array_of(TaskIds), default_factory=list)
    warmup_tasks: list[TaskIds] = wire(array_of(TaskIds), default_factory=list)
