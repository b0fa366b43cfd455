"""`sessions`: of each key the runs of events with no long pause: start, end, how many."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from runnel.pipelines import upkeep
from runnel.pipelines.kind import Flow, Kind, Option, Problem, Run, Spec, Stream
from runnel.pipelines.reading import input_stream
from runnel.pipelines.streams.identity import parse_by
from runnel.pipelines.streams.needs import by_problems, target_needed, topic_needed
from runnel.pipelines.transforming import transformed
from runnel.pipelines.units import span_text
from runnel.pipelines.writing import output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TEMPLATE = """\
# Sessions: for each key its runs of events with no pause longer than `gap`.
name: NAME
kind: sessions

from:
  topic: TOPIC
  bootstrap: ${RUNNEL_BOOTSTRAP_SERVER:-localhost:9092}
  start: earliest                  # latest, or a time such as 2026-01-31T12:00; for the first run

options:
  by: key                          # json:FIELD, header:user or sql:EXPRESSION
  gap: 30 minutes                  # a longer pause ends a session
  watermark: 10 minutes            # how much older than the newest an event may be
  #time: sql:to_timestamp(at)      # of an event, if not the record's timestamp

to:
  table: lake/NAME                 # or topic: NAME, as JSON

every: 1 minute                    # once; continuous
"""

OPTIONS: Final = (
    Option("by", "text", "Whose sessions they are.", "key"),
    Option(
        "gap",
        "span",
        "The longest pause within a session.",
        1_800_000,
        least=1,
        most=366 * 86_400_000,
    ),
    Option(
        "watermark",
        "span",
        "How much older than the newest of all an event may come. Sessions are told so long after"
        " they ended; what comes later yet begins a session of its own.",
        600_000,
        least=0,
        most=366 * 86_400_000,
    ),
    Option("time", "text", "The time of an event: sql:EXPRESSION.", "sql:timestamp"),
    upkeep.OPTION,
)


def check(spec: Spec) -> Iterator[Problem]:
    yield from topic_needed(spec)
    yield from target_needed(spec)
    yield from by_problems(spec, "by")
    if spec.decode.format == "json" and not spec.decode.schema:
        yield Problem("decode.format", "decode.schema is missing, such as 'user STRING'")
    if not spec.options.text("time").startswith("sql:"):
        yield Problem("options.time", "time: write sql: and an expression that gives a timestamp")


def sessions(
    rows: "DataFrame", *, by: str, time: str, gap_ms: int, watermark_ms: int
) -> "DataFrame":
    """Of a stream; times are whole milliseconds."""
    from runnel.pipelines.streams.session_processor import OUTPUT, SessionProcessor

    events = (
        rows.selectExpr(f"{parse_by(by).text_sql()} as key", f"{parse_by(time).sql()} as at")
        .where("key is not null and at is not null")
        .withWatermark("at", f"{watermark_ms} milliseconds")
        # Without the column of the watermark Spark does not drop what is late: see the operator.
        .selectExpr("key", "unix_millis(at) as at_ms")
    )
    found = events.groupBy("key").transformWithState(
        statefulProcessor=SessionProcessor(gap_ms),
        outputStructType=OUTPUT,
        outputMode="Append",
        timeMode="EventTime",
    )
    return found.selectExpr(
        "key",
        "timestamp_millis(start_ms) as session_start",
        "timestamp_millis(end_ms) as session_end",
        "end_ms - start_ms as duration_ms",
        "events",
    )


def _readable(spec: Spec, rows: "DataFrame") -> "DataFrame":
    if spec.decode.format and spec.decode.bad_records == "skip":
        return rows.where("_error is null").drop("_error", "_raw")
    return rows


def build(run: Run) -> Flow:
    spec, options = run.spec, run.spec.options
    headers = {"includeHeaders": "true"} if parse_by(options.text("by")).needs_headers else {}
    rows = sessions(
        transformed(spec, _readable(spec, input_stream(run, **headers))),
        by=options.text("by"),
        time=options.text("time"),
        gap_ms=options.whole("gap"),
        watermark_ms=options.whole("watermark"),
    )
    if spec.to.topic:
        rows = rows.selectExpr("key", "to_json(struct(*)) as value")
    return Stream(output(spec, rows), *upkeep.between(run))


def explain(spec: Spec) -> Iterator[str]:
    options = spec.options
    gap, wait = options.whole("gap"), options.whole("watermark")
    yield f"a session of {options.text('by')} ends with a pause of more than {span_text(gap)}"
    yield (
        f"it is told once, when the newest event of all is {span_text(gap + wait)} past its last;"
        " the last ones wait for newer events"
    )
    yield f"an event that comes more than {span_text(wait)} late may begin a session of its own"
    yield from upkeep.explain(spec)


KIND: Final = Kind(
    name="sessions",
    summary="runs of events of each key with no long pause: start, end, how many",
    template=TEMPLATE,
    check=check,
    build=build,
    options=OPTIONS,
    guarantee="each session exactly once",
    explain=explain,
)
