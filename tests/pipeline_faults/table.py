"""A topic into a table, decoded and transformed; the broker is killed as well."""

import json
import random

from tests.pipeline_faults.case import DISK, RANDOM_TIME, Case, Stage, differing

ROWS = 4_000
YAML = """\
name: table
from: {topic: "{prefix}orders", bootstrap: "{bootstrap}", options: {maxOffsetsPerTrigger: 1500}}
decode: {format: json, schema: "id BIGINT, amount DOUBLE, note STRING", bad_records: skip}
transform: {sql: "select id, amount * 2 as twice, note, partition from input where id % 10 != 0"}
to: {table: lake/orders, format: delta, partition_by: [partition]}
"""


def prepare(stage: Stage) -> None:
    stage.create("orders", partitions=3)


def grow(stage: Stage) -> None:
    first = len(stage.sent)
    numbers = range(first, first + ROWS)
    stage.send("orders", [(b"%d" % n, value_of(n), None) for n in numbers])
    stage.sent += numbers


def value_of(number: int) -> bytes:
    """With a note that does not compress, so that files have some size."""
    if number % 97 == 0:
        return b"oops"
    note = random.Random(number).randbytes(150).hex()
    return json.dumps({"id": number, "amount": number / 4, "note": note}).encode()


def wrong(stage: Stage) -> str:
    wanted = [(n, n / 2) for n in stage.sent if n % 10 and n % 97]
    return differing(wanted, [(row["id"], row["twice"]) for row in stage.table("lake/orders")])


CASES = (
    Case(
        name="table",
        yaml=YAML,
        prepare=prepare,
        grow=grow,
        wrong=wrong,
        steps=("written", "table committed", RANDOM_TIME),
        victims=("driver", "broker", DISK),
    ),
)
