"""One process per data folder: an advisory lock on Kafka's `.lock` file, with our pid inside.

The kernel gives the lock up when the process ends, however it ends; the pid is there only to
tell a second process who was first.
"""

import fcntl
import os
from contextlib import suppress
from typing import Final

LOCK_FILE: Final = ".lock"
_LOCKS = "/proc/locks"  # the kernel's list; asking by taking the lock could keep a broker out


class FolderInUseError(Exception):
    """Another process has the folder. `pid` is -1 where it did not say."""

    def __init__(self, folder: str, pid: int) -> None:
        who = f"process {pid}" if pid > 0 else "another process"
        super().__init__(f"data folder {folder} is in use by {who}; stop it or choose another")
        self.pid = pid


class FolderLock:
    """Held as long as this object lives, or until `release`."""

    __slots__ = ("_fd",)

    def __init__(self, folder: str) -> None:
        path = os.path.join(folder, LOCK_FILE)  # noqa: PTH118  # paths are strings in storage
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = os.pread(self._fd, 32, 0).strip()
            os.close(self._fd)
            raise FolderInUseError(folder, int(text) if text.isdigit() else -1) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.ftruncate(self._fd, 0)
        os.close(self._fd)


def is_held(folder: str) -> bool:
    """Whether a process has this data folder now, Runnel or Kafka. Nothing is locked to find out.

    Where the kernel has no list, the pid in the file is looked for; in doubt it is held.
    """
    path = os.path.join(folder, LOCK_FILE)  # noqa: PTH118
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            text, inode = file.read(32).strip(), os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False
    with suppress(OSError), open(_LOCKS) as locks:  # noqa: PTH123
        # `n: FLOCK ADVISORY WRITE pid major:minor:inode start end`; devices of some file systems
        # are told otherwise than stat does, and inodes suffice.
        return any(field.endswith(f":{inode}") for line in locks for field in line.split()[5:6])
    if not text.isdigit():
        return True
    try:
        os.kill(int(text), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
