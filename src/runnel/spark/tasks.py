"""The task that this process works on: how it begins, and which it is, as Spark tells it.

A writer is not told its batch (trap 7 of the Python data source API): the number is among the
local properties of the task, where Spark's own Kafka source finds it, too.
"""

import gc
import os
from itertools import count
from typing import Final, NamedTuple

from runnel.arrow.memory import keep_freed

BATCH_ID: Final = "streaming.sql.batchId"
QUERY_ID: Final = "sql.streaming.queryId"
REUSED: Final = "SPARK_REUSE_WORKER"  # set by Spark where a process has task after task
_begun: Final = count(1)


class Task(NamedTuple):
    partition: int = 0
    attempt: int = 0  # no two tasks of a session have the same
    batch_id: int | None = None  # of a stream
    query: str = ""  # the id in the checkpoint: with another checkpoint batches are counted anew


def settle() -> None:
    """At the start of every task: this process will have many.

    After each one Spark's daemon collects garbage, and walks through all that modules have made:
    90,000 objects, 17 ms, before the process takes its next task. With the second task all of them
    are there; from then on they are left alone.
    """
    keep_freed()
    if next(_begun) == 2 and REUSED in os.environ:
        gc.freeze()


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
