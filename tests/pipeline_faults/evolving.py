"""A table whose columns grow, with dead letters, and compaction between batches."""

import json
import subprocess
import sys

from tests.pipeline_faults.case import Case, Stage, differing, environment

ROWS = 1_200
YAML = """\
name: NAME
from: {topic: "{prefix}orders", bootstrap: "{bootstrap}", options: {maxOffsetsPerTrigger: 700}}
decode: {format: json, schema: "id BIGINT"}
to: {table: lake/orders, partition_by: [day(timestamp)]}
options: {evolve: true, maintenance: {least_files: 2, every: 1s, expire_after: 0s}}
"""
SMALL = YAML.replace(
    "maintenance: {least_files: 2, every: 1s, expire_after: 0s}", "max_columns: 50"
)


def prepare(stage: Stage) -> None:
    stage.create("orders", partitions=2, config={"retention.ms": "-1"})


def grow(stage: Stage) -> None:
    """Every round has a field more; numbers become text in some records, which does not fit."""
    first = len(stage.sent)
    numbers = range(first, first + ROWS)
    stage.send("orders", [(b"%d" % n, _value(stage.rounds, n), 1_768_000_000_000) for n in numbers])
    stage.sent += [(stage.rounds, n) for n in numbers]


def _value(round_: int, n: int) -> bytes:
    if n % 101 == 100:
        return b"oops"
    value = {"id": "text" if n % 103 == 100 else n, f"field{round_}": n * 2}
    return json.dumps(value).encode()


def _is_bad(n: int) -> bool:
    return n % 101 == 100 or n % 103 == 100


def wrong(stage: Stage) -> str:
    good = [(n, n * 2) for round_, n in stage.sent if not _is_bad(n)]
    rows = stage.table("lake/orders")
    found = [
        (row["id"], next(row[name] for name in row if name.startswith("field") and row[name]))
        if row["id"]
        else (0, 0)
        for row in rows
    ]
    letters = [(row["partition"], row["offset"]) for row in stage.table("lake/orders__dlq")]
    bad = sum(_is_bad(n) for _, n in stage.sent)
    twice = "" if len(set(letters)) == len(letters) == bad else f"{len(letters)} letters for {bad}"
    return differing(good, found) or twice


def command(stage: Stage, *words: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "runnel", *words],
        env=environment(stage),
        cwd=stage.folder,
        check=True,
        capture_output=True,
    )


CASES = (
    Case(
        name="evolving",
        yaml=YAML.replace("NAME", "evolving"),
        prepare=prepare,
        grow=grow,
        wrong=wrong,
        steps=("rows written", "table committed", "rewritten", "replaced"),
        victims=("worker",),
    ),
)
