"""Which task of which batch this process works on, as Spark tells it.

A writer is not told its batch (trap 7 of the Python data source API): the number is among the
local properties of the task, where Spark's own Kafka source finds it, too.
"""

from typing import Final, NamedTuple

BATCH_ID: Final = "streaming.sql.batchId"
QUERY_ID: Final = "sql.streaming.queryId"


class Task(NamedTuple):
    partition: int = 0
    attempt: int = 0  # no two tasks of a session have the same
    batch_id: int | None = None  # of a stream
    query: str = ""  # the id in the checkpoint: with another checkpoint batches are counted anew


def this_task() -> Task:
    """A task without numbers where there is none: in tests, and on the driver."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return Task()
    batch_id = context.getLocalProperty(BATCH_ID)
    return Task(
        context.partitionId(),
        context.taskAttemptId(),
        None if batch_id is None else int(batch_id),
        context.getLocalProperty(QUERY_ID) or "",
    )
