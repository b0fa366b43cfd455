"""What a batch read gives: rows, columns, where it starts and ends, how it is cut into tasks."""

import json
from collections.abc import Sequence

from tests.support.spark_stage import FIRST_MS, Case, Stage, as_row, rows_of

PARTITIONS, COUNT = 3, 25


def rows_and_columns(stage: Stage) -> object:
    topic = stage.topic("all", PARTITIONS)
    sent = stage.send(topic, COUNT, PARTITIONS)
    frame = stage.read(subscribe=topic)
    rows = rows_of(stage, frame)
    assert rows == [as_row("all", record) for record in sent]
    return rows, frame.schema.jsonValue()


def headers(stage: Stage) -> object:
    topic = stage.topic("headers")
    sent = stage.send(topic, COUNT)
    frame = stage.read(subscribe=topic, includeHeaders="true")
    found = [row.headers for row in frame.orderBy("offset").collect()]
    seen = [
        row and [(header.key, header.value and bytes(header.value)) for header in row]
        for row in found
    ]
    assert seen == [list(record.headers) or None for record in sent]
    return seen, frame.schema.jsonValue()


def offsets_by_json(stage: Stage) -> object:
    topic = stage.topic("ranges", PARTITIONS)
    sent = stage.send(topic, COUNT, PARTITIONS)
    frame = stage.read(
        subscribe=topic,
        startingOffsets=json.dumps({topic: {"0": 5, "1": -2, "2": 20}}),
        endingOffsets=json.dumps({topic: {"0": 8, "1": 4, "2": -1}}),
    )
    rows = rows_of(stage, frame)
    bounds = {0: range(5, 8), 1: range(0, 4), 2: range(20, COUNT)}
    wanted = [record for record in sent if record.offset in bounds[record.partition]]
    assert rows == [as_row("ranges", record) for record in wanted]
    return rows


def offsets_by_time(stage: Stage) -> object:
    """One time for all goes before times for each, and those before offsets."""
    topic = stage.topic("times", PARTITIONS)
    stage.send(topic, COUNT, PARTITIONS)
    start, end = FIRST_MS + 4_000, FIRST_MS + 9_001
    by_partition = {str(index): start + 1_000 * index for index in range(PARTITIONS)}
    seen = []
    for options in (
        {"startingTimestamp": start, "endingTimestamp": end},
        {"startingOffsetsByTimestamp": json.dumps({topic: by_partition})},
        {
            "startingTimestamp": start,
            "startingOffsetsByTimestamp": json.dumps({topic: by_partition}),
            "startingOffsets": "earliest",
            "endingOffsets": json.dumps({topic: {"0": 1, "1": 1, "2": 1}}),
            "endingTimestamp": end,
        },
    ):
        rows = rows_of(stage, stage.read(subscribe=topic, **options))
        seen.append([(row[3], row[4]) for row in rows])
    assert seen[0] == seen[2] != seen[1]
    assert seen[0] == [
        (index, offset)
        for index in range(PARTITIONS)
        for offset in range(COUNT)
        if start <= FIRST_MS + 1000 * offset + index < end
    ]
    return seen


def times_after_the_end(stage: Stage) -> object:
    """An end that no record reaches is the end of the log."""
    topic = stage.topic("late")
    stage.send(topic, COUNT)
    late = FIRST_MS + 1_000_000
    to_the_end = stage.read(subscribe=topic, startingTimestamp=FIRST_MS, endingTimestamp=late)
    return to_the_end.count()


def several_topics(stage: Stage) -> object:
    first, second = stage.topic("several-a", 2), stage.topic("several-b", 2)
    stage.send(first, 4, 2)
    stage.send(second, 4, 2)
    wanted = json.dumps({first: [1], second: [0]})
    pattern = f"{first}|several-b-{stage.format}.*"
    seen = {
        "subscribe": places(stage, stage.read(subscribe=f"{first}, {second}")),
        "assign": places(stage, stage.read(assign=wanted)),
        "pattern": places(stage, stage.read(subscribePattern=pattern)),
    }
    assert len(seen["subscribe"]) == len(seen["pattern"]) == 16
    assert len(seen["assign"]) == 8
    return seen


def tasks(stage: Stage) -> object:
    """Offsets of one partition are cut into several tasks, and no row is lost at the cuts."""
    topic = stage.topic("tasks", 2)
    stage.send(topic, 40, 2)
    seen = []
    for options in ({}, {"minPartitions": 8}, {"maxRecordsPerPartition": 7}):
        frame = stage.read(subscribe=topic, **options)
        rows = places(stage, frame)
        assert len(rows) == len(set(rows)) == 80
        seen.append(frame.rdd.getNumPartitions())
    assert seen[:2] == [2, 8]
    # The connector of 4.2 leaves a batch read as it is; what it documents is done here.
    assert seen[2] >= (12 if stage.format == "runnel" else 2), seen
    return seen[:2]


def committed_only(stage: Stage) -> object:
    """Records of an aborted transaction, and the markers of both, are no rows."""
    topic = stage.topic("transactions")
    stage.transact(topic, ["a1", "a2"], commit=True)
    stage.transact(topic, ["lost"], commit=False)
    stage.transact(topic, ["b1"], commit=True)
    seen = {
        level: [
            (bytes(row.value), row.offset)
            for row in stage.read(subscribe=topic, kafka_isolation_level=level)
            .orderBy("offset")
            .collect()
        ]
        for level in ("read_committed", "read_uncommitted")
    }
    assert [value for value, _ in seen["read_committed"]] == [b"a1", b"a2", b"b1"]
    assert [value for value, _ in seen["read_uncommitted"]] == [b"a1", b"a2", b"lost", b"b1"]
    return seen


def deleted_records(stage: Stage) -> object:
    """What retention has taken is read over if asked for; see the cases of errors for the other."""
    topic = stage.topic("deleted")
    stage.send(topic, COUNT)
    stage.delete_records(topic, 10)
    frame = stage.read(
        subscribe=topic,
        startingOffsets=json.dumps({topic: {"0": 3}}),
        failOnDataLoss="false",
    )
    seen = places(stage, frame)
    assert seen == [("deleted", 0, offset) for offset in range(10, COUNT)]
    return seen


def empty_topic(stage: Stage) -> object:
    frame = stage.read(subscribe=stage.topic("empty", 2))
    assert frame.count() == 0
    return frame.collect()


def places(stage: Stage, frame: object) -> Sequence[tuple[object, object, object]]:
    return [(row[2], row[3], row[4]) for row in rows_of(stage, frame)]  # type: ignore[arg-type]  # a DataFrame


CASES = [
    Case("rows and columns", rows_and_columns),
    Case("headers", headers),
    Case("starting and ending offsets", offsets_by_json),
    Case("starting and ending times, and what goes first", offsets_by_time),
    Case("an ending time after the last record", times_after_the_end),
    Case("subscribe, assign, subscribePattern", several_topics),
    Case("minPartitions and maxRecordsPerPartition", tasks),
    Case("read_committed and read_uncommitted", committed_only),
    Case("failOnDataLoss=false over deleted records", deleted_records),
    Case("an empty topic", empty_topic),
]
