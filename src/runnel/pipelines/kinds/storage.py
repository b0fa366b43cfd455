"""`storage`: what lies in a broker's data folders, by topic and day; the broker may be down."""

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from runnel.arrow.errors import OptionError, SourceError, UnansweredError
from runnel.arrow.locating import folders_here
from runnel.arrow.log_files import split_path
from runnel.client.cluster import Cluster, addresses_of
from runnel.pipelines import upkeep
from runnel.pipelines.kind import Flow, Kind, Option, Problem, Report, Run, Spec, Turn, Turns
from runnel.pipelines.streams.needs import raw_input
from runnel.pipelines.streams.storage_report import (
    TASKS_PER_CORE,
    Retention,
    TopicFiles,
    look,
    scanned,
    summed_up,
)
from runnel.pipelines.units import counted, span_text
from runnel.pipelines.writing import table_options

if TYPE_CHECKING:
    import pyarrow as pa

EXACT_MAX: Final = 20_000_000  # records; beyond that different ones are estimated unless told

TEMPLATE = """\
# What lies in the data folders of a broker on this machine, also while it is down: bytes by topic
# and day, compression, different keys, duplicates, and what a retention would free.
name: NAME
kind: storage

from:
  #path: /var/lib/runnel           # the data folders; else the broker is asked where they are
  bootstrap: ${RUNNEL_BOOTSTRAP_SERVER:-localhost:9092}

options:
  topics: ".*"                     # those in whose names this regular expression is found
  retention: 7 days                # what would go if retention.ms were this
  #retention_bytes: 10g            # and retention.bytes this
  distinct: auto                   # exact, approximate; auto is exact up to 20 million records

# Without `to` the result is only printed.
to:
  table: lake/NAME

every: once                        # 1 day
"""

OPTIONS: Final = (
    Option("topics", "text", "A regular expression; topics in whose names it is found.", ".*"),
    Option("retention", "span", "What would go if retention.ms were this.", least=0),
    Option("retention_bytes", "size", "What would go if retention.bytes were this.", least=0),
    Option(
        "distinct",
        "choice",
        "How different keys and records are counted: exact shuffles a number for each; approximate"
        " takes little memory and is off by about 2 % of them; auto is exact up to 20 million"
        " records.",
        "auto",
        choices=("auto", "exact", "approximate"),
    ),
    upkeep.OPTION,
)


def check(spec: Spec) -> Iterator[Problem]:
    yield from raw_input(spec, "it reads files as they are")
    if spec.to.topic:
        yield Problem("to.topic", "to: storage writes to a table, or prints what it finds")
    if spec.source.topics or spec.source.pattern or spec.source.table:
        yield Problem("from", "from: storage reads folders; choose topics with options.topics")
    try:
        re.compile(spec.options.text("topics"))
    except re.error as error:
        yield Problem("options.topics", f"topics is no regular expression: {error}")


def retention_of(spec: Spec) -> Retention:
    options = spec.options
    return Retention(
        options.whole("retention") if "retention" in options else -1,
        options.whole("retention_bytes") if "retention_bytes" in options else -1,
    )


def build(run: Run) -> Flow:
    spec = run.spec
    wanted = re.compile(spec.options.text("topics"))
    retention = retention_of(spec)

    def step(turn: Turn) -> Report:
        now_ms = time.time_ns() // 1_000_000
        try:
            topics = look(_folders(spec), wanted, retention, now_ms)
        except OSError as error:
            raise OptionError(
                f"{error.filename} cannot be read: {error.strerror}. Run it on the broker's machine"
                " as a user who may, or name the data folders with from.path"
            ) from None
        segments = [segment for topic in topics.values() for segment in topic.segments]
        if not segments:
            return Report(text="there is no segment of such a topic")
        cores = run.spark.sparkContext.defaultParallelism
        tasks = max(1, min(len(segments), cores * TASKS_PER_CORE))
        rows = scanned(run.spark, segments, tasks)
        exact = _is_exact(spec, topics)
        found = [
            {**_row(row.asDict(), topics, retention, now_ms), "is_exact": exact}
            for row in summed_up(rows, exact=exact).collect()
        ]
        totals = [row for row in found if row["day"] is None]
        for row in totals:
            run.tell(_told(row))
        if spec.to.table:
            _append(run, found)
        disk_bytes = sum(row["disk_bytes"] for row in totals)
        return Report(
            rows=sum(row["records"] for row in totals),
            text=f"{counted(len(totals), 'topic')}, {counted(len(segments), 'segment')},"
            f" {counted(disk_bytes, 'byte')}",
            facts={"topics": totals},
        )

    return Turns(step, *upkeep.between(run))


