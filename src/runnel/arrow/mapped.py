"""The files that hold a range of offsets, opened together and mapped into memory.

What is open stays readable whatever its owner does to the name: retention, compaction and a deleted
topic rename and remove files, they never write into them. What is looked up by name is another
matter, so the topic's id is read before and after: a topic that was made anew in between has
another, and ids never come back.

Nothing is read past what the caller asks for. That matters at the end of the last file, where the
owner may be writing, or may cut off what it had reserved: to touch a page that was cut off kills
the process. Below the high watermark nothing is ever cut.
"""

import mmap
from contextlib import suppress
from functools import cached_property
from typing import Final

from runnel.arrow.log_files import LogFile, list_log, topic_id_in
from runnel.ports import Disk
from runnel.storage.index import position_in
from runnel.storage.segment import INDEX
from runnel.types import TopicId
from runnel.wire.batch import HEADER_SIZE, MAGIC, BatchHeader, crc_is_right

OPEN_FILES_MAX: Final = 256  # of one range at a time; what follows is opened when it is reached
LET_GO_BYTES: Final = 64 << 20
TRIES_MAX: Final = 5  # to open what a compaction is replacing
_REFUSED: Final = (AttributeError, OSError, ValueError)  # advice that this system does not take


class GoneError(Exception):
    """The files of this offset are not, or no longer, where they were. The message says why."""


class MappedSegment:
    """Whole, as it was when it was opened; an empty one has no bytes."""

    def __init__(self, disk: Disk, folder: str, name: LogFile) -> None:
        """Raises OSError."""
        self.path = f"{folder}/{name.name()}"
        self.base_offset = name.base_offset
        self._disk = disk
        self._index_path = f"{folder}/{name.name(INDEX)}"
        self._file = disk.open(self.path)
        self._size = self._file.size()
        self._mapped: mmap.mmap | None = None
        self._let_go_up_to = 0
        self._index = self._read_index()

    @cached_property
    def data(self) -> memoryview:
        """All of it, mapped when first asked for: address space may be limited. Raises OSError."""
        if not self._size:
            return memoryview(b"")
        self._mapped = mmap.mmap(self._file.fileno(), self._size, mmap.MAP_SHARED, mmap.PROT_READ)
        with suppress(*_REFUSED):
            self._mapped.madvise(mmap.MADV_SEQUENTIAL)
        return memoryview(self._mapped)

    def read_up_to(self, position: int) -> None:
        """What lies before need not count as memory of this process any more."""
        if self._mapped is not None and position - self._let_go_up_to > LET_GO_BYTES:
            position -= position % mmap.PAGESIZE
            with suppress(*_REFUSED):
                self._mapped.madvise(
                    mmap.MADV_DONTNEED, self._let_go_up_to, position - self._let_go_up_to
                )
            self._let_go_up_to = position

    def read_sparsely(self) -> None:
        """Of what is not in memory only the pages that are looked at are wanted."""
        if len(self.data) and self._mapped is not None:
            with suppress(*_REFUSED):
                self._mapped.madvise(mmap.MADV_RANDOM)

    def close(self) -> None:
        """Whatever still looks at `data` keeps the mapping."""
        self.__dict__.pop("data", None)
        self._mapped = None
        self._file.close()

    def _read_index(self) -> bytes:
        """None is needed: then the batches are walked from the first on."""
        with suppress(OSError):
            return self._disk.read_whole(self._index_path)
        return b""

    def position_near(self, offset: int, *, verify_crc: bool = True) -> int:
        """A batch starts here, and all that end before it end before `offset`."""
        position = position_in(self._index, self.base_offset, offset)
        header = self.header_at(position) if position > 0 else None
        if (
            header is None
            or not self.base_offset <= header.base_offset <= offset
            or (verify_crc and not crc_is_right(header, self.data, position))
        ):
            return 0  # there is no entry, or one that a crash left
        return position

    def header_at(self, position: int) -> BatchHeader | None:
        """None where no whole batch stands, as at the end of what is written."""
        left = len(self.data) - position
        if left < HEADER_SIZE:
            return None
        header = BatchHeader.read(self.data, position)
        if header.magic != MAGIC or not HEADER_SIZE <= header.size <= left:
            return None
        return header


class MappedLog:
    """The segments of a partition from the one that holds `start` on."""

    def __init__(self, disk: Disk, folder: str, topic_id: TopicId, start: int, end: int) -> None:
        """Opens those that hold the range. Raises GoneError, OSError."""
        self.folder = folder
        self._disk = disk
        self._topic_id = topic_id
        self._segments: list[MappedSegment] = []
        self._opened(start, end)

    def segment(self, slot: int) -> MappedSegment | None:
        """By its place from the first one on; None after the last. Raises GoneError, OSError."""
        if slot == len(self._segments):
            last = self._segments[-1].base_offset
            self._opened(last + 1, last + 2)
        return self._segments[slot] if slot < len(self._segments) else None

    def _opened(self, start: int, end: int) -> None:
        """Tried again where a name went between the look at the folder and the file's opening."""
        failure: OSError | None = None
        for _ in range(TRIES_MAX):
            try:
                return self._open(start, end)
            except FileNotFoundError as error:
                failure = error
        raise GoneError(f"{failure}")

    def _open(self, start: int, end: int) -> None:
        self._ensure_same_topic()
        wanted = self._wanted(start, end)
        opened = [MappedSegment(self._disk, self.folder, name) for name in wanted]
        if wanted and _bases(self._wanted(start, end)) != _bases(wanted):
            # A listing may miss a file that is renamed while it goes on, under either name.
            raise FileNotFoundError(f"{self.folder} changes too quickly")
        self._ensure_same_topic()
        self._segments += opened

    def _wanted(self, start: int, end: int) -> list[LogFile]:
        names = list_log(self._disk, self.folder).segments
        if self._segments:
            last = self._segments[-1].base_offset
            return [name for name in names if name.base_offset > last][:1]
        before = [name for name in names if name.base_offset <= start]
        if not before:
            first = names[0].base_offset if names else None
            raise GoneError(f"{self.folder} begins at offset {first}, not at {start}")
        within = [name for name in names if start < name.base_offset < end]
        return [before[-1], *within][:OPEN_FILES_MAX]

    def _ensure_same_topic(self) -> None:
        found = topic_id_in(self._disk, self.folder)
        if found != self._topic_id:
            raise GoneError(f"{self.folder} is that of another topic of this name")


def _bases(names: list[LogFile]) -> list[int]:
    return [name.base_offset for name in names]
