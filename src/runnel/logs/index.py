"""The search index of a topic: a folder with segments, and a list that says which of them count.

`index.json` is replaced as a whole, so a reader sees the index before or after a change, never
between. A segment covers a range of offsets of a partition, and no two of them overlap: whoever
indexes the same records again, after a crash or beside another, finds them covered, and what it
made is thrown away. That is what makes every line stand in the index once.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from runnel.logs.segment import (
    SUFFIX,
    UNFINISHED,
    LogIndexError,
    Segment,
    SegmentInfo,
    SegmentWriter,
    discard,
)

FORMAT: Final = 2
LIST: Final = "index.json"
DEFAULT_FOLDER: Final = ".runnel/logs"
SEGMENT_LINES: Final = 500_000  # at most, in one that is made of a topic
MERGED_LINES: Final = 1_000_000  # at most, in one that is made of others
MERGED_SIZES: Final = (1000, 8000, 64_000, 512_000)  # in lines
MERGED_COUNT: Final = 8  # at least so many become one, if that is of the next size,
MERGED_COUNT_MAX: Final = 64  # or so many, however small they are
ABANDONED_S: Final = 6 * 3600.0  # after that a file that is in no list is nobody's work


class Span(NamedTuple):
    """start <= offset < end."""

    start: int
    end: int


@dataclass(frozen=True)
class Listed:
    """What `index.json` says."""

    topic: str
    topic_id: str = ""  # in hexadecimal digits; empty if the broker has none
    segments: tuple[SegmentInfo, ...] = ()  # by partition and offset
    batches: Mapping[str, int] = field(default_factory=dict)  # the last of each query of Spark

    @property
    def lines(self) -> int:
        return sum(info.lines for info in self.segments)

    @property
    def size_bytes(self) -> int:
        return sum(info.size_bytes for info in self.segments)

    def of(self, partition: int) -> list[SegmentInfo]:
        return [info for info in self.segments if info.partition == partition]

    def covered(self, partition: int) -> list[Span]:
        """In order, neighbours as one."""
        spans: list[Span] = []
        for info in self.of(partition):
            if spans and spans[-1].end == info.start:
                spans[-1] = Span(spans[-1].start, info.end)
            else:
                spans.append(Span(info.start, info.end))
        return spans

    def missing(self, partition: int, start: int, end: int) -> list[Span]:
        """The parts of a range that no segment covers, in order."""
        found: list[Span] = []
        for span in self.covered(partition):
            if span.start > start and start < end:
                found.append(Span(start, min(span.start, end)))
            start = max(start, span.end)
        if start < end:
            found.append(Span(start, end))
        return found


class Index:
    """Of one topic, in a folder below `root` that bears its name."""

    def __init__(self, root: Path, topic: str) -> None:
        self.topic = topic
        self.folder = root / topic

    @property
    def _rebuild(self) -> str:
        return f"run `runnel logs index {self.topic} --rebuild`"

    @property
    def exists(self) -> bool:
        return (self.folder / LIST).exists()

    def listed(self) -> Listed:
        """As it is now; empty if there is none. Raises LogIndexError."""
        path = self.folder / LIST
        try:
            document = json.loads(path.read_bytes())
        except FileNotFoundError:
            return Listed(self.topic)
        except OSError as error:
            raise LogIndexError(f"{path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise LogIndexError(f"{path} cannot be read ({error}): {self._rebuild}") from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise LogIndexError(f"{path} is of another version of Runnel: {self._rebuild}")
        try:
            rows = [SegmentInfo(**row) for row in document["segments"]]
            return Listed(document["topic"], document["topic_id"], tuple(rows), document["batches"])
        except (KeyError, TypeError) as error:
            raise LogIndexError(f"{path} is damaged ({error}): {self._rebuild}") from None

    def commit(
        self,
        add: Sequence[SegmentInfo],
        remove: Sequence[SegmentInfo] = (),
        *,
        topic_id: str = "",
        batch: tuple[str, int] | None = None,
    ) -> list[SegmentInfo]:
        """Take in what is new and forget what it replaces; returns what was taken in.

        What overlaps what is there already is deleted: somebody else was faster. Raises
        LogIndexError if the index is of a topic of the same name that was deleted since.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._alone():
            before = self.listed()
            self.ensure_same(before, topic_id)
            gone = {info.file for info in remove}
            kept = [info for info in before.segments if info.file not in gone]
            taken: list[SegmentInfo] = []
            replaced = len(before.segments) - len(kept) == len(gone)
            for info in sorted(add, key=_place):
                if replaced and not any(_overlap(info, other) for other in (*kept, *taken)):
                    taken.append(info)
                else:
                    discard(self.folder, info)
            if gone and not (taken or not add):
                return []  # a merge that came too late: what it would have replaced stays
            batches = dict(before.batches) | ({batch[0]: batch[1]} if batch else {})
            self._write(
                replace(
                    before,
                    topic_id=topic_id or before.topic_id,
                    segments=tuple(sorted((*kept, *taken), key=_place)),
                    batches=batches,
                )
            )
            for info in remove:
                discard(self.folder, info)
            return taken

    def ensure_same(self, listed: Listed, topic_id: str) -> None:
        """Raises LogIndexError if the topic was deleted and made anew since it was indexed."""
        if topic_id and listed.topic_id and topic_id != listed.topic_id:
            raise LogIndexError(
                f"{self.folder} is the index of an earlier topic {self.topic}, which was deleted:"
                f" {self._rebuild}"
            )

    def expire(self, log_starts: Mapping[int, int]) -> int:
        """Forget segments whose records the topic has deleted; how many lines that were."""
        gone = [
            info
            for info in self.listed().segments
            if info.partition in log_starts and info.end <= log_starts[info.partition]
        ]
        if gone:
            self.commit([], gone)
        return sum(info.lines for info in gone)

    def merge(self) -> int:
        """Make one of several small neighbours, once; how many went into it."""
        run = next(iter(_mergeable(self.listed())), None)
        if run is None:
            return 0
        with SegmentWriter(self.folder, run[0].partition, run[0].start) as writer:
            for info in run:
                with Segment(self.folder, info) as segment:
                    writer.add(segment.records())
            made = writer.finish(run[-1].end)
        return len(run) if self.commit([made], run) else 0

    def sweep(self) -> None:
        """Delete files that a crash has left: those in no list, if they are old."""
        if not self.folder.exists():
            return
        known = {info.file for info in self.listed().segments}
        for path in self.folder.iterdir():
            if path.suffix in (SUFFIX, UNFINISHED) and path.name not in known:
                try:
                    if time.time() - path.stat().st_mtime > ABANDONED_S:
                        path.unlink()
                except FileNotFoundError:
                    continue

    def remove(self) -> None:
        """All of it: to build it anew."""
        if not self.folder.exists():
            return
        with self._alone():
            for path in self.folder.iterdir():
                if path.suffix in (SUFFIX, UNFINISHED) or path.name == LIST:
                    path.unlink(missing_ok=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _write(self, listed: Listed) -> None:
        document = {
            "format": FORMAT,
            "topic": listed.topic,
            "topic_id": listed.topic_id,
            "batches": listed.batches,
            "segments": [info._asdict() for info in listed.segments],
        }
        path = self.folder / (LIST + ".new")
        with path.open("w") as file:
            json.dump(document, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        path.rename(self.folder / LIST)
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _place(info: SegmentInfo) -> tuple[int, int]:
    return info.partition, info.start


def _overlap(one: SegmentInfo, other: SegmentInfo) -> bool:
    return one.partition == other.partition and one.start < other.end and other.start < one.end


def _mergeable(listed: Listed) -> Iterator[list[SegmentInfo]]:
    """Runs of small neighbours that make one of the next size: a line is merged a few times in
    all, not each time that others come.
    """
    for limit in MERGED_SIZES:
        for partition in sorted({info.partition for info in listed.segments}):
            run: list[SegmentInfo] = []
            for info in listed.of(partition):
                total = sum(each.lines for each in run) + info.lines
                if run and (run[-1].end != info.start or total > MERGED_LINES):
                    run, total = [], info.lines
                if info.lines > limit:
                    run = []
                    continue
                run.append(info)
                grown = len(run) >= MERGED_COUNT and total > limit
                if grown or len(run) == MERGED_COUNT_MAX:
                    yield run
                    run = []
