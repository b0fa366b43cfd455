"""`cdc`: changes of rows, as Debezium and compacted topics have them, into a table of rows."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from runnel.pipelines import upkeep
from runnel.pipelines.debezium import ENVELOPES
from runnel.pipelines.kind import Flow, Kind, Option, Problem, Run, Spec, Stream
from runnel.pipelines.reading import input_stream
from runnel.pipelines.spec import Decode

RECORDS_PER_BATCH: Final = 200_000
DELETES: Final = ("remove", "mark")
TEMPLATE: Final = """\
# Changes of a table, as Debezium sends them, into a Delta table with one row per key.
name: NAME
kind: cdc

from:
  topic: NAME                      # such as shop.public.customers
  bootstrap: ${RUNNEL_BOOTSTRAP_SERVER:-localhost:9092}

decode:
  format: json
  #schema: "id BIGINT, name STRING" # the columns; found out, and grown with the topic, unless told
  bad_records: dead_letter         # to the table lake/NAME__dlq; or skip, fail

to:
  table: lake/NAME                 # Delta; rows are merged into it

options:
  envelope: debezium               # plain: values are rows, and a record without one is a delete
  #keys: [id]                      # columns; those of the records' keys unless told
  deletes: remove                  # mark: rows stay, with _deleted set

every: 1 minute
"""
OPTIONS: Final = (
    Option("envelope", "choice", "what values are", default="debezium", choices=ENVELOPES),
    Option("keys", "texts", "columns that make a row's key; those of the record's key unless told"),
    Option("deletes", "choice", "what becomes of deleted rows", default="remove", choices=DELETES),
    Option("evolve", "flag", "fields that the table lacks become columns", default=False),
    Option("max_columns", "whole", "how many there may be", default=1000, least=1, most=10_000),
    Option(
        "remember_deletes",
        "span",
        "how long a change from before a delete cannot revive a row",
        default=7 * upkeep.DAY_MS,
    ),
    Option(
        "records_per_batch",
        "whole",
        "at most so many at a time; their last changes are in the driver's memory",
        default=RECORDS_PER_BATCH,
        least=1,
        most=10_000_000,
    ),
    upkeep.OPTION,
)


def check(spec: Spec) -> Iterator[Problem]:
    if len(spec.source.topics) != 1 or spec.source.pattern:
        yield Problem("from", "from.topic is missing: one topic, whose records are changes")
    if not spec.to.table:
        yield Problem("to", "to.table is missing: a folder such as lake/customers")
    if spec.to.format not in ("", "delta"):
        yield Problem("to.format", "rows are merged into Delta tables only: leave out to.format")
    if spec.decode.format not in ("", "json"):
        yield Problem("decode.format", "changes are read as json; leave out decode.format")
    if spec.decode.bad_records == "null":
        yield Problem("decode.bad_records", "write dead_letter, skip or fail: a row needs its key")
    if spec.transform.sql or spec.transform.python:
        yield Problem("transform", "a change is merged as it is: transform the table instead")
    for text in spec.to.partition_by:
        if not text.isidentifier():
            yield Problem("to.partition_by", f"to.partition_by: {text!r} is not a column")


def build(run: Run) -> Flow:
    from runnel.pipelines.cdc_batches import CdcBatches

    decode = replace(run.spec.decode, format="json")
    spec = replace(run.spec, decode=decode)
    batches = CdcBatches(spec, run.query_id, run.notes, run.tell)
    raw = replace(run, spec=replace(run.spec, decode=Decode()))
    most = {"maxOffsetsPerTrigger": str(run.spec.options.whole("records_per_batch"))}
    rows = input_stream(raw, includeHeaders="true", **most | dict(run.spec.source.options))
    between, every_ms = upkeep.between(run)
    return Stream(rows.writeStream.foreachBatch(batches.of_stream), between, every_ms)


def explain(spec: Spec) -> Iterable[str]:
    keys = ", ".join(spec.options.texts("keys")) or "the columns of the records' keys"
    yield f"one row per key, which is {keys}; the last change counts, by the source's time, then"
    yield "by its position, then by the offset; deleted rows " + (
        "are removed" if spec.options.text("deletes") == "remove" else "stay, with _deleted set"
    )
    yield from upkeep.explain(spec)


KIND = Kind(
    name="cdc",
    summary="changes of rows (Debezium, or a compacted topic) into a table with one row per key",
    template=TEMPLATE,
    check=check,
    build=build,
    options=OPTIONS,
    guarantee="each change exactly once; one that comes again or late changes nothing",
    explain=explain,
    infers_schema=True,
)
