"""A topic into another without duplicates: each record once, those of a key in their order."""

import json
import random
from collections import defaultdict

from tests.pipeline_faults.case import RANDOM_TIME, Case, Stage, differing

ROWS = 2_000
KEYS = 50
YAML = """\
name: dedup
kind: dedup
from: {topic: "{prefix}in", bootstrap: "{bootstrap}", options: {maxOffsetsPerTrigger: 1200}}
options: {by: "json:id", within: 6 hours}
to: {topic: "{prefix}out"}
"""


def prepare(stage: Stage) -> None:
    stage.create("in", partitions=3)
    stage.create("out", partitions=2)


def grow(stage: Stage) -> None:
    """A third of them repeat one of the last hundreds, of this round or the one before."""
    draw = random.Random(stage.rounds)
    records = []
    for _ in range(ROWS):
        is_repeated = bool(stage.sent) and draw.random() < 0.33
        number = draw.choice(stage.sent[-700:]) if is_repeated else len(stage.sent)
        if not is_repeated:
            stage.sent.append(number)
        key = b"key %d" % (number % KEYS)
        records.append((key, json.dumps({"id": number}).encode(), None))
    stage.send("in", records)


def wrong(stage: Stage) -> str:
    found = stage.received("out")
    numbers = [json.loads(message.value())["id"] for message in found]
    if told := differing(stage.sent, numbers):
        return told
    order: defaultdict[bytes, list[int]] = defaultdict(list)
    for message, number in zip(found, numbers, strict=True):
        order[message.key()].append(number)
    mixed_up = [key for key, of_key in order.items() if of_key != sorted(of_key)]
    return f"OUT OF ORDER {mixed_up[:3]}" if mixed_up else ""


CASES = (
    Case(
        name="dedup",
        yaml=YAML,
        prepare=prepare,
        grow=grow,
        wrong=wrong,
        steps=("decision written", RANDOM_TIME),
    ),
)
