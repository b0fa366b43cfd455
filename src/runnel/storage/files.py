"""The operating system's files behind `ports.Disk`; no other module opens, writes or syncs one
(the call that writes is in `native/calls.py`).

`OsFile` closes its descriptor when the last reference to it goes, never earlier: whoever holds a
`FileSlice` may hand its descriptor to the kernel although the segment has been evicted from
`OpenFiles`, rolled away or deleted meanwhile. So nothing here has to count readers.
"""

import contextlib
import errno
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import PurePosixPath
from typing import Final, Protocol, TypeVar

from runnel.native import calls
from runnel.ports import File, Readable, Space

T = TypeVar("T")

READ_WHOLE_MAX_BYTES = 256 << 20
RELEASED_SHARE = 4  # of the open files, a quarter goes when descriptors run out
PROBE_EVERY_BYTES = 512 << 10
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
AHEAD_FACTOR, AHEAD_BYTES_MAX = 4, 4 << 20  # of a warming: who reads on finds the next in memory
_NOWAIT: Final = getattr(os, "RWF_NOWAIT", 0)  # missing if Python was built on an old system
_ONE_BYTE: Final = [bytearray(1)]
_write_on_loop: Final = calls.write_on_loop


class OsFile:
    """One open file. Reads and writes name their position, so no two users share a cursor."""

    __slots__ = ("_fd", "_tells_cached", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd
        self._tells_cached = bool(_NOWAIT)

    def fileno(self) -> int:
        return self._fd

    def write_at(self, position: int, data: Readable) -> int:
        return os.pwrite(self._fd, data, position)

    def write_on_loop(self, position: int, data: Readable) -> int:
        return _write_on_loop(self._fd, data, position)

    def read_at(self, position: int, size: int) -> bytes:
        data = os.pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]  # a signal or the end of the file: only the next read tells
        while size > len(data) and (
            part := os.pread(self._fd, size - len(data), position + len(data))
        ):
            parts.append(part)
            data = b"".join(parts)
        return data

    def read_cached(self, position: int, size: int) -> Readable | None:
        if not self._tells_cached:
            return self.read_at(position, size)
        data = bytearray(size)
        try:
            count = os.preadv(self._fd, [data], position, _NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            self._cannot_tell(error)
            return self.read_at(position, size)
        if count == size:
            return data
        return self.read_at(position, size) if position + count >= self.size() else None

    def is_cached(self, position: int, size: int) -> bool:
        """Looks at a byte of every `PROBE_EVERY_BYTES`, and at both ends.

        The pages at the ends may have come with their other half, when somebody read what is before
        or behind this; so the pages next to them are looked at too.
        """
        if not self._tells_cached:
            return True
        fd, last = self._fd, position + size - 1
        try:
            os.preadv(fd, _ONE_BYTE, position, _NOWAIT)
            os.preadv(fd, _ONE_BYTE, last, _NOWAIT)
            if size > 2 * PAGE_BYTES:
                os.preadv(fd, _ONE_BYTE, last - PAGE_BYTES, _NOWAIT)
                position += PAGE_BYTES
                while position < last:
                    os.preadv(fd, _ONE_BYTE, position, _NOWAIT)
                    position += PROBE_EVERY_BYTES
        except BlockingIOError:
            return False
        except OSError as error:
            self._cannot_tell(error)
        return True

    @property
    def tells_cached(self) -> bool:
        self.is_cached(0, 1)
        return self._tells_cached

    def _cannot_tell(self, error: OSError) -> None:
        """Memory file systems and some older ones refuse the question."""
        if error.errno != errno.EOPNOTSUPP:
            raise error
        self._tells_cached = False

    def begin_to_warm(self, position: int, size: int, *, reads_ahead: bool) -> None:
        # The kernel itself would read ahead many megabytes, however little is asked for.
        os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_RANDOM)
        ahead_bytes = min(AHEAD_FACTOR * size, AHEAD_BYTES_MAX) if reads_ahead else 0
        os.posix_fadvise(self._fd, position, size + ahead_bytes, os.POSIX_FADV_WILLNEED)

    def warm(self, position: int, size: int) -> None:
        sink, end = _sink(), position + size
        while position < end and (count := os.sendfile(sink, self._fd, position, end - position)):
            position += count

    def let_go(self, position: int, size: int) -> None:
        os.posix_fadvise(self._fd, position, size, os.POSIX_FADV_DONTNEED)

    def reserve(self, size: int) -> None:
        _keep_size_fallocate()(self._fd, 1, 0, size)  # where it fails, the first write will tell

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            self.close()


