"""Which batch of which query a task works on, as Spark tells tasks and nobody else.

`write` and `read` are given neither; both stand among the task's properties, the query as the
identity that Spark gave its checkpoint.
"""

from typing import Final, NamedTuple

from runnel.spark.lake_options import TableError
from runnel.spark.lake_table import Query

_BATCH_ID: Final = "streaming.sql.batchId"
_CHECKPOINT_ID: Final = "sql.streaming.queryId"


class Task(NamedTuple):
    query: Query
    batch: int
    number: int  # of the partition


def this_task(query_id: str | None) -> Task:
    """In a task of a stream. `query_id` is the user's own name for the query, if there is one."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "called in a task"
    batch = context.getLocalProperty(_BATCH_ID)
    checkpoint = context.getLocalProperty(_CHECKPOINT_ID)
    if batch is None or checkpoint is None:
        raise TableError(
            "this Spark does not tell tasks which batch they work on, and without that a repeated"
            " batch could not be seen; PySpark 4.1 and later do"
        )
    return Task(Query(query_id or checkpoint, checkpoint), int(batch), context.partitionId())
