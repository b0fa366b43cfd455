"""Which batch of which query a task works on, as Spark tells tasks and nobody else.

`write` and `read` are given neither; both stand among the task's properties, the query as the
identity that Spark gave its checkpoint.
"""

from typing import NamedTuple

from runnel.spark import tasks
from runnel.spark.lake.lake_options import TableError
from runnel.spark.lake.lake_table import Query


class Task(NamedTuple):
    query: Query
    batch: int
    number: int  # of the partition


def this_task(query_id: str | None) -> Task:
    """In a task of a stream. `query_id` is the user's own name for the query, if there is one."""
    task = tasks.this_task()
    if task.batch_id is None or not task.query:
        raise TableError(
            "this Spark does not tell tasks which batch they work on, and without that a repeated"
            " batch could not be seen; PySpark 4.1 and later do"
        )
    return Task(Query(query_id or task.query, task.query), task.batch_id, task.partition)
