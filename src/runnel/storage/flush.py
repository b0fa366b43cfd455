"""The blocking part of making a log durable.

A `Flush` is collected on the loop, run anywhere, and handed back to its log on the loop. While it
runs it touches files and its own fields alone, so appends go on beside it.
"""

import contextlib
from collections.abc import Sequence

from runnel.ports import Disk, File
from runnel.storage.checkpoints import LEADER_EPOCHS, replace_file
from runnel.storage.files import write_all
from runnel.storage.index import IndexWrite


class Flush:
    """Everything before `next_offset` is durable once `run` has returned with `error` None.

    A failed fsync says nothing about what reached the disk and the kernel may forget the failure,
    so it is never tried again: `Log.end_flush` takes the log offline.
    """

    __slots__ = (
        "_disk", "_files", "_folder", "_folders", "epochs", "error", "generation", "index_writes",
        "next_offset", "paths",
    )  # fmt: skip

    def __init__(
        self, disk: Disk, folder: str, generation: int, next_offset: int, files: Sequence[File]
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._files = files
        self._folders: list[str] = []
        self.generation = generation
        self.next_offset = next_offset
        self.index_writes: list[IndexWrite] = []
        self.paths: list[str] = []  # small files written without a sync
        self.epochs: bytes | None = None
        self.error: OSError | None = None

    def sync_folders(self, *folders: str) -> None:
        self._folders.extend(folders)

    def run(self) -> None:
        try:
            for file in self._files:
                file.sync()
            for write in self.index_writes:
                write_index(self._disk, write)
            for path in self.paths:
                self._sync_path(path)
            if self.epochs is not None:
                replace_file(self._disk, self._folder, LEADER_EPOCHS, self.epochs)
            for folder in self._folders:
                self._disk.sync_dir(folder)
        except OSError as error:
            self.error = error

    def _sync_path(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # retention or a truncation took it since
            self._disk.open(path).sync()


def write_index(disk: Disk, write: IndexWrite) -> None:
    """Bring an index file up to date, without syncing it. Raises OSError."""
    if not write.create and not disk.exists(write.path):
        return
    file = disk.open(write.path, create=True)
    if write.cut:
        file.truncate(write.position)
    if write.data:
        write_all(file, write.position, write.data)
