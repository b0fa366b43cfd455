"""Storage measured beside a running broker: each measurement whole, and as a consumer counts."""

import random
from collections import Counter, defaultdict

from tests.pipeline_faults.case import RANDOM_TIME, Case, Stage, differing

ROWS = 3_000
DAY_MS = 86_400_000
START_MS = 19_675 * DAY_MS
YAML = """\
name: storage
kind: storage
from: {bootstrap: "{bootstrap}"}
options: {topics: "^{prefix}", retention: 7 days}
to: {table: lake/storage}
"""


def prepare(stage: Stage) -> None:
    for name in ("a", "b"):
        stage.create(name, partitions=2, config={"retention.ms": "-1"})


def grow(stage: Stage) -> None:
    draw = random.Random(stage.rounds)
    for name in ("a", "b"):
        records: list[tuple[bytes | None, bytes | None, int | None]] = [
            (
                None if draw.random() < 0.1 else b"key %d" % draw.randrange(500),
                None if draw.random() < 0.1 else b"value %d" % draw.randrange(50),
                START_MS + draw.randrange(5 * DAY_MS),
            )
            for _ in range(ROWS)
        ]
        stage.send(name, records)


def wrong(stage: Stage) -> str:
    measured: defaultdict[object, list[tuple[object, ...]]] = defaultdict(list)
    for row in stage.table("lake/storage"):
        what = ("topic", "day", "records", "message_bytes", "keys", "tombstones", "duplicates")
        measured[row["measured_at"]].append(tuple(row[name] for name in what))
    if len(measured) < stage.rounds:
        return f"{len(measured)} measurements, in {stage.rounds} runs"
    if any(len(rows) != 2 * 6 for rows in measured.values()):
        return f"a part of a measurement: {[len(rows) for rows in measured.values()]}"
    wanted = [row for name in ("a", "b") for row in counted(stage, name)]
    return differing(wanted, measured[max(measured)])  # type: ignore[type-var]  # times


def counted(stage: Stage, name: str) -> list[tuple[object, ...]]:
    by_day: defaultdict[object, list[tuple[bytes | None, bytes | None]]] = defaultdict(list)
    for message in stage.received(name):
        record = message.key(), message.value()
        by_day[None].append(record)
        by_day[_date(message.timestamp()[1])].append(record)
    return [
        (
            stage.topic(name),
            day,
            len(records),
            sum(len(key or b"") + len(value or b"") for key, value in records),
            len({key for key, _ in records if key is not None}),
            sum(key is not None and value is None for key, value in records),
            len(records) - len(Counter(records)),
        )
        for day, records in by_day.items()
    ]


def _date(timestamp_ms: int) -> object:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).date()


CASES = (
    Case(
        name="storage",
        yaml=YAML,
        prepare=prepare,
        grow=grow,
        wrong=wrong,
        steps=("written", RANDOM_TIME),
    ),
)
