"""Windows of traffic into a table: what they say is what plain Python counts, log by log."""

import random
from collections import defaultdict

from runnel.pipelines.streams.traffic_windows import Rules
from tests.pipeline_faults.case import RANDOM_TIME, Case, Stage, differing
from tests.support.traffic import Seen, windows_of

ROWS = 2_000
START_MS = 1_700_000_000_000
RULES = Rules(window_ms=60_000, late_after_ms=90_000, labels_max=5)
YAML = """\
name: traffic
kind: traffic
from: {topic: "{prefix}orders", bootstrap: "{bootstrap}", options: {maxOffsetsPerTrigger: 1200}}
options: {window: 1 minute, late_after: 90s, by: key, by_max: 5}
to: {table: lake/traffic}
"""


def prepare(stage: Stage) -> None:
    stage.create("orders", partitions=3, config={"retention.ms": "-1"})


def grow(stage: Stage) -> None:
    draw = random.Random(stage.rounds)
    now_ms = START_MS + stage.rounds * 3_000_000
    records = []
    for _ in range(ROWS):
        now_ms += draw.randrange(2000)
        at_ms = now_ms - draw.choice((0, 0, draw.randrange(200_000)))
        key = None if draw.random() < 0.1 else b"key %d" % draw.randrange(20)
        records.append((key, draw.randbytes(draw.randrange(2000)), at_ms))
    stage.send("orders", records)


def wrong(stage: Stage) -> str:
    logs: defaultdict[int, list[Seen]] = defaultdict(list)
    for message in stage.received("orders"):
        key, value = message.key(), message.value()
        size = len(key or b"") + len(value or b"")
        label = None if key is None else key.decode()
        logs[message.partition()].append(Seen(message.timestamp()[1], size, label))
    wanted = [
        (partition, *row[:-1]) for partition, log in logs.items() for row in windows_of(log, RULES)
    ]
    found = [
        (
            row["partition"],
            round(row["window_start"].timestamp() * 1000),
            *(row["label"], row["records"], row["bytes"]),
            *(row["p50_bytes"], row["p99_bytes"], row["late"]),
        )
        for row in stage.table("lake/traffic")
    ]
    return differing(wanted, found)


CASES = (
    Case(
        name="traffic",
        yaml=YAML,
        prepare=prepare,
        grow=grow,
        wrong=wrong,
        steps=("written", RANDOM_TIME),
    ),
)
