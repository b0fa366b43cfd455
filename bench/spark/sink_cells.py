"""Rows to topics: Spark's own Kafka sink and Runnel's, and what exactly once costs."""

import os

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.model import Measure
from bench.spark.data import LARGE, PARTITIONS, SMALL
from bench.spark.model import FORMATS, RUNNEL, Cell, Stage, timed

ROWS_PER_S = "rows/s"
SHARE = 5  # of the records that a scan reads: writing them takes about as long
SIZES = {SMALL: 100, LARGE: 1024}


def _rows(stage: Stage, what: str) -> int:
    scale = stage.scale
    return (scale.small_records if what == SMALL else scale.large_records) // SHARE


def _new_topic(stage: Stage) -> str:
    name = f"bench-sink-{os.urandom(4).hex()}"
    admin = AdminClient({"bootstrap.servers": stage.broker.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
    return name


def written(stage: Stage, target: str, what: str, **options: str) -> float:
    """Rows per second, acknowledged by the broker when the write returns."""
    count, topic = _rows(stage, what), _new_topic(stage)
    rows = stage.spark.range(count, numPartitions=2).selectExpr(
        "cast(id AS string) AS key", f"lpad(cast(id AS string), {SIZES[what]}, 'x') AS value"
    )
    writer = rows.write.format(FORMATS[target]).option("topic", topic)
    writer = writer.option("kafka.bootstrap.servers", stage.broker.bootstrap).options(**options)
    with timed() as seconds:
        writer.mode("append").save()
    return count / seconds[0]


def _sink(what: str) -> Cell:
    def run(stage: Stage, target: str) -> float:
        return written(stage, target, what)

    return Cell(Measure(f"rows to a topic, {what}", ROWS_PER_S), run)


def _exactly_once(stage: Stage, target: str) -> float:
    """The connector has no such thing: its figure is that of at least once."""
    if target != RUNNEL:
        return written(stage, target, SMALL)
    return written(stage, target, SMALL, exactlyOnce="true", queryId=f"q{os.urandom(4).hex()}")


SINK_CELLS: tuple[Cell, ...] = (
    _sink(SMALL),
    _sink(LARGE),
    Cell(Measure("rows to a topic exactly once, 100 B", ROWS_PER_S), _exactly_once),
)
