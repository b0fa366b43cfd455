"""`table`: the records of a topic into a Delta, Iceberg or Parquet table, or into a topic.

There are three ways, chosen by what the file asks for. Without a transform, records go from the
decoder to files and never enter the JVM. With a transform that takes rows one by one, a batch is a
batch for all of it: decoding, new columns, dead letters. With one that keeps state from batch to
batch, such as an aggregation, it is one streaming query.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from runnel.pipelines import dead_letters, partitioning, upkeep
from runnel.pipelines.kind import Flow, Kind, Option, Problem, Run, Spec, Stream
from runnel.pipelines.reading import input_stream, source_options
from runnel.pipelines.spec import Decode
from runnel.pipelines.transforming import transformed
from runnel.pipelines.writing import output, table_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

DIRECT, ROWS, STATEFUL = "direct", "rows", "stateful"
_KEEPS_STATE: Final = re.compile(
    r"^[\s:+|-]*(?:Aggregate|Deduplicate|Distinct|Join|EventTimeWatermark|TransformWithState"
    r"|FlatMapGroups|GlobalLimit|LocalLimit|Window|Sort)\b",
    re.MULTILINE,
)

_LITERALS: Final = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL
)
_STATE_WORDS: Final = re.compile(
    r"\b(?:group\s+by|distinct|join|order\s+by|sort\s+by|limit\s+\d|over\s*\(|(?:count|count_if|sum|avg|mean"
    r"|min|max|min_by|max_by|first|last|any_value|collect_list|collect_set|approx_count_distinct)\s*\()",
    re.IGNORECASE,
)

TEMPLATE = """\
# A pipeline: `runnel pipeline run NAME` takes what the topic has and goes on where it stopped.
name: NAME
kind: table

from:
  topic: NAME                      # or topics: [a, b], or pattern: "orders-.*"
  bootstrap: ${RUNNEL_BOOTSTRAP_SERVER:-localhost:9092}
  start: earliest                  # latest, or a time such as 2026-01-31T12:00; for the first run
  on_data_loss: stop               # skip: go on where records have expired before they were read

# Without this the table has the columns key, value, topic, partition, offset, timestamp.
#decode:
#  format: json                    # string, json or avro
#  schema: "id BIGINT, amount DOUBLE"
#  bad_records: dead_letter        # to the table lake/NAME__dlq; or null, skip, fail

# SQL over `input`, or a function on a DataFrame: python: transforms.py:clean
#transform:
#  sql: select *, date(timestamp) as day from input

to:
  table: lake/NAME
  format: delta                    # iceberg or parquet
  #partition_by: [day(timestamp)]  # columns, or year, month, day, hour, bucket(16, key)

#options:
#  evolve: true                    # fields that the table lacks become columns
#  maintenance: {target_file_bytes: 128MB, expire_after: 7 days, every: 1 hour}

