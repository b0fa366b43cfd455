"""Batch reads: all columns, two of them, an hour of a day, JSON to columns."""

from bench.model import Measure
from bench.spark.data import DAY, JSON, JSON_SCHEMA, LARGE, SMALL
from bench.spark.model import RUNNEL, Cell, Stage, Topic, timed

HOUR_MS = 3_600_000
HOUR = 11  # of the day, the one that is read
ROWS_PER_S = "rows/s"


def scanned(stage: Stage, target: str, topic: Topic, **options: str) -> float:
    """Rows per second. Every record's value is looked at; the sums are checked."""
    frame = stage.read(target, topic, **options)
    with timed() as seconds:
        row = frame.selectExpr("count(*)", "sum(length(value))", "max(offset)").collect()[0]
    assert row[0] == topic.records, f"{row[0]:,} rows instead of {topic.records:,}"
    return topic.records / seconds[0]


def _through_broker(what: str) -> Cell:
    def run(stage: Stage, target: str) -> float:
        options = {"readMode": "broker"} if target == RUNNEL else {}
        return scanned(stage, target, stage.topics[what], **options)

    return Cell(Measure(f"scan through the broker, {what}", ROWS_PER_S), run, (what,))


def _local(what: str) -> Cell:
    """The connector can only ask the broker: that is what it is compared with."""

    def run(stage: Stage, target: str) -> float:
        options = (
            {"readMode": "local", "path": str(stage.broker.data_dir)} if target == RUNNEL else {}
        )
        return scanned(stage, target, stage.topics[what], **options)

    return Cell(Measure(f"scan of local segments, {what}", ROWS_PER_S), run, (what,))


def _two_columns(stage: Stage, target: str) -> float:
    topic = stage.topics[SMALL]
    frame = stage.read(target, topic, schema="offset LONG, timestamp TIMESTAMP")
    with timed() as seconds:
        row = frame.selectExpr("count(*)", "max(offset)", "max(timestamp)").collect()[0]
    assert row[0] == topic.records, row
    return topic.records / seconds[0]


def _hour(stage: Stage, target: str, by_options: bool) -> float:
    """Seconds. The same program for both: a filter, which Runnel pushes down, or the options."""
    topic = stage.topics[DAY]
    start_ms = topic.first_ms + HOUR * HOUR_MS
    condition = (
        f"timestamp >= timestamp_millis({start_ms})"
        f" AND timestamp < timestamp_millis({start_ms + HOUR_MS})"
    )
    with timed() as seconds:
        if by_options:
            end_ms = start_ms + HOUR_MS
            frame = stage.read(target, topic, startingTimestamp=start_ms, endingTimestamp=end_ms)
        else:
            options = {"pushdown": "true"} if target == RUNNEL else {}
            frame = stage.read(target, topic, **options).where(condition)
        row = frame.selectExpr("count(*)", "sum(length(value))").collect()[0]
    share = row[0] / topic.records * 24
    assert 0.98 < share < 1.02, f"{row[0]:,} rows are no hour of {topic.records:,}"
    return seconds[0]


def _decode(stage: Stage, target: str) -> float:
    """Six fields of each object become columns; all of them are looked at."""
    topic = stage.topics[JSON]
    if target == RUNNEL:
        frame = stage.read(target, topic, decode="json", valueSchema=JSON_SCHEMA)
    else:
        parsed = f"from_json(cast(value AS string), '{JSON_SCHEMA}') AS row"
        frame = stage.read(target, topic).selectExpr(parsed).select("row.*")
    with timed() as seconds:
        row = frame.selectExpr(
            "count(*)",
            "sum(id)",
            "max(name)",
            "sum(amount)",
            "count_if(active)",
            "max(city)",
            "sum(count)",
        ).collect()[0]
    assert row[0] == topic.records and row[1] is not None, row
    return topic.records / seconds[0]


SCAN_CELLS = (
    _through_broker(SMALL),
    _through_broker(LARGE),
    _local(SMALL),
    _local(LARGE),
    Cell(Measure("two columns of seven", ROWS_PER_S), _two_columns, (SMALL,)),
    Cell(
        Measure("one hour of 24, against filter()", "s"),
        lambda stage, target: _hour(stage, target, by_options=False),
        (DAY,),
    ),
    Cell(
        Measure("one hour of 24, against endingTimestamp", "s"),
        lambda stage, target: _hour(stage, target, by_options=True),
        (DAY,),
    ),
    Cell(Measure("decode JSON to columns", ROWS_PER_S), _decode, (JSON,)),
)
