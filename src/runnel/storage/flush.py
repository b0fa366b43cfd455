"""The blocking part of making a log durable.

A `Flush` is collected on the loop, run anywhere, and handed back to its log on the loop. While it
runs it touches files and its own fields alone, so appends go on beside it.

Its log may be deleted meanwhile, and another be made in a folder of the same name: `withdrawn` is
set before the old folder is renamed. So a file opened by its path is written to only if, after
that, the flush is still not withdrawn; and what is renamed has a name that no other log uses.
"""

import contextlib
from collections.abc import Callable, Sequence

from runnel.ports import Disk, File
from runnel.storage.checkpoints import LEADER_EPOCHS
from runnel.storage.files import is_passing, write_all
from runnel.storage.index import IndexWrite


class Flush:
    """Everything before `next_offset` is durable once `run` has returned with `error` None.

    A failed fsync says nothing about what reached the disk and the kernel may forget the failure,
    so it is never tried again: `Log.end_flush` takes the log offline. If descriptors ran out
    nothing has failed: then `postponed` says so, and the log does it all again.
    """

    __slots__ = (
        "_disk", "_files", "_folder", "_temporary", "epochs", "error", "folders", "generation",
        "index_writes", "next_offset", "paths", "postponed", "withdrawn",
    )  # fmt: skip

    def __init__(
        self, disk: Disk, folder: str, files: Sequence[File], *, serial: int, generation: int,
        next_offset: int,
    ) -> None:  # fmt: skip
        self._disk = disk
        self._folder = folder
        self._files = files
        self._temporary = f"{folder}/{LEADER_EPOCHS}.{serial}.tmp"
        self.folders: list[str] = []
        self.generation = generation
        self.next_offset = next_offset
        self.index_writes: list[IndexWrite] = []
        self.paths: list[str] = []  # small files written without a sync
        self.epochs: bytes | None = None
        self.error: OSError | None = None
        self.postponed: OSError | None = None
        self.withdrawn = False

    def run(self) -> None:
        try:
            for file in self._files:
                file.sync()
            for write in self.index_writes:
                write_index(self._disk, write, lambda: self.withdrawn)
            for path in dict.fromkeys(self.paths):
                self._sync_path(path)
            folders = dict.fromkeys(self.folders)
            if self.epochs is not None:
                self._replace_epochs(self.epochs)
                folders[self._folder] = None
            for folder in folders:
                self._disk.sync_dir(folder)
        except OSError as error:
            if self.withdrawn:
                return  # whatever it was befell files that are to be removed
            if is_passing(error):
                self.postponed = error
            else:
                self.error = error

    def _replace_epochs(self, data: bytes) -> None:
        file = self._disk.open(self._temporary, create=True)
        if self.withdrawn:
            return
        file.truncate(0)
        write_all(file, 0, data)
        file.sync()
        self._disk.rename(self._temporary, f"{self._folder}/{LEADER_EPOCHS}")

    def _sync_path(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # retention or a truncation took it since
            self._disk.open(path).sync()


def write_index(
    disk: Disk, write: IndexWrite, is_withdrawn: Callable[[], bool] = lambda: False
) -> None:
    """Bring an index file up to date, without syncing it. Raises OSError."""
    if not write.create and not disk.exists(write.path):
        return
    file = disk.open(write.path, create=True)
    if is_withdrawn():
        return
    if write.cut:
        file.truncate(write.position)
    if write.data:
        write_all(file, write.position, write.data)
