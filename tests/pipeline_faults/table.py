"""A topic into a table, decoded and transformed; the broker is killed as well."""

import json

from tests.pipeline_faults.case import DISK, RANDOM_TIME, Case, Stage, differing

ROWS = 4_000
YAML = """\
name: table
from: {topic: "{prefix}orders", bootstrap: "{bootstrap}", options: {maxOffsetsPerTrigger: 1500}}
decode: {format: json, schema: "id BIGINT, amount DOUBLE", bad_records: skip}
transform: {sql: "select id, amount * 2 as twice, partition from input where id % 10 != 0"}
to: {table: lake/orders, format: delta, partition_by: [partition]}
"""


def prepare(stage: Stage) -> None:
    stage.create("orders", partitions=3)


def grow(stage: Stage) -> None:
    first = len(stage.sent)
    numbers = range(first, first + ROWS)
    stage.send(
        "orders",
        [
            (
                b"%d" % n,
                b"oops" if n % 97 == 0 else json.dumps({"id": n, "amount": n / 4}).encode(),
                None,
            )
            for n in numbers
        ],
    )
    stage.sent += numbers


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
