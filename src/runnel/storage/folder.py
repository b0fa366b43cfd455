"""The file names of one partition's folder: what belongs there, and what a crash left behind.

Rules (R32): `.deleted` and `.cleaned` files go; a `.swap` log finishes replacing the segments that
it covers, and what was indexed of it is made anew; an index without its log goes.
"""

import contextlib
import re
from typing import NamedTuple

from runnel.ports import Disk
from runnel.storage.checkpoints import LEADER_EPOCHS, PARTITION_METADATA
from runnel.storage.segment import INDEX, LOG, SNAPSHOT, SUFFIXES, TIME_INDEX, TXN_INDEX
from runnel.storage.trash import DELETED
from runnel.wire.batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader

CLEANED, SWAP, TMP = ".cleaned", ".swap", ".tmp"

_SEGMENT_FILE = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)")
_KNOWN = (LEADER_EPOCHS, PARTITION_METADATA)


class Notice(NamedTuple):
    """Something about the data that the operator should read."""

    path: str
    text: str


class FolderFiles(NamedTuple):
    folder: str
    bases: list[int]  # of the segments, ascending
    snapshots: list[int]
    names: set[str]
    replaced: bool  # a compaction was finished: nothing about this log may be taken for granted

    def remove_segment(self, disk: Disk, base_offset: int) -> None:
        """All files of it, snapshot and all. Raises OSError."""
        for suffix in SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                disk.remove(f"{self.folder}/{base_offset:020d}{suffix}")
        if base_offset in self.snapshots:
            self.snapshots.remove(base_offset)


def list_folder(disk: Disk, folder: str, notices: list[Notice]) -> FolderFiles:
    """Read the names, after finishing what was under way when the last writer went."""
    names = list(disk.list(folder))
    swapped = False
    if any(name.endswith((DELETED, CLEANED, SWAP, TMP)) for name in names):
        swapped = _finish_replacement(disk, folder, names, notices)
        names = list(disk.list(folder))
    found: dict[str, set[int]] = {suffix: set() for suffix in SUFFIXES}
    for name in names:
        match = _SEGMENT_FILE.fullmatch(name)
        if match:
            found[match[2]].add(int(match[1]))
        elif name not in _KNOWN:
            notices.append(Notice(f"{folder}/{name}", "not a file of a log: left alone"))
    for suffix in (INDEX, TIME_INDEX, TXN_INDEX):
        for base_offset in sorted(found[suffix] - found[LOG]):
            notices.append(Notice(f"{folder}/{base_offset:020d}{suffix}", "no log to it: removed"))
            disk.remove(f"{folder}/{base_offset:020d}{suffix}")
    return FolderFiles(folder, sorted(found[LOG]), sorted(found[SNAPSHOT]), set(names), swapped)


def _finish_replacement(disk: Disk, folder: str, names: list[str], notices: list[Notice]) -> bool:
    cleaned = [int(name[:20]) for name in names if name.endswith(CLEANED) and name[:20].isdecimal()]
    first_cleaned = min(cleaned, default=2**63)
    swapped = False
    for name in names:
        path = f"{folder}/{name}"
        base = name.removesuffix(LOG + SWAP)
        if base != name and base.isdecimal() and int(base) < first_cleaned:
            # Replacing is under way only once every cleaned file has become a swap file; a swap
            # file past a cleaned one belongs to a split that did not get so far (KAFKA-6264).
            _replace_segments(disk, folder, path, names)
            notices.append(Notice(path, "replaced the segments it covers"))
            swapped = True
    for name in names:
        path = f"{folder}/{name}"
        if name.endswith((DELETED, CLEANED, SWAP, TMP)) and disk.exists(path):
            disk.remove(path)
    disk.sync_dir(folder)
    return swapped


def _replace_segments(disk: Disk, folder: str, swap_path: str, names: list[str]) -> None:
    base_offset = int(swap_path.rpartition("/")[2][:20])
    next_offset = _next_offset(disk, swap_path, base_offset)
    for name in names:
        match = _SEGMENT_FILE.fullmatch(name)
        covered = match and match[2] != SNAPSHOT and base_offset <= int(match[1]) < next_offset
        if covered and disk.exists(f"{folder}/{name}"):
            disk.remove(f"{folder}/{name}")
    disk.rename(swap_path, swap_path.removesuffix(SWAP))


def _next_offset(disk: Disk, path: str, base_offset: int) -> int:
    file = disk.open(path)
    position, size, next_offset = 0, file.size(), base_offset + 1
    while position + HEADER_SIZE <= size:
        header = BatchHeader.read(file.read_at(position, HEADER_SIZE))
        if header.length < HEADER_SIZE - LOG_OVERHEAD:
            break
        next_offset = max(next_offset, header.next_offset)
        position += header.size
    return next_offset