every: once                        # 1 minute; continuous
"""


OPTIONS: Final = (
    Option("evolve", "flag", "fields that the table lacks become columns", default=False),
    Option(
        "max_columns",
        "whole",
        "with evolve: how many columns there may be",
        default=1000,
        least=1,
        most=10_000,
    ),
    upkeep.OPTION,
)


def check(spec: Spec) -> Iterator[Problem]:
    if not (spec.source.topics or spec.source.pattern):
        yield Problem("from", "from.topic is missing: what is to be read?")
    if not (spec.to.table or spec.to.topic):
        yield Problem("to", "to.table is missing: a folder such as lake/orders")
    if spec.options.flag("evolve"):
        yield from _check_evolving(spec)
    elif spec.decode.format == "json" and not spec.decode.schema:
        yield Problem(
            "decode.format",
            "decode.schema is missing, such as 'id BIGINT, name STRING'; or set options.evolve:"
            " true to have it found out",
        )
    if "/" in spec.decode.dead_letters and _puts_aside(spec) and way(spec) == STATEFUL:
        yield Problem(
            "decode.dead_letters",
            "decode.dead_letters: those of this pipeline go to a topic, whose name has no '/'",
        )
    for text in spec.to.partition_by:
        try:
            partitioning.partition(text)
        except ValueError as error:
            yield Problem("to.partition_by", f"to.partition_by: {error}")


def _check_evolving(spec: Spec) -> Iterator[Problem]:
    if spec.decode.format not in ("json", "avro"):
        yield Problem("options.evolve", "evolve needs decode.format json or avro")
    if spec.decode.nested:
        yield Problem("decode.nested", "with evolve every field is a column: leave out nested")
    if spec.to.topic:
        yield Problem("options.evolve", "a topic has no columns to add: evolve is for tables")


def way(spec: Spec) -> str:
    """By the file alone. Whether SQL keeps state is told by its words; of Python nothing is known.

    `build` asks Spark instead.
    """
    found = _way_unless_stateful(spec)
    if found != ROWS or spec.options.flag("evolve"):  # which sees each batch alone
        return found
    return STATEFUL if _STATE_WORDS.search(_LITERALS.sub(" ", spec.transform.sql)) else ROWS


def _way_unless_stateful(spec: Spec) -> str:
    has_transform = spec.transform.sql or spec.transform.python
    if spec.to.topic or spec.to.mode != "append":
        return STATEFUL
    if has_transform or spec.options.flag("evolve"):
        return ROWS
    plain = partitioning.is_plain(spec.to.partition_by)
    skips = spec.decode.format and spec.decode.bad_records == "skip"
    is_simple = plain and not skips and not (_puts_aside(spec) and dead_letters.named_topic(spec))
    return DIRECT if is_simple else ROWS


def _puts_aside(spec: Spec) -> bool:
    return bool(spec.decode.format) and spec.decode.bad_records == "dead_letter"


def build(run: Run) -> Flow:
    chosen = _way_unless_stateful(run.spec)
    if chosen == DIRECT:
        return _kept_up(run, _direct(run))
    if chosen == ROWS:
        found = _by_rows(run)
        if found is not None:
            return found
    rows = input_stream(run)
    if run.spec.decode.format and run.spec.decode.bad_records == "skip":
        rows = rows.where("_error is null").drop("_error", "_raw")
    return _kept_up(run, output(run.spec, transformed(run.spec, rows)))


def _kept_up(run: Run, writer: "DataStreamWriter") -> Stream:
    between, every_ms = upkeep.between(run)
    return Stream(writer, between, every_ms)


def _direct(run: Run) -> "DataStreamWriter":
    """The counts are observed, since Spark sees files and not records."""
    from pyspark.sql import functions as F

    from runnel.spark.lake.ingesting import OBSERVED

    spec = run.spec
    of_table = {**table_options(spec), **spec.to.options, "mode": "direct"}
    if _puts_aside(spec):
        of_table["deadLetterTable"] = dead_letters.table_of(spec)
        spec = replace(spec, decode=replace(spec.decode, bad_records="fail"))
    options = source_options(spec, run.query_id) | of_table
    files = (
        run.spark.readStream.format("runnel-lake")
        .options(**options)
        .load()
        .observe(
            OBSERVED,
            F.sum("row_count").alias("rows"),
            F.sum("size_bytes").alias("bytes"),
            F.count("path").alias("files"),
        )
    )
    return files.writeStream.format("runnel-lake").options(**of_table)


def _by_rows(run: Run) -> Stream | None:
    """None where the transform keeps state, so that a batch is not all there is to it."""
    from runnel.pipelines.table_batches import TableBatches

    spec = dead_letters.without_source_dlq(run.spec)
    more = {"includeHeaders": "true"} if run.spec.decode.bad_records == "dead_letter" else {}
    plan = None
    if run.spec.options.flag("evolve"):
        rows = input_stream(_undecoded(run), **more)
    else:
        rows = input_stream(_with(run, spec), **more)
        plan = transformed(spec, rows)
        if _keeps_state(plan):
            return None
    batches = TableBatches(run.spec, run.query_id, run.notes, run.tell)
    stream = _kept_up(run, rows.writeStream.foreachBatch(batches.of_stream))
    return replace(stream, rows_of=batches.rows_of, plan=plan)


def _keeps_state(rows: "DataFrame") -> bool:
    plan = rows._jdf.queryExecution().analyzed().toString()  # of the JVM
    return _KEEPS_STATE.search(plan) is not None


def _undecoded(run: Run) -> Run:
    return _with(run, replace(run.spec, decode=Decode()))


def _with(run: Run, spec: Spec) -> Run:
    return replace(run, spec=spec)


def explain(spec: Spec) -> Iterable[str]:
    match way(spec):
        case "direct":
            yield "records go to files without entering the JVM (direct mode)"
        case "rows":
            yield "each batch is decoded, transformed and written as a whole, in one commit"
        case _:
            yield "one streaming query, whose transform may keep state from batch to batch"
    if spec.options.flag("evolve"):
        yield "fields that the table lacks become columns"
    yield from upkeep.explain(spec)


KIND = Kind(
    name="table",
    summary="a topic into a Delta, Iceberg or Parquet table",
    template=TEMPLATE,
    check=check,
    build=build,
    options=OPTIONS,
    explain=explain,
    infers_schema=True,
)
