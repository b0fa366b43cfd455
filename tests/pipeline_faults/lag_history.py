"""Polls of groups into a table: each whole, and right, whenever the process dies."""

from collections import defaultdict

from confluent_kafka import Consumer, TopicPartition

from tests.pipeline_faults.case import Case, Stage

GROUPS, PARTITIONS = 5, 4
YAML = """\
name: lag-history
kind: lag-history
from: {bootstrap: "{bootstrap}"}
options: {groups: "^{prefix}", alert_lag: 100, alert_after: 1ms}
to: {table: lake/lags}
"""


def prepare(stage: Stage) -> None:
    stage.create("orders", partitions=PARTITIONS)


def grow(stage: Stage) -> None:
    stage.send("orders", [(b"%d" % n, b"", None) for n in range(200)])
    for number in range(GROUPS):
        consumer = Consumer(
            {"bootstrap.servers": stage.bootstrap, "group.id": stage.topic(f"{number}")}
        )
        places = [
            TopicPartition(stage.topic("orders"), index, number * stage.rounds)
            for index in range(PARTITIONS)
        ]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()


def wrong(stage: Stage) -> str:
    polls: defaultdict[object, list[dict[str, object]]] = defaultdict(list)
    for row in stage.table("lake/lags"):
        polls[row["polled_at"]].append(row)
    if len(polls) < stage.rounds:
        return f"{len(polls)} polls, in {stage.rounds} runs"
    for at, rows in polls.items():
        places = {(row["group_id"], row["partition"]) for row in rows}
        if len(rows) != GROUPS * PARTITIONS or len(places) != len(rows):
            return f"the poll of {at} has {len(rows)} rows, {len(places)} of them different"
        if any(row["lag"] != row["end_offset"] - row["committed_offset"] for row in rows):  # type: ignore[operator]  # numbers
            return f"the poll of {at} miscounts"
    last = polls[max(polls)]  # type: ignore[type-var]  # times
    committed = {
        int(str(row["group_id"]).rpartition("-")[2]): row["committed_offset"] for row in last
    }
    wanted = {number: number * (stage.rounds - 1) for number in range(GROUPS)}
    return "" if committed == wanted else f"committed is {committed}, not {wanted}"


CASES = (
    Case(
        name="lag-history",
        yaml=YAML,
        prepare=prepare,
        grow=grow,
        wrong=wrong,
        steps=("writing", "written", "table committed"),
        victims=("worker",),  # the process that comes to the step; there is no other
    ),
)
