"""Records that could not be read, put aside with the reason: a table beside the table, or a topic.

They are written by the batch that read them, under its number: once, whatever is repeated.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from runnel.pipelines.checkpoint import reached
from runnel.pipelines.home import Home
from runnel.pipelines.reading import dead_letter_topic
from runnel.pipelines.spec import Spec
from runnel.spark.lake import lake_options
from runnel.spark.lake.lake_options import LakeOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SUFFIX: Final = "__dlq"
COLUMNS: Final = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "key",
    "value",
    "headers",
    "error",
    "batch",
    "failed_at",
)
REASON_MAX: Final = 1000
_HEADERS: Final = """
  concat(coalesce(headers, array()), array(
    named_struct('key', 'dlq.topic', 'value', cast(topic as binary)),
    named_struct('key', 'dlq.partition', 'value', cast(cast(partition as string) as binary)),
    named_struct('key', 'dlq.offset', 'value', cast(cast(offset as string) as binary)),
    named_struct('key', 'dlq.timestamp', 'value',
      cast(cast(unix_millis(timestamp) as string) as binary)),
    named_struct('key', 'dlq.error', 'value', cast('BadRecordError' as binary)),
    named_struct('key', 'dlq.reason', 'value', cast(error as binary)),
    named_struct('key', 'dlq.tries', 'value', cast('1' as binary)),
    named_struct('key', 'dlq.replays', 'value', cast('0' as binary))))
"""


def named_topic(spec: Spec) -> str:
    """The topic that the file names for them; empty where it names none, or a table."""
    named = spec.decode.dead_letters
    return named if named and "/" not in named else ""


def to_topic(spec: Spec) -> str:
    """The topic that dead letters go to; empty where it is a table, or where there can be none.

    The source itself puts them aside where a query is more than its batches, and knows topics only.
    """
    from runnel.pipelines.kinds.table import STATEFUL, way

    named = named_topic(spec)
    if named or not spec.decode.format or spec.kind == "cdc":
        return named
    has_table = spec.kind == "table" and spec.to.table and way(spec) != STATEFUL
    return "" if has_table else dead_letter_topic(spec)


def as_run(spec: Spec, home: Home) -> Spec:
    """With the topic named where a run showed what no file says: that its Python keeps state."""
    is_open = spec.decode.format and spec.transform.python and not spec.decode.dead_letters
    if not is_open or to_topic(spec) or not reached(home.checkpoint).has_state:
        return spec
    return replace(spec, decode=replace(spec.decode, dead_letters=dead_letter_topic(spec)))


def table_of(spec: Spec) -> str:
    """The folder of the table that they go to."""
    named = spec.decode.dead_letters
    if named and "/" in named:
        return named if named.startswith("/") else str(spec.root / named)
    return spec.to.table.rstrip("/") + SUFFIX


def shown(spec: Spec) -> str:
    """Where they go, for people."""
    topic = to_topic(spec)
    return f"the topic {topic}" if topic else f"the table {table_of(spec)}"


def table_options(spec: Spec) -> dict[str, str]:
    """As the writer takes them: of the same format as the table, in a folder."""
    options = {"table": table_of(spec)}
    if spec.to.format:
        options["tableFormat"] = spec.to.format
    return options


def lake(spec: Spec) -> LakeOptions:
    return lake_options.parse(table_options(spec))


def rows_of(bad: "DataFrame", batch: int) -> "DataFrame":
    """The columns of a dead letter, of rows with `_error` and `_raw`."""
    from pyspark.sql import functions as F

    headers = "headers" if "headers" in bad.columns else "null"
    return bad.select(
        "topic",
        "partition",
        "offset",
        "timestamp",
        "key",
        F.expr("_raw as value"),
        F.expr(f"cast({headers} as array<struct<key:string,value:binary>>) as headers"),
        F.expr(f"substring(_error, 1, {REASON_MAX}) as error"),
        F.lit(batch).cast("bigint").alias("batch"),
        F.current_timestamp().alias("failed_at"),
    )


def write(spec: Spec, letters: "DataFrame", query: str, batch: int) -> None:
    """Once for each number of a batch."""
    once = {"queryId": f"{query}-dlq", "batchId": str(batch)}
    topic = named_topic(spec)
    if topic:
        letters = letters.selectExpr("key", "value", f"{_HEADERS} as headers")
        options = {
            "kafka.bootstrap.servers": spec.source.bootstrap,
            "topic": topic,
            "exactlyOnce": "true",
        }
        letters.write.format("runnel").options(**options, **once).mode("append").save()
        return
    options = table_options(spec)
    letters.write.format("runnel-lake").options(**options, **once).mode("append").save()


def without_source_dlq(spec: Spec) -> Spec:
    """The same, with bad records as rows that say what is wrong: whoever writes puts them aside."""
    return replace(spec, decode=replace(spec.decode, bad_records="null"))
