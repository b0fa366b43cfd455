"""What a stream gives: batches, their offsets, and where a restart goes on."""

import json
from itertools import pairwise

from tests.support.spark_stage import Case, Stage, as_row

COUNT = 30


def until_now(stage: Stage) -> object:
    """Everything that is there when it starts, in batches of a bounded size, then an end."""
    topic = stage.topic("bounded", 3)
    sent = stage.send(topic, COUNT, 3)
    stream = stage.stream(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=40)
    rows, batches = stage.drain(stream, "bounded")
    assert rows == [as_row("bounded", record) for record in sent]
    ends = [sum(batch["bounded"].values()) for batch in batches]
    assert ends[-1] == 90 and len(ends) >= 3
    assert all(after - before <= 43 for before, after in pairwise([0, *ends])), ends
    return rows, batches


def uneven_partitions(stage: Stage) -> object:
    """A bound is shared out by what waits in each partition, so that none is left behind."""
    topic = stage.topic("uneven", 3)
    for partitions, first, count in ((3, 0, 4), (2, 4, 20), (1, 24, 60)):
        stage.send(topic, count, partitions, first)
    stream = stage.stream(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=24)
    _, batches = stage.drain(stream, "uneven")
    assert batches[-1] == {"uneven": {"0": 84, "1": 24, "2": 4}}
    return batches


def restarts(stage: Stage) -> object:
    """A run goes on where the last one ended, though its options say `earliest`."""
    topic = stage.topic("restarted", 2)
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    if stage.format == "runnel":
        options["queryId"] = f"restarts-{topic}"
    first = stage.send(topic, 5, 2)
    runs = [stage.drain(stage.stream(**options), "restarted")]
    second = stage.send(topic, 5, 2, first=5)
    runs.append(stage.drain(stage.stream(**options), "restarted"))
    runs.append(stage.drain(stage.stream(**options), "restarted"))
    assert [run.rows for run in runs] == [
        [as_row("restarted", record) for record in first],
        [as_row("restarted", record) for record in second],
        [],
    ]
    return runs


def from_the_latest(stage: Stage) -> object:
    """The default of a stream: what was there before its first start is none of it."""
    topic = stage.topic("latest")
    options = {"subscribe": topic}
    if stage.format == "runnel":
        options["queryId"] = f"latest-{topic}"
    stage.send(topic, 4)
    before = stage.drain(stage.stream(**options), "latest")
    later = stage.send(topic, 3, first=4)
    after = stage.drain(stage.stream(**options), "latest")
    assert not before.rows
    assert after.rows == [as_row("latest", record) for record in later]
    return before, after


def from_given_offsets(stage: Stage) -> object:
    topic = stage.topic("given", 2)
    stage.send(topic, 10, 2)
    start = json.dumps({topic: {"0": 7, "1": -1}})
    found = stage.drain(stage.stream(subscribe=topic, startingOffsets=start), "given")
    assert [row[3:5] for row in found.rows] == [(0, 7), (0, 8), (0, 9)]
    return found


def tasks_of_a_batch(stage: Stage) -> object:
    topic = stage.topic("cut", 2)
    sent = stage.send(topic, 50, 2)
    stream = stage.stream(subscribe=topic, startingOffsets="earliest", minPartitions=7)
    rows, batches = stage.drain(stream, "cut")
    assert rows == [as_row("cut", record) for record in sent]
    return batches


CASES = [
    Case("availableNow in bounded batches", until_now),
    Case("maxOffsetsPerTrigger over uneven partitions", uneven_partitions),
    Case("a restart goes on from the checkpoint", restarts),
    Case("a stream starts at the latest", from_the_latest),
    Case("a stream starts at given offsets", from_given_offsets),
    Case("a stream with minPartitions", tasks_of_a_batch),
]