@cache
def _keep_size_fallocate() -> Callable[[int, int, int, int], int]:
    """fallocate(2), of which Python has only the form that changes the size of the file."""
    import ctypes  # only where somebody asks for `preallocate`

    library = ctypes.CDLL(None)
    call: Callable[[int, int, int, int], int] = getattr(library, "fallocate64", library.fallocate)
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]  # type: ignore[attr-defined]  # a function of the library
    return call


@cache
def _sink() -> int:
    """Where `sendfile` waits for pages without copying one."""
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


class OsDisk:
    """Folders and files of the operating system. Paths are plain strings, joined with a slash.

    With `read_only` files are opened for reading alone, so that nobody's rights to write matter,
    and what their owner would throw away stays where it is.
    """

    def __init__(self, *, read_only: bool = False) -> None:
        self._read_only = read_only
        self._flags = os.O_CLOEXEC | (os.O_RDONLY if read_only else os.O_RDWR)

    def open(self, path: str, *, create: bool = False) -> OsFile:
        flags = self._flags | (os.O_CREAT if create else 0)
        return OsFile(path, os.open(path, flags, 0o644))

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def list(self, path: str) -> Sequence[str]:
        return sorted(os.listdir(path))  # noqa: PTH208  names, not Path objects: 10 k folders at start

    def make_dir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103

    def remove(self, path: str) -> None:
        if not self._read_only:
            os.unlink(path)  # noqa: PTH108

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)  # noqa: PTH105

    def sync_dir(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def read_whole(self, path: str) -> bytes:
        file = self.open(path)
        size = file.size()
        if size > READ_WHOLE_MAX_BYTES:
            raise OSError(f"{path} has {size} bytes, more than is read at once")
        return file.read_at(0, size)

    def size(self, path: str) -> int:
        return os.stat(path).st_size  # noqa: PTH116

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000  # noqa: PTH116

    def space(self, path: str) -> Space:
        found = os.statvfs(path)
        return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def tells_cached(self, path: str) -> bool:
        return self.open(path).tells_cached


class MemoryDisk:
    """Files that live in memory and go with the process, for topics with `runnel.storage=memory`.

    They are memory files of the kernel, so that `sendfile` serves them like any other.
    """

    def __init__(self) -> None:
        self._files: dict[str, MemoryFile] = {}
        self._folders: set[str] = set()

    def open(self, path: str, *, create: bool = False) -> "MemoryFile":
        file = self._files.get(path)
        if file is None:
            if not create:
                raise FileNotFoundError(path)
            fd = os.memfd_create(PurePosixPath(path).name, os.MFD_CLOEXEC)
            file = self._files[path] = MemoryFile(path, fd)
        return file

    def exists(self, path: str) -> bool:
        return path in self._files or path in self._folders

    def list(self, path: str) -> Sequence[str]:
        if path not in self._folders:
            raise FileNotFoundError(path)
        prefix = path + "/"
        everything = [*self._files, *self._folders]
        return sorted({p[len(prefix) :].split("/")[0] for p in everything if p.startswith(prefix)})

    def make_dir(self, path: str) -> None:
        while path not in self._folders and path not in ("", "/"):
            self._folders.add(path)
            path = path.rpartition("/")[0]

    def remove(self, path: str) -> None:
        if self._files.pop(path, None) is None:
            raise FileNotFoundError(path)

    def remove_tree(self, path: str) -> None:
        if path not in self._folders:
            raise FileNotFoundError(path)
        for name in [p for p in self._files if p.startswith(path + "/")]:
            del self._files[name]
        self._folders = {p for p in self._folders if p != path and not p.startswith(path + "/")}

    def rename(self, source: str, target: str) -> None:
        if source in self._files:
            self._files[target] = self._files.pop(source)
            return
        if source not in self._folders:
            raise FileNotFoundError(source)
        for name in [p for p in self._files if p.startswith(source + "/")]:
            self._files[target + name[len(source) :]] = self._files.pop(name)
        self._folders = {
            target + p[len(source) :] if p == source or p.startswith(source + "/") else p
            for p in self._folders
        }

    def sync_dir(self, path: str) -> None:
        pass

    def read_whole(self, path: str) -> bytes:
        file = self.open(path)
        return file.read_at(0, file.size())

    def size(self, path: str) -> int:
        return self.open(path).size()

    def modified_ms(self, path: str) -> int:
        return os.fstat(self.open(path).fileno()).st_mtime_ns // 1_000_000

    def space(self, path: str) -> Space:
        return Space(-1, -1)  # what the machine has, which is not ours to tell

    def tells_cached(self, path: str) -> bool:
        return True


class MemoryFile(OsFile):
    """Is nowhere but in memory."""

    __slots__ = ()

    def __init__(self, path: str, fd: int) -> None:
        super().__init__(path, fd)
        self._tells_cached = False

    def let_go(self, position: int, size: int) -> None:
        pass

    def reserve(self, size: int) -> None:
        pass

    def sync(self) -> None:
        pass


def write_all(file: File, position: int, data: Readable) -> None:
    """A short write says nothing about why; trying the rest does. Raises OSError."""
    written = file.write_at(position, data)
    while written < len(data):
        count = file.write_at(position + written, memoryview(data)[written:])
        if count <= 0:
            raise OSError(errno.EIO, f"wrote {written} of {len(data)} bytes", file.path)
        written += count


def is_passing(error: OSError) -> bool:
    """Whether nothing is wrong with the disk: descriptors ran out, and come back as others close.

    Only opening a file fails so, hence nothing was written or synced by the call that did.
    """
    return error.errno in (errno.EMFILE, errno.ENFILE)


class Releasable(Protocol):
    """Something that can let go of its open file and open it again when it is asked to."""

    def release(self) -> None: ...


class OpenFiles:
    """Bounds how many segments hold a descriptor: opening one past the limit releases the oldest.

    First in, first out: a busy segment that is released is opened again at its next use, which
    costs one open per `limit` opens of others, and so needs no bookkeeping on the hot path. Who
    lets go by itself says so: a segment of a deleted log would else stay here, and take a place.
    Threads open logs side by side at the start, so each step is a single call.
    """

    def __init__(self, limit: int) -> None:
        assert limit > 0, limit
        self._limit = limit
        self._holders: OrderedDict[Releasable, None] = OrderedDict()

    def opened(self, holder: Releasable) -> None:
        while len(self._holders) >= self._limit:
            self._release_oldest()
        self._holders[holder] = None

    def closed(self, holder: Releasable) -> None:
        self._holders.pop(holder, None)

    def _release_oldest(self) -> None:
        self._holders.popitem(last=False)[0].release()

    def sparing(self, work: Callable[[], T]) -> T:
        """Do what opens a file; if descriptors have run out, again with some of ours let go."""
        try:
            return work()
        except OSError as error:
            if not is_passing(error) or not self._holders:
                raise
        for _ in range(-(-len(self._holders) // RELEASED_SHARE)):
            self._release_oldest()
        return work()

    def __len__(self) -> int:
        return len(self._holders)
