"""What a read is made of: offsets of a partition for one task, and what all tasks have in common.

The driver plans with these and sends them to executors, so they pickle small; nothing here imports
pyspark or pyarrow.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from runnel.arrow.decoding import Decoding
from runnel.types import NO_TOPIC_ID, TopicId

COLUMNS: Final = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
)
POLL_TIMEOUT_MS: Final = 120_000


class Place(NamedTuple):
    """Where the files of a partition may be, see `locating`: on some executors they are not."""

    folders: tuple[str, ...]  # data folders, as `log.dirs` names them
    topic_id: TopicId  # by which the task knows that the files are of this topic


class Range(NamedTuple):
    """The work of one task."""

    topic: str
    partition: int
    start: int  # the next offset to read
    end: int  # exclusive
    place: Place | None = None  # where a task may find it as files; else the broker is asked
    topic_id: TopicId = NO_TOPIC_ID  # in a topic of another id the offsets mean nothing


@dataclass(frozen=True)
class Scan:
    """The same for all tasks of a read."""

    client: Mapping[str, str]  # `kafka.*` options without the prefix; has `bootstrap.servers`
    columns: tuple[str, ...] = COLUMNS[:-1]  # wanted, in order; `value` is all that `decode` makes
    read_committed: bool = False
    fail_on_data_loss: bool = True
    poll_timeout_ms: int = POLL_TIMEOUT_MS  # without progress; then the task fails
    read_mode: str = "auto"  # or `broker`, `local`
    path: str | None = None  # the data folder, for `local`
    decode: Decoding | None = None  # typed columns instead of `value`
    timestamps_ms: tuple[int, int] | None = None  # the least and the most: others may be left out
    believes_headers: bool = False  # no record is further from its batch's first than its span
