"""Sessions into a table: each that is over once, with all of its events."""

import random
from collections import Counter, defaultdict

from runnel.pipelines.streams.session_intervals import Session, merged
from tests.pipeline_faults.case import RANDOM_TIME, Case, Stage, differing

ROWS = 2_000
START_MS = 1_700_000_000_000
GAP_MS, WATERMARK_MS = 60_000, 600_000
YAML = """\
name: sessions
kind: sessions
from: {topic: "{prefix}clicks", bootstrap: "{bootstrap}", options: {maxOffsetsPerTrigger: 900}}
options: {gap: 1 minute, watermark: 10 minutes}
to: {table: lake/sessions}
"""


def prepare(stage: Stage) -> None:
    stage.create("clicks", partitions=2, config={"retention.ms": "-1"})


def grow(stage: Stage) -> None:
    """Events lie behind others by less than the watermark allows, whatever is read together."""
    draw = random.Random(stage.rounds)
    now_ms = START_MS + stage.rounds * 4_000_000
    records: list[tuple[bytes | None, bytes | None, int | None]] = []
    for _ in range(ROWS):
        now_ms += draw.randrange(3000)
        user = b"user %d" % draw.randrange(40)
        records.append((user, b"", now_ms - draw.randrange(120_000)))
    stage.sent.append([(key, at_ms) for key, _, at_ms in records])
    stage.send("clicks", records)


def over(events: list[tuple[bytes, int]], newest_ms: int) -> list[tuple[str, Session]]:
    times: defaultdict[bytes, list[int]] = defaultdict(list)
    for user, at_ms in events:
        times[user].append(at_ms)
    return [
        (user.decode(), session)
        for user, found in times.items()
        for session in merged([Session(at, at, 1) for at in found], GAP_MS)
        if session.end_ms + GAP_MS < newest_ms - WATERMARK_MS
    ]


def wrong(stage: Stage) -> str:
    """A run that is killed after its last batch tells what is over since then with the next."""
    found = [
        (
            row["key"],
            Session(
                round(row["session_start"].timestamp() * 1000),
                round(row["session_end"].timestamp() * 1000),
                row["events"],
            ),
        )
        for row in stage.table("lake/sessions")
    ]
    events = [event for round_ in stage.sent for event in round_]
    newest_ms = max(at_ms for _, at_ms in events)
    before_ms = max((at_ms for round_ in stage.sent[:-1] for _, at_ms in round_), default=0)
    told = Counter(found)
    if extra := told - Counter(over(events, newest_ms)):
        return f"TOO MANY {extra.total()}: {list(extra)[:2]}"
    if lost := Counter(over(events, before_ms)) - told:
        return f"LOST {lost.total()}: {list(lost)[:2]}"
    return "" if told else differing([1], [])


CASES = (
    Case(
        name="sessions",
        yaml=YAML,
        prepare=prepare,
        grow=grow,
        wrong=wrong,
        steps=("table committed", RANDOM_TIME),
    ),
)
