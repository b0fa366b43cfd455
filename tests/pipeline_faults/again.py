"""Records read again: a backfill, and dead letters tried again."""

import json

from tests.pipeline_faults.case import Case, Stage, differing
from tests.pipeline_faults.evolving import command

ROWS = 600
TIME_MS = 1_768_000_000_000
YAML = """\
name: NAME
from: {topic: "{prefix}orders", bootstrap: "{bootstrap}", start: latest}
decode: {format: json, schema: "SCHEMA"}
transform: {sql: "select id, topic, partition, `offset`, key, timestamp from input"}
to: {table: lake/orders}
"""


def prepare(stage: Stage) -> None:
    stage.create("orders", partitions=2, config={"retention.ms": "-1"})


def _send(stage: Stage, time_ms: int) -> None:
    first = len(stage.sent)
    numbers = range(first, first + ROWS)
    records = [
        (b"%d" % n, json.dumps({"id": f"{n}" if n % 50 == 7 else n}).encode(), time_ms + n)
        for n in numbers
    ]
    stage.send("orders", records)
    stage.sent += numbers


def with_gap(stage: Stage) -> None:
    """Half of the round is skipped by the stream, so that the table lacks it."""
    name = stage.case.name
    if stage.rounds == 0:
        _send(stage, TIME_MS)
        command(stage, "pipeline", "run", name, "--once")  # from the end: it only begins
    _send(stage, TIME_MS)
    if stage.rounds:
        command(stage, "pipeline", "reset", name, "--to", "latest", "--yes")
        command(stage, "pipeline", "run", name, "--once")
    _send(stage, TIME_MS)
    command(stage, "pipeline", "run", name, "--once")


def wrong_backfill(stage: Stage) -> str:
    good = [n for n in stage.sent if n % 50 != 7]
    letters = [row["offset"] for row in stage.table("lake/orders__dlq")]
    if len(letters) != len(stage.sent) - len(good):
        return f"{len(letters)} letters for {len(stage.sent) - len(good)}"
    return differing(good, [row["id"] for row in stage.table("lake/orders")])


def with_letters(stage: Stage) -> None:
    _send(stage, TIME_MS)
    command(stage, "pipeline", "run", stage.case.name, "--once")


def wrong_letters(stage: Stage) -> str:
    rows, letters = stage.table("lake/orders"), stage.table("lake/orders__dlq")
    if letters:
        return f"{len(letters)} letters stay"
    return differing(stage.sent, [int(row["id"]) for row in rows])


def _yaml(name: str, start: str) -> str:
    text = YAML.replace("NAME", name).replace("SCHEMA", "id BIGINT")
    return text.replace("start: latest", f"start: {start}")


CASES = (
    Case(
        name="backfill",
        yaml=_yaml("backfill", "latest"),
        prepare=prepare,
        grow=with_gap,
        wrong=wrong_backfill,
        steps=("rows written", "chunk written"),
        victims=("worker",),
        command=("pipeline", "backfill", "NAME", "--from", "@0", "--chunk-records", "500", "-y"),
    ),
    Case(
        name="dlq-replay",
        yaml=_yaml("dlq-replay", "earliest"),
        prepare=prepare,
        grow=with_letters,
        wrong=wrong_letters,
        steps=("replayed", "overwritten"),
        victims=("worker",),
        command=(
            *("pipeline", "dlq", "replay", "NAME", "--schema", "id STRING", "--sql"),
            "select cast(id as bigint) id, topic, partition, `offset`, key, timestamp from input",
        ),
    ),
)
