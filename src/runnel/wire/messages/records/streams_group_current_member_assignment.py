"""StreamsGroupCurrentMemberAssignment (key 22); value: version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT32,
    INT8,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@message(api_key=22, versions=(0, 0))
class StreamsGroupCurrentMemberAssignmentKey:
    group_id: str = wire(STRING, default="")
    member_id: str = wire(STRING, default="")


@struct
class TaskIds:
    subtopology_id: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)
    assignment_epochs: list[int] | None = wire(
        nullable(array_of(INT32)), default_factory=list, tag=0
    )


@message(api_key=22, versions=(0, 0), flexible_since=0)
class StreamsGroupCurrentMemberAssignmentValue:
    member_epoch: int = wire(INT32, default=0)
    previous_member_epoch: int = wire(INT32, default=0)
    state: int = wire(INT8, default=0)
    active_tasks: list[TaskIds] = wire(array_of(TaskIds), default_factory=list)
    standby_tasks: list[TaskIds] = wire(array_of(TaskIds), default_factory=list)
    warmup_tasks: list[TaskIds] = wire(array_of(TaskIds), default_factory=list)
    active_tasks_pending_revocation: list[TaskIds] = wire(array_of(TaskIds), default_factory=list)
    standby_tasks_pending_revocation: list[TaskIds] = wire(array_of(TaskIds), default_factory=list)
    warmup_tasks_pending_revocation: list[TaskIds] = wire(array_of(TaskIds), default_factory=list)
