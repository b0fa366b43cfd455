"""`runnel sql` over local segments: a count as a user types it, an hour of a day.

Only Runnel has these; the connector's column stays empty.
"""

import subprocess
import sys

from bench.model import Measure
from bench.spark.data import COUNTED, TIMES
from bench.spark.model import RUNNEL, Cell, Stage, Topic, timed
from runnel.query import Connection, Result

SQL_COUNT = "runnel sql, count of 10 M records of 100 B"
SQL_HOUR = "runnel sql, one hour of 24"
SQL_HOUR_MORE = "runnel sql, one hour of 24, read beyond it"
HOUR, HOUR_MS = 11, 3_600_000
PATIENCE_S = 120.0


def _count(stage: Stage, target: str) -> float | None:
    """Seconds, from the start of the process to its end."""
    if target != RUNNEL:
        return None
    topic = stage.topics[COUNTED]
    command = [sys.executable, "-m", "runnel", "sql", f'select count(*) as n from "{topic.name}"']
    with timed() as seconds:
        done = subprocess.run(
            [*command, "--format", "csv", "-b", stage.broker.bootstrap],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    assert done.stdout == f"n\n{topic.records}\n", done.stdout + done.stderr
    return seconds[0]


def _hour(stage: Stage, topic: Topic) -> Result:
    """Every value of the hour is looked at."""
    first_us = (topic.first_ms + HOUR * HOUR_MS) * 1000
    with Connection(stage.broker.bootstrap) as connection:
        result = connection.sql(
            f'select count(*), max(length(value)) from raw."{topic.name}" where timestamp >='
            f" make_timestamptz({first_us}) and timestamp <"
            f" make_timestamptz({first_us + HOUR_MS * 1000})"
        )
        ((rows, _),) = result.fetchall()
    share = rows / topic.records * 24
    assert 0.98 < share < 1.02, f"{rows:,} rows are no hour of {topic.records:,}"
    assert not result.figures.fetched_bytes, "not read from files"
    return result


def _hour_s(stage: Stage, target: str) -> float | None:
    if target != RUNNEL:
        return None
    with timed() as seconds:
        _hour(stage, stage.topics[TIMES])
    return seconds[0]


def _hour_more(stage: Stage, target: str) -> float | None:
    """Per cent of the bytes of the hour that were read besides them, the sample of columns too."""
    if target != RUNNEL:
        return None
    topic = stage.topics[TIMES]
    folders = stage.broker.data_dir.glob(f"{topic.name}-?")
    total = sum(path.stat().st_size for folder in folders for path in folder.glob("*.log"))
    return (_hour(stage, topic).figures.bytes_read / (total / 24) - 1) * 100


SQL_CELLS = (
    Cell(Measure(SQL_COUNT, "s"), _count, (COUNTED,)),
    Cell(Measure(SQL_HOUR, "s"), _hour_s, (TIMES,)),
    Cell(Measure(SQL_HOUR_MORE, "%"), _hour_more, (TIMES,)),
)
