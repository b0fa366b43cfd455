"""`lag-history`: how far groups are behind, at every poll a row for each of their partitions."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runnel.client.cluster import Cluster, addresses_of
from runnel.pipelines import upkeep
from runnel.pipelines.kind import Flow, Kind, Option, Problem, Report, Run, Spec, Turn, Turns
from runnel.pipelines.streams.lag_polls import Limits, poll, rows, since_when
from runnel.pipelines.streams.needs import raw_input, table_needed
from runnel.pipelines.units import counted, span_text
from runnel.pipelines.writing import table_options

if TYPE_CHECKING:
    import pyarrow as pa

SINCE: Final = "over-since.json"

TEMPLATE = """\
# The lag of consumer groups over time. Alerts: select * from the table where alert.
name: NAME
kind: lag-history

from:
  bootstrap: ${RUNNEL_BOOTSTRAP_SERVER:-localhost:9092}

options:
  groups: ".*"                     # those in whose names this regular expression is found
  alert_lag: 10000                 # more than so many records behind,
  alert_after: 5 minutes           # for so long, is an alert

to:
  table: lake/NAME

every: 1 minute                    # once; continuous: every second
"""

OPTIONS: Final = (
    Option("groups", "text", "A regular expression; groups in whose names it is found.", ".*"),
    Option("alert_lag", "whole", "A lag above it, for `alert_after`, is an alert.", least=0),
    Option(
        "alert_after",
        "span",
        "How long a lag has to be above `alert_lag`.",
        300_000,
        least=0,
        most=366 * 86_400_000,
    ),
    Option(
        "rows_max",
        "whole",
        "How many partitions of groups a poll may have.",
        100_000,
        least=1,
        most=10_000_000,
    ),
    upkeep.OPTION,
)


def check(spec: Spec) -> Iterator[Problem]:
    yield from table_needed(spec)
    yield from raw_input(spec, "it asks for offsets, and reads no records")
    if spec.source.topics or spec.source.pattern or spec.source.table:
        yield Problem("from", "from: lag-history reads no topic; choose with options.groups")
    try:
        re.compile(spec.options.text("groups"))
    except re.error as error:
        yield Problem("options.groups", f"groups is no regular expression: {error}")


def limits_of(spec: Spec) -> Limits:
    options = spec.options
    alert_lag = options.whole("alert_lag") if "alert_lag" in options else None
    return Limits(alert_lag, options.whole("alert_after"), options.whole("rows_max"))


def build(run: Run) -> Flow:
    spec = run.spec
    limits, wanted = limits_of(spec), re.compile(spec.options.text("groups"))
    kept = run.notes / SINCE

    def step(turn: Turn) -> Report:
        from runnel.spark.lake.arrow_writes import append

        with Cluster(addresses_of(spec.source.bootstrap)) as cluster:
            seen = poll(cluster, wanted, limits)
        now_ms = time.time_ns() // 1_000_000
        since = since_when(seen, _load(kept), limits, now_ms)
        # Before the rows: should they not be written, the next poll knows what was seen now.
        _save(kept, since)
        found = list(rows(seen, since, limits, now_ms))
        if found:
            append(_table(found), table_options(spec) | dict(spec.to.options), run.query_id)
        return _report(found)

    return Turns(step, *upkeep.between(run))


def _report(found: list[dict[str, object]]) -> Report:
    groups = {row["group_id"] for row in found}
    alerts = sorted({f"{row['group_id']} on {row['topic']}" for row in found if row["alert"]})
    counts = ((len(groups), "group"), (len(found), "partition"), (len(alerts), "alert"))
    told = ", ".join(counted(count, what) for count, what in counts)
    if alerts:
        told += ": " + ", ".join(alerts[:5]) + (" and more" if len(alerts) > 5 else "")
    return Report(rows=len(found), text=told, facts={"groups": len(groups), "alerts": alerts})


def _table(found: list[dict[str, object]]) -> "pa.Table":
    import pyarrow as pa

    stamp = pa.timestamp("ms", tz="UTC")
    schema = pa.schema(
        [
            ("polled_at", stamp),
            ("group_id", pa.string()),
            ("state", pa.string()),
            ("members", pa.int32()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("committed_offset", pa.int64()),
            ("end_offset", pa.int64()),
            ("lag", pa.int64()),
            ("owner", pa.string()),
            ("over_since", stamp),
            ("alert", pa.bool_()),
        ]
    )
    return pa.Table.from_pylist(found, schema=schema)


def _load(file: Path) -> dict[str, int]:
    """Nothing where it is missing or was cut short: then lags count from now on."""
    try:
        found = json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return {str(place): int(since_ms) for place, since_ms in found.items()}


def _save(file: Path, since: dict[str, int]) -> None:
    part = file.with_suffix(".part")
    part.write_text(json.dumps(since))
    part.replace(file)


def explain(spec: Spec) -> Iterator[str]:
    limits = limits_of(spec)
    yield f"groups in whose names {spec.options.text('groups')} is found; no Spark is started"
    if limits.alert_lag is not None:
        yield (
            f"alert is true in rows of partitions that have been more than {limits.alert_lag}"
            f" records behind for {span_text(limits.alert_after_ms)}"
        )
    yield from upkeep.explain(spec)


KIND: Final = Kind(
    name="lag-history",
    summary="how far consumer groups are behind, poll by poll, with alerts; needs no Spark",
    template=TEMPLATE,
    check=check,
    build=build,
    options=OPTIONS,
    guarantee="each poll at least once, all of its rows or none",
    explain=explain,
    uses_spark=False,
)
