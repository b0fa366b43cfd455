"""Logs into their search index: every line is found, and stands there once."""

import json
import sqlite3

from runnel.logs.filters import Filters
from runnel.logs.index import Index
from runnel.logs.query import parse
from runnel.logs.search import search
from runnel.logs.segment import Segment
from tests.pipeline_faults.case import RANDOM_TIME, Case, Stage, differing

LINES = 5_000
YAML = """\
name: log-index
kind: log-index
from: {topic: "{prefix}logs", bootstrap: "{bootstrap}"}
options: {index: found, lines_per_batch: 2000}
"""


def prepare(stage: Stage) -> None:
    stage.create("logs", partitions=3)


def grow(stage: Stage) -> None:
    first = len(stage.sent)
    lines = [f"line {n} word{n % 13}" for n in range(first, first + LINES)]
    values = [json.dumps({"level": "info", "message": line}).encode() for line in lines]
    stage.send("logs", [(b"%d" % at, value, None) for at, value in enumerate(values)])
    stage.sent += lines


def wrong(stage: Stage) -> str:
    """What the segments hold, what their words point to, and what a search finds."""
    index = Index(stage.folder / "found", stage.topic("logs"))
    listed = index.listed()
    kept: list[str] = []
    pointers: list[tuple[int, int]] = []
    for info in listed.segments:
        with Segment(index.folder, info) as segment:
            kept += [json.loads(record.value)["message"] for record in segment.records()]
        with sqlite3.connect(index.folder / info.file) as database:
            rows = database.execute("SELECT rowid FROM words WHERE words MATCH 'line'")
            pointers += [(info.partition, offset) for (offset,) in rows]
    there = {info.file for info in listed.segments}
    extra = {path.name for path in index.folder.glob("*.seg")} - there
    messages = stage.received("logs")
    found = search(Filters(parse("word7")), index=index, source=None, limit=len(stage.sent))
    return (
        differing(stage.sent, kept)
        or differing([(each.partition(), each.offset()) for each in messages], pointers)
        or differing(
            [line for line in stage.sent if line.endswith(" word7")],
            [hit.line.message for hit in found.hits],
        )
        or (f"{len(extra)} segments in no list" if len(extra) > stage.rounds * 6 else "")
    )


CASES = (
    Case(
        "log-index",
        yaml=YAML,
        prepare=prepare,
        grow=grow,
        wrong=wrong,
        steps=("segment written", "all segments written", "index committed", RANDOM_TIME),
        victims=("driver", "broker"),
    ),
)
