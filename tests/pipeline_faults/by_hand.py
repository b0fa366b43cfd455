"""Commands on a table that need no Spark: compaction, and a table sent back to a topic.

The table is written without Spark as well, a small file at a time.
"""

import datetime
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from runnel.arrow.rows import spark_schema
from runnel.spark.lake.sink import RunnelLake
from tests.pipeline_faults.case import Case, Stage, differing

FILES, ROWS = 12, 2_000
TIME_MS = 1_768_000_000_000
SCHEMA = spark_schema(("key", "value", "topic", "partition", "offset", "timestamp", "headers"))
YAML = """\
name: NAME
from: {topic: "{prefix}orders", bootstrap: "{bootstrap}"}
to: {table: lake/orders, format: FORMAT}
"""


def prepare(stage: Stage) -> None:
    stage.create("again", partitions=3, config={"retention.ms": "-1"})


def grow(stage: Stage) -> None:
    for _ in range(FILES):
        first = len(stage.sent)
        numbers = range(first, first + ROWS)
        rows = [
            {
                "key": b"%d" % n,
                "value": b"value %d" % n,
                "topic": "orders",
                "partition": n % 3,
                "offset": n,
                "timestamp": datetime.datetime.fromtimestamp((TIME_MS + n) / 1000, datetime.UTC),
            }
            for n in numbers
        ]
        batch = pa.RecordBatch.from_pylist(rows, to_arrow_schema(SCHEMA, timezone="UTC"))
        options = {"table": str(stage.folder / "lake/orders"), "tableFormat": _format(stage)}
        once = {"queryId": "q", "batchId": str(first)}
        for _ in range(2):  # the second time it is there already, whatever was compacted meanwhile
            writer = RunnelLake({**options, **once}).writer(SCHEMA, False)
            writer.commit([writer.write(iter([batch]))])
        stage.sent += numbers


def _format(stage: Stage) -> str:
    found = stage.case.name.partition("-")[2]
    return found or "delta"


def wrong_table(stage: Stage) -> str:
    rows = stage.table("lake/orders", _format(stage))
    files = len(list((stage.folder / "lake/orders").rglob("part-*.parquet")))
    if files > 2 and _format(stage) != "parquet":
        return f"{files} files are left"
    return differing(stage.sent, [row["offset"] for row in rows])


def wrong_topic(stage: Stage) -> str:
    """Every round sends the whole table, so that records of earlier rounds are there more often."""
    each = FILES * ROWS
    wanted = [
        (b"%d" % n, b"%d" % n, TIME_MS + n)
        for round_ in range(stage.rounds)
        for n in stage.sent[: each * (round_ + 1)]
    ]
    found = [
        (message.key(), dict(message.headers())["replay.offset"], message.timestamp()[1])
        for message in stage.received("again")
    ]
    return differing(wanted, found)


COMPACT = Case(
    name="compact",
    yaml=YAML.replace("NAME", "compact").replace("FORMAT", "delta"),
    grow=grow,
    wrong=wrong_table,
    steps=("writing", "rewritten", "replaced"),
    victims=("worker",),
    command=("pipeline", "compact", "NAME", "--expire-after", "0s"),
)
CASES = (
    COMPACT,
    replace(
        COMPACT,
        name="compact-iceberg",
        yaml=YAML.replace("NAME", "compact-iceberg").replace("FORMAT", "iceberg"),
    ),
    replace(
        COMPACT,
        name="compact-parquet",
        yaml=YAML.replace("NAME", "compact-parquet").replace("FORMAT", "parquet"),
        steps=("writing", "rewritten", "renamed", "replaced"),
    ),
    Case(
        name="replay",
        yaml=YAML.replace("NAME", "replay").replace("FORMAT", "delta"),
        prepare=prepare,
        grow=grow,
        wrong=wrong_topic,
        steps=("replaying", "replay committed"),
        victims=("worker", "broker"),
        command=("pipeline", "replay", "NAME", "--to", "replay-again"),
    ),
)
