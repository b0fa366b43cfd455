"""Changes of a database, some of them again and late, into the rows that it has."""

import json
import random
from typing import Any

from tests.pipeline_faults.case import RANDOM_TIME, Case, Stage, differing

CHANGES = 1_500
KEYS = 200
YAML = """\
name: cdc
kind: cdc
from: {topic: "{prefix}customers", bootstrap: "{bootstrap}"}
to: {table: lake/customers}
options: {records_per_batch: 700, maintenance: {least_files: 2, every: 1s, expire_after: 0s}}
"""


def prepare(stage: Stage) -> None:
    stage.create("customers", partitions=2)


def grow(stage: Stage) -> None:
    """`stage.sent` has the rows that the database ends with, and how many changes there were."""
    chance = random.Random(stage.rounds)
    rows: dict[int, str] = dict(stage.sent[0]) if stage.sent else {}
    first = stage.sent[1] if stage.sent else 0
    records: list[tuple[bytes, bytes | None, None]] = []
    for lsn in range(first, first + CHANGES):
        id_ = chance.randrange(KEYS)
        key = json.dumps({"id": id_}).encode()
        source = {"lsn": lsn, "ts_ms": lsn // 4}
        before = {"id": id_, "name": rows[id_]} if id_ in rows else None
        change: dict[str, Any] = {"before": before, "after": None, "source": source, "op": "d"}
        if before is not None and chance.random() < 0.3:
            del rows[id_]
            records += [(key, json.dumps(change).encode(), None), (key, None, None)]
            continue
        rows[id_] = f"name {lsn}"
        change |= {"after": {"id": id_, "name": rows[id_]}, "op": "u" if before else "c"}
        records.append((key, json.dumps(change).encode(), None))
    half = len(records) // 2
    stage.send("customers", [*records[:half], *records[half // 2 :], (b"x", b"oops", None)])
    stage.sent = [rows, first + CHANGES]


def wrong(stage: Stage) -> str:
    rows: dict[int, str] = stage.sent[0]
    found = [(row["id"], row["name"]) for row in stage.table("lake/customers")]
    letters = [row["value"] for row in stage.table("lake/customers__dlq")]
    return differing(sorted(rows.items()), found) or differing([b"oops"] * stage.rounds, letters)


CASES = (
    Case(
        name="cdc",
        yaml=YAML,
        prepare=prepare,
        grow=grow,
        wrong=wrong,
        steps=("deletes noted", "merged", "rows merged"),
        victims=("worker",),
    ),
    Case(
        name="cdc-random",
        yaml=YAML.replace("name: cdc", "name: cdc-random"),
        prepare=prepare,
        grow=grow,
        wrong=wrong,
        steps=(RANDOM_TIME,),
    ),
)
