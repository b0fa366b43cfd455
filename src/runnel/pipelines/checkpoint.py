"""How far a pipeline is, as Spark's checkpoint says it: read without Spark.

`offsets/N` has what batch N was to read, written before it runs; `commits/N` says that it is done.
A batch that was planned and not done is run again, with the same range.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from runnel.spark.reads.offsets import Offsets
from runnel.types import TopicPartition


@dataclass(frozen=True)
class Reached:
    """Where the next batch begins."""

    batch: int | None  # the last that is done
    offsets: dict[TopicPartition, int]
    has_state: bool  # of aggregations, deduplication, sessions
    planned: int | None = None  # a batch that was begun and not done


def reached(checkpoint: Path) -> Reached:
    """Of nothing at all where there is no checkpoint."""
    done, planned = _newest(checkpoint / "commits"), _newest(checkpoint / "offsets")
    offsets = {} if done is None else _offsets(checkpoint / "offsets" / str(done))
    has_state = (checkpoint / "state").is_dir()
    is_open = planned is not None and (done is None or planned > done)
    return Reached(done, offsets, has_state, planned if is_open else None)


def _newest(folder: Path) -> int | None:
    if not folder.is_dir():
        return None
    return max((int(path.name) for path in folder.iterdir() if path.name.isdecimal()), default=None)


def _offsets(file: Path) -> dict[TopicPartition, int]:
    """Of all sources whose offsets have Kafka's shape; the first two lines are not offsets."""
    found: dict[TopicPartition, int] = {}
    try:
        lines = file.read_text().splitlines()[2:]
    except FileNotFoundError:  # Spark keeps only so many
        return found
    for line in lines:
        try:
            found |= Offsets.of(json.loads(line)).by_partition
        except (ValueError, TypeError, AttributeError):
            continue
    return found
