"""`traffic`: how much goes through topics, in windows of time by partition and, if asked, key."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from runnel.pipelines import upkeep
from runnel.pipelines.kind import Flow, Kind, Option, Problem, Run, Spec, Stream
from runnel.pipelines.reading import input_stream
from runnel.pipelines.streams.identity import parse_by
from runnel.pipelines.streams.needs import by_problems, raw_input, target_needed, topic_needed
from runnel.pipelines.streams.traffic_windows import Rules
from runnel.pipelines.units import span_text
from runnel.pipelines.writing import output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOWS_OPEN_MAX: Final = 10_000

TEMPLATE = """\
# Traffic in windows of time: records, bytes, median and 99th percentile of sizes, and late records,
# for each topic and partition.
name: NAME
kind: traffic

from:
  topic: TOPIC                     # or topics: [a, b], or pattern: ".*"
  bootstrap: ${RUNNEL_BOOTSTRAP_SERVER:-localhost:9092}
  start: earliest                  # latest, or a time such as 2026-01-31T12:00; for the first run

options:
  window: 1 minute
  late_after: 1 minute             # how far behind the newest record one still counts as on time
  #by: json:country                # or key, header:source, sql:EXPRESSION
  #by_max: 1000                    # how many of them in a window; the others are counted together
  emit: closed                     # changes: also windows that are open, whenever they change

to:
  table: lake/NAME                 # or topic: NAME-traffic, as JSON

every: 1 minute                    # once; continuous
"""

OPTIONS: Final = (
    Option("window", "span", "The length of a window.", 60_000, least=1000, most=366 * 86_400_000),
    Option(
        "late_after",
        "span",
        "A record that is older than the newest before it in its partition by more than this is"
        " late. Windows close so long after their end.",
        60_000,
        least=0,
        most=366 * 86_400_000,
    ),
    Option("by", "text", "Count by this as well: key, json:FIELD, header:NAME, sql:EXPRESSION."),
    Option(
        "by_max",
        "whole",
        "How many different ones are told apart in a window of a partition.",
        1000,
        least=1,
        most=100_000,
    ),
    Option(
        "emit",
        "choice",
        "closed: each window once, when it is closed. changes: whenever it changes, to a topic.",
        "closed",
        choices=("closed", "changes"),
    ),
    upkeep.OPTION,
)


def check(spec: Spec) -> Iterator[Problem]:
    yield from topic_needed(spec)
    yield from target_needed(spec)
    yield from raw_input(spec, "sizes are those of the records in the topic")
    yield from by_problems(spec, "by")
    if spec.options.text("emit") == "changes" and not spec.to.topic:
        yield Problem(
            "options.emit",
            "emit: changes goes to a topic, where the last row of a window counts: set to.topic,"
            " or emit: closed",
        )
    open_windows = spec.options.whole("late_after") // max(1, spec.options.whole("window"))
    if open_windows > WINDOWS_OPEN_MAX:
        yield Problem(
            "options.late_after",
            f"late_after would keep {open_windows} windows open, and {WINDOWS_OPEN_MAX} may be:"
            " take a longer window",
        )


def rules_of(spec: Spec) -> Rules:
    options = spec.options
    return Rules(options.whole("window"), options.whole("late_after"), options.whole("by_max"))


def traffic(rows: "DataFrame", rules: Rules, by: str, *, updates: bool) -> "DataFrame":
    """Of the columns of a topic, a stream."""
    from runnel.pipelines.streams.traffic_packing import PACKED, pack
    from runnel.pipelines.streams.traffic_processor import OUTPUT, TrafficProcessor

    label = parse_by(by).text_sql() if by else "cast(null as string)"
    records = rows.selectExpr(
        "topic",
        "partition",
        "offset",
        "unix_millis(timestamp) as timestamp_ms",
        "bigint(coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0)) as bytes",
        f"{label} as label",
    )
    windows = (
        records.mapInArrow(pack, PACKED)
        .groupBy("topic", "partition")
        .transformWithState(
            statefulProcessor=TrafficProcessor(rules, updates=updates),
            outputStructType=OUTPUT,
            outputMode="Append",
            timeMode="None",
        )
    )
    return windows.selectExpr(
        "timestamp_millis(window_ms) as window_start",
        f"timestamp_millis(window_ms + {rules.window_ms}) as window_end",
        "topic",
        "partition",
        *(["label"] if by else []),
        *("records", "bytes", "p50_bytes", "p99_bytes", "late", "is_final as final"),
    )


def build(run: Run) -> Flow:
    spec = run.spec
    by = spec.options.text("by")
    headers = {"includeHeaders": "true"} if by and parse_by(by).needs_headers else {}
    updates = spec.options.text("emit") == "changes"
    rows = traffic(input_stream(run, **headers), rules_of(spec), by, updates=updates)
    if spec.to.topic:
        parts = ["topic", "partition", "unix_millis(window_start)", *(["label"] if by else [])]
        rows = rows.selectExpr(
            f"concat_ws('|', {', '.join(parts)}) as key", "to_json(struct(*)) as value"
        )
    elif not updates:
        rows = rows.drop("final")
    return Stream(output(spec, rows), *upkeep.between(run))


def explain(spec: Spec) -> Iterator[str]:
    rules = rules_of(spec)
    yield (
        f"windows of {span_text(rules.window_ms)} by topic and partition"
        + (f" and {spec.options.text('by')}" if spec.options.text("by") else "")
    )
    yield (
        f"a window is told {span_text(rules.late_after_ms)} after its end, by the timestamps of its"
        " partition; the last one waits for newer records"
    )
    yield "late records are counted as late in the window in which they came, and in no other"
    yield from upkeep.explain(spec)


KIND: Final = Kind(
    name="traffic",
    summary="records, bytes, sizes and late ones of topics in windows of time",
    template=TEMPLATE,
    check=check,
    build=build,
    options=OPTIONS,
    guarantee="each record counted exactly once",
    explain=explain,
)
