"""Where the log of a partition lies on this machine, and which files it is made of.

A compaction may be under way, or have been when the owner was killed. Replaced segments are gone
before the new one has its name, so for a moment (or until the next start) what covers an offset is
a `.swap` file: it is taken as the segment whose name it will have. A `.swap` file past a `.cleaned`
one belongs to a replacement that was not begun (see `storage.folder`), and is nothing.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from runnel.errors import RunnelError
from runnel.ports import Disk
from runnel.storage.checkpoints import PARTITION_METADATA, decode_partition_metadata
from runnel.storage.data_folder import read_data_folder
from runnel.storage.folder import CLEANED, SWAP, Notice
from runnel.storage.segment import LOG, SNAPSHOT
from runnel.types import NO_TOPIC_ID, TopicId, TopicPartition

_LOG_FILE = re.compile(r"(\d{20})\.(log|snapshot)(\.swap|\.cleaned)?")


class LogFile(NamedTuple):
    base_offset: int
    ending: str  # of its names: none, or `.swap`

    def name(self, suffix: str = LOG) -> str:
        return f"{self.base_offset:020d}{suffix}{self.ending}"


class LogNames(NamedTuple):
    """In the order of their offsets."""

    segments: list[LogFile]
    snapshots: list[int]


def split_path(path: str) -> list[str]:
    """`path` names data folders as `log.dirs` does: one, or several between commas."""
    return [each.strip().rstrip("/") or "/" for each in path.split(",") if each.strip()]


def folder_of(disk: Disk, folders: Sequence[str], partition: TopicPartition) -> str | None:
    """None if none of the data folders has it. A copy that was being made of it does not count.

    Raises OSError.
    """
    for folder in folders:
        if disk.exists(f"{folder}/{partition}"):
            return f"{folder}/{partition}"
    ignored: list[Notice] = []
    for folder in folders:
        if not disk.exists(folder):
            continue
        for name, whose in read_data_folder(disk, folder, ignored).moved:
            if whose == partition:  # complete, and the old one is gone: see `storage.future_log`
                return f"{folder}/{name}"
    return None


def topic_id_in(disk: Disk, folder: str) -> TopicId:
    """NO_TOPIC_ID where the file is missing, damaged or of a later release. Raises OSError."""
    path = f"{folder}/{PARTITION_METADATA}"
    try:
        return decode_partition_metadata(disk.read_whole(path), path)
    except (FileNotFoundError, NotADirectoryError, ValueError, RunnelError):
        return NO_TOPIC_ID


def list_log(disk: Disk, folder: str) -> LogNames:
    """Raises OSError."""
    found: dict[str, set[int]] = {"": set(), SWAP: set(), CLEANED: set(), SNAPSHOT: set()}
    for name in disk.list(folder):
        match = _LOG_FILE.fullmatch(name)
        if match is None:
            continue
        kind = SNAPSHOT if match[2] == SNAPSHOT[1:] else match[3] or ""
        if kind != SNAPSHOT or match[3] is None:
            found[kind].add(int(match[1]))
    first_cleaned = min(found[CLEANED], default=2**63)
    swapped = {base for base in found[SWAP] - found[""] if base < first_cleaned}
    segments = [LogFile(base, SWAP if base in swapped else "") for base in found[""] | swapped]
    return LogNames(sorted(segments), sorted(found[SNAPSHOT]))