def _is_exact(spec: Spec, topics: dict[str, TopicFiles]) -> bool:
    asked = spec.options.text("distinct")
    if asked != "auto":
        return asked == "exact"
    return sum(topic.offsets for topic in topics.values()) <= EXACT_MAX


def _folders(spec: Spec) -> list[str]:
    if spec.source.path:
        return split_path(spec.source.path)
    with Cluster(addresses_of(spec.source.bootstrap)) as cluster:
        try:
            return folders_here(cluster)
        except UnansweredError:
            raise
        except SourceError as error:
            raise OptionError(f"{error}. Name the data folders with from.path") from None


def _row(
    found: dict[str, Any], topics: dict[str, TopicFiles], retention: Retention, now_ms: int
) -> dict[str, Any]:
    """Of the table: what was read, and what is known of the files in the row of the whole topic."""
    files = topics[found["topic"]] if found["day"] is None else None
    body, records = found["body_bytes"], found["records"]
    asked = files if retention.is_asked else None
    return {
        "measured_at": now_ms,
        "topic": found["topic"],
        "day": found["day"],
        "partitions": files.partitions if files else None,
        "segments": len(files.segments) if files else None,
        "disk_bytes": found["disk_bytes"] + found["unreadable_bytes"],
        "index_bytes": files.index_bytes if files else None,
        "batches": found["batches"],
        "records": records,
        "message_bytes": found["message_bytes"],
        "compression_ratio": found["payload_bytes"] / body if body else None,
        "keys": found["keys"],
        "tombstones": found["tombstones"],
        "superseded": max(0, found["keyed"] - found["keys"]),
        "duplicates": max(0, records - found["different_records"]),
        "control_records": found["control_records"],
        "unreadable_bytes": found["unreadable_bytes"],
        "first_timestamp": found["first_ms"],
        "last_timestamp": found["last_ms"],
        "freed_bytes": asked.freed_bytes if asked else None,
        "freed_segments": asked.freed_segments if asked else None,
    }


def _told(row: dict[str, Any]) -> str:
    size, segments = counted(row["disk_bytes"], "byte"), counted(row["segments"], "segment")
    parts = [f"{size} in {segments}", counted(row["records"], "record")]
    if row["compression_ratio"]:
        parts.append(f"compressed {row['compression_ratio']:.1f} to 1")
    about = "" if row["is_exact"] else "about "
    parts.append(f"{about}{counted(row['keys'], 'key')}")
    parts.append(f"{about}{counted(row['duplicates'], 'duplicate')}")
    if row["freed_bytes"] is not None:
        parts.append(f"retention frees {row['freed_bytes']:,} bytes")
    if row["unreadable_bytes"]:
        parts.append(f"{row['unreadable_bytes']:,} bytes unreadable: `runnel storage verify`")
    return f"{row['topic']}: " + ", ".join(parts)


def _append(run: Run, found: list[dict[str, Any]]) -> None:
    from runnel.spark.lake.arrow_writes import append

    spec = run.spec
    append(_table(found), table_options(spec) | dict(spec.to.options), run.query_id)


def _table(found: list[dict[str, Any]]) -> "pa.Table":
    import pyarrow as pa

    types = {
        **dict.fromkeys(
            ("measured_at", "first_timestamp", "last_timestamp"), pa.timestamp("ms", "UTC")
        ),
        "topic": pa.string(),
        "day": pa.date32(),
        "compression_ratio": pa.float64(),
        "is_exact": pa.bool_(),
    }
    whole = pa.schema([(name, types.get(name, pa.int64())) for name in found[0]])
    return pa.Table.from_pylist(found, schema=whole)


def explain(spec: Spec) -> Iterator[str]:
    where = spec.source.path or f"the brokers at {spec.source.bootstrap} that are on this machine"
    yield f"every segment file of {where} is read, and nothing is changed"
    if spec.source.path:
        yield "no broker is asked: it may be down"
    retention = retention_of(spec)
    if retention.ms >= 0:
        yield f"the row of a topic tells what retention.ms={span_text(retention.ms)} would free"
    if spec.options.text("distinct") == "approximate":
        yield "different keys and records are estimates, off by about 2 % of them"
    yield from upkeep.explain(spec)


KIND: Final = Kind(
    name="storage",
    summary="what segment files hold, by topic and day, and what a retention would free",
    template=TEMPLATE,
    check=check,
    build=build,
    options=OPTIONS,
    guarantee="each measurement all of its rows or none; read only",
    explain=explain,
)
