"""`dedup`: a topic into another, without the records that were there already.

By default time is when records arrive here, so none is ever too late: the span bounds the state,
and a record is dropped only if one like it was taken. By event time, records older than the
watermark are dropped unseen, as Spark drops them (ADR 42).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from runnel.pipelines.kind import Flow, Kind, Option, Problem, Run, Spec, Stream
from runnel.pipelines.reading import input_stream
from runnel.pipelines.streams.identity import By, parse_by
from runnel.pipelines.streams.needs import by_problems, raw_input, topic_needed
from runnel.pipelines.units import span_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TEMPLATE = """\
# A topic into another without duplicates: each record is written exactly once, order within a key
# stays as it was.
name: NAME
kind: dedup

from:
  topic: TOPIC
  bootstrap: ${RUNNEL_BOOTSTRAP_SERVER:-localhost:9092}
  start: earliest                  # latest, or a time such as 2026-01-31T12:00; for the first run

options:
  by: key                          # value, json:FIELD, header:id or sql:EXPRESSION
  within: 1 hour                   # how long a record is remembered
  time: arrival                    # event: by the records' timestamps; too late ones are dropped
  #keep_partition: true            # into the partition it came from, not that of its key

to:
  topic: NAME-unique

every: continuous                  # once; 1 minute
"""

OPTIONS: Final = (
    Option("by", "text", "What makes two records the same.", "key"),
    Option(
        "within",
        "span",
        "How long a record is remembered, at least. State grows with it.",
        3_600_000,
        least=1000,
        most=366 * 86_400_000,
    ),
    Option(
        "time",
        "choice",
        "arrival: when records are read; none is too late. event: their timestamps; those older"
        " than the newest by more than `within` are dropped.",
        "arrival",
        choices=("arrival", "event"),
    ),
    Option(
        "keep_partition",
        "flag",
        "Write a record to the partition that it came from; the target needs as many.",
        False,
    ),
)


def check(spec: Spec) -> Iterator[Problem]:
    yield from topic_needed(spec)
    yield from raw_input(spec, "records go on as they are; look into them with by: json:FIELD")
    yield from by_problems(spec, "by")
    if not spec.to.topic:
        yield Problem("to", "to.topic is missing: where do the records go that are left?")
    elif spec.to.topic in spec.source.topics and spec.to.bootstrap == spec.source.bootstrap:
        yield Problem("to.topic", "to.topic is what is read: name another topic")


def first_ones(rows: "DataFrame", by: By, within_ms: int, *, by_arrival: bool) -> "DataFrame":
    """The rows of a stream without those that repeat one; rows without an identity all stay."""
    from pyspark.sql import functions as f

    stamped = rows.withColumn("_id", f.expr(by.sql()))
    # What has no identity is told apart by where it stands.
    place = f.struct("topic", "partition", "offset")
    identity = f.struct(f.col("_id"), f.when(f.col("_id").isNull(), place).alias("_place"))
    time = f.current_timestamp() if by_arrival else f.col("timestamp")
    return (
        stamped.withColumn("_id", f.sha2(f.to_json(identity), 256))
        .withColumn("_at", time)
        .withWatermark("_at", f"{within_ms} milliseconds")
        .dropDuplicatesWithinWatermark(["_id"])
        .drop("_id", "_at")
    )


def build(run: Run) -> Flow:
    spec = run.spec
    options = spec.options
    rows = first_ones(
        input_stream(run, includeHeaders="true"),
        parse_by(options.text("by")),
        options.whole("within"),
        by_arrival=options.text("time") == "arrival",
    )
    to_topic = {
        "kafka.bootstrap.servers": spec.to.bootstrap,
        "topic": spec.to.topic,
        "exactlyOnce": "true",
        **spec.to.options,
    }
    keeps_partition = options.flag("keep_partition")

    def write(batch: "DataFrame", number: int) -> None:
        """Records of one key by one task, in the order in which they were."""
        # A new checkpoint counts batches from 0 again: they must not be taken for repeated ones.
        checkpoint = run.spark.sparkContext.getLocalProperty("sql.streaming.queryId")
        ordered = in_order(batch, keeps_partition=keeps_partition)
        once = {"queryId": f"{run.query_id}.{checkpoint}", "batchId": str(number)}
        writer = ordered.write.format("runnel").options(**to_topic, **once)
        writer.mode("append").save()

    return Stream(rows.writeStream.foreachBatch(write))


def in_order(batch: "DataFrame", *, keeps_partition: bool) -> "DataFrame":
    from pyspark.sql import functions as f

    spread = f.coalesce("key", f.expr("cast(cast(offset as string) as binary)"))
    together = f.col("partition") if keeps_partition else spread
    columns = ("key", "value", "headers", *(("partition",) if keeps_partition else ()))
    ordered = batch.repartition(together).sortWithinPartitions("topic", "partition", "offset")
    return ordered.select(*columns)


def explain(spec: Spec) -> Iterator[str]:
    options = spec.options
    span = span_text(options.whole("within"))
    yield f"records are the same by {options.text('by')}; each is remembered for {span} at least"
    if options.text("time") == "event":
        yield f"records that are {span} older than the newest are dropped, duplicates or not"


KIND: Final = Kind(
    name="dedup",
    summary="a topic into another without its duplicates, exactly once and in order",
    template=TEMPLATE,
    check=check,
    build=build,
    options=OPTIONS,
    guarantee="each record exactly once",
    explain=explain,
)
