"""`table`: the records of a topic into a Delta, Iceberg or Parquet table, or into a topic."""

from collections.abc import Iterator

from runnel.pipelines.kind import Flow, Kind, Problem, Run, Spec, Stream
from runnel.pipelines.reading import input_stream
from runnel.pipelines.transforming import transformed
from runnel.pipelines.writing import output

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
#  bad_records: dead_letter        # null, skip or fail

# SQL over `input`, or a function on a DataFrame: python: transforms.py:clean
#transform:
#  sql: select *, date(timestamp) as day from input

to:
  table: lake/NAME
  format: delta                    # iceberg or parquet
  #partition_by: [day]

every: once                        # 1 minute; continuous
"""


def check(spec: Spec) -> Iterator[Problem]:
    if not (spec.source.topics or spec.source.pattern):
        yield Problem("from", "from.topic is missing: what is to be read?")
    if not (spec.to.table or spec.to.topic):
        yield Problem("to", "to.table is missing: a folder such as lake/orders")


def build(run: Run) -> Flow:
    rows = input_stream(run)
    if run.spec.decode.format and run.spec.decode.bad_records == "skip":
        rows = rows.where("_error is null").drop("_error", "_raw")
    return Stream(output(run.spec, transformed(run.spec, rows)))


KIND = Kind(
    name="table",
    summary="a topic into a Delta, Iceberg or Parquet table",
    template=TEMPLATE,
    check=check,
    build=build,
)
