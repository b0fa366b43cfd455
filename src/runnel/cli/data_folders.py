"""Naming a data folder, a topic in it and a range of offsets on the command line."""

import os
from pathlib import Path
from typing import Annotated

import typer

from runnel.cli.output import CommandError
from runnel.inspect.dumping import Range
from runnel.inspect.folders import FolderFiles, PartitionFiles, SegmentFiles, chosen, look_into
from runnel.native.records import MAX_OFFSET
from runnel.storage.files import OsDisk

Folder = Annotated[
    Path,
    typer.Argument(help="A data folder, or the folder of one partition.", metavar="FOLDER"),
]
Topic = Annotated[
    str | None,
    typer.Argument(help="Only this topic, or this partition of it.", metavar="TOPIC[-PARTITION]"),
]


def look(disk: OsDisk, folder: Path, topic: str | None) -> tuple[FolderFiles, list[PartitionFiles]]:
    if not folder.is_dir():
        raise CommandError(f"There is no folder {folder}: name a data folder (`log.dirs`).")
    try:
        found = look_into(disk, str(folder))
    except OSError as error:
        raise CommandError(f"{folder} cannot be read: {error.strerror}.") from error
    if found.meta is None and not found.partitions and not found.damaged:
        raise CommandError(f"{folder} is no data folder: it has no meta.properties and no logs.")
    partitions = chosen(found, topic)
    if topic is not None and not partitions:
        known = sorted({p.partition.topic for p in found.partitions})
        some = ", ".join(known[:8]) + (" and more" if len(known) > 8 else "")
        raise CommandError(f"{folder} has no topic or partition {topic}; it has: {some or 'none'}.")
    return found, partitions


def is_running(pid: int) -> bool:
    """Whether the process that left its number in the lock file is there."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def offset_range(text: str) -> Range:
    first, colon, before = text.partition(":")
    try:
        if not colon:
            return Range(int(first), int(first) + 1)
        return Range(int(first or 0), int(before or MAX_OFFSET))
    except ValueError:
        raise CommandError(
            f"--offsets takes FROM:TO, either of them or both, not {text}."
        ) from None


def segments_within(files: PartitionFiles, only: Range) -> list[SegmentFiles]:
    """The segments that may hold some of the offsets."""
    ends = [segment.base_offset for segment in files.segments[1:]] + [MAX_OFFSET]
    return [
        segment
        for segment, end in zip(files.segments, ends, strict=True)
        if end > only.first and segment.base_offset < only.before
    ]
