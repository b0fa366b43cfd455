"""What the benchmark of Spark is made of: a stage with two readers, cells that measure them.

The reference is Spark's own Kafka connector (`connector`), the subject is Runnel's source
(`runnel`). Both run in one Spark session and read the same topics of the same broker.
"""

import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.model import Measure
from tests.support.process import BrokerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

CONNECTOR, RUNNEL = "connector", "runnel"
TARGETS = (CONNECTOR, RUNNEL)
FORMATS = {CONNECTOR: "kafka", RUNNEL: "runnel"}


class Scale(NamedTuple):
    """How much a cell reads; a full run takes more than five seconds for each reader and cell."""

    small_records: int = 25_000_000  # of 100 B
    day_records: int = 25_000_000  # of 100 B, of which an hour is read: never fewer, see `data`
    large_records: int = 8_000_000  # of 1 KiB
    json_records: int = 10_000_000
    table_records: int = 10_000_000  # that go to a table
    latency_s: float = 30.0
    planned_batches: int = 30
    freshness_s: float = 60.0
    compacted_bytes: int = 1_200_000_000
    counted_records: int = 10_000_000  # of 100 B, by SQL
    times_records: int = 9_700_000  # of 1 KiB: 10 GB, of which SQL reads an hour


QUICK = Scale(6_000_000, 25_000_000, 2_000_000, 3_000_000, 3_000_000, 15.0, 15, 20.0, 512 << 20)


class Topic(NamedTuple):
    name: str
    records: int
    first_ms: int  # the timestamp of the first record
    span_ms: int  # from there to the last


@dataclass
class Stage:
    spark: "SparkSession"
    broker: BrokerProcess
    folder: Path  # for what cells write
    scale: Scale
    topics: dict[str, Topic] = field(default_factory=dict)  # by what they hold

    def read(
        self, target: str, topic: Topic, *, schema: str = "", **options: object
    ) -> "DataFrame":
        """Options of `**` with `_` for `.`; `schema` is for Runnel alone, which prunes by it."""
        reader = self.spark.read.format(FORMATS[target]).option("subscribe", topic.name)
        reader = reader.option("kafka.bootstrap.servers", self.broker.bootstrap)
        for name, value in options.items():
            reader = reader.option(name.replace("_", "."), str(value))
        if schema and target == RUNNEL:
            reader = reader.schema(schema)
        return reader.load()


class Cell(NamedTuple):
    """`run` gives the figure of one target, or None where it has none."""

    measure: Measure
    run: Callable[[Stage, str], float | None]
    topics: tuple[str, ...] = ()  # what has to be there


@contextmanager
def timed() -> "Iterator[list[float]]":
    """Its list has the seconds when the block has ended."""
    seconds: list[float] = []
    started = time.perf_counter()
    yield seconds
    seconds.append(time.perf_counter() - started)
