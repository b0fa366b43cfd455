"""A disk that can lose power. Implements `ports.Disk` in memory, with faults on a seed.

Every file has two contents: what the page cache holds and what would survive a power loss. A sync
brings the second up to the first. `kill` ends the process only: the page cache stays. `lose_power`
keeps, of the writes since the last sync of each file, a prefix; it may tear the next one in the
middle and may leave pages of zeros where data had not arrived; of the directory changes since the
last sync of each folder it keeps a prefix, as file systems with a journal do. Handles of the
process before are dead either way. What is cold is drawn anew each time it is asked.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from errno import EBADF, EEXIST, ENOSPC
from typing import Literal

from runnel.ports import Readable, Space

UNLIMITED = 1 << 62

Operation = Literal["open", "write", "sync", "truncate", "rename", "remove", "sync_dir", "warm"]


@dataclass(eq=False)
class _File:
    cached: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)  # None: truncated there
    modified_ms: int = 0


@dataclass(eq=False)
class _Folder:
    cached: dict[str, "_File | _Folder"] = field(default_factory=dict)
    durable: dict[str, "_File | _Folder"] = field(default_factory=dict)
    pending: list[tuple[str, str, "_File | _Folder | None"]] = field(default_factory=list)

    def change(self, source: str, target: str, node: "_File | _Folder | None") -> None:
        """Link `node` at `target`, rename from `source`, or unlink `source`: one atomic change."""
        _apply_entry(self.cached, source, target, node)
        self.pending.append((source, target, node))


class SimFile:
    def __init__(self, disk: "SimDisk", node: _File, path: str) -> None:
        self.path = path
        self._disk = disk
        self._node = node
        self._life = disk.life

    def fileno(self) -> int:
        return -1

    def _alive(self) -> _File:
        if self._life != self._disk.life:
            raise OSError(EBADF, "a handle from before the crash", self.path)
        return self._node

    def write_at(self, position: int, data: Readable) -> int:
        node = self._alive()
        self._disk.count("write", self.path)
        data = bytes(data)
        data = data[: self._disk.room_for(node, position + len(data), len(data))]
        if len(data) > 1 and self._disk.is_short():
            data = data[: self._disk.chance.randrange(1, len(data))]
        _apply_write(node.cached, position, data)
        node.pending.append((position, data))
        node.modified_ms = self._disk.now_ms
        return len(data)

    write_on_loop = write_at

    def read_at(self, position: int, size: int) -> bytes:
        return bytes(self._alive().cached[position : position + size])

    def read_cached(self, position: int, size: int) -> bytes | None:
        return self.read_at(position, size) if self.is_cached(position, size) else None

    def is_cached(self, position: int, size: int) -> bool:
        self._alive()
        return not self._disk.is_cold()

    def begin_to_warm(self, position: int, size: int, *, reads_ahead: bool) -> None:
        self._alive()

    def warm(self, position: int, size: int) -> None:
        self._alive()
        self._disk.count("warm", self.path)

    def let_go(self, position: int, size: int) -> None:
        self._alive()

    def reserve(self, size: int) -> None:
        self._alive()
        self._disk.counts["reserve"] += size

    def sync(self) -> None:
        node = self._alive()
        self._disk.count("sync", self.path)
        for position, data in node.pending:
            _apply_write(node.durable, position, data)
        node.pending.clear()

    def truncate(self, size: int) -> None:
        node = self._alive()
        self._disk.count("truncate", self.path)
        _apply_write(node.cached, size, None)
        node.pending.append((size, None))

    def size(self) -> int:
        return len(self._alive().cached)

    def close(self) -> None:
        pass


class SimDisk:
    """One disk, which outlives the processes that use it. `counts` says what was done to it."""

    def __init__(
        self, seed: int, *, page_bytes: int = 512, capacity_bytes: int = UNLIMITED
    ) -> None:
        self.chance = random.Random(seed)
        self.life = 0
        self.now_ms = 0
        self.counts: Counter[str] = Counter()
        self.page_bytes = page_bytes
        self.capacity_bytes = capacity_bytes
        self.short_write_probability = 0.0
        self.cold_probability = 0.0
        self._cold_chance = random.Random(f"{seed}/cold")
        self._root = _Folder()
        self._faults: list[tuple[Operation, int, int, str]] = []

    # Faults

    def fail(self, operation: Operation, errno: int, *, after: int = 0, path: str = "") -> None:
        """Let that operation fail once, after so many good ones, where `path` is in its path."""
        self._faults.append((operation, errno, after, path))

    def count(self, operation: Operation, path: str) -> None:
        """Called before each operation: it fails here if it is to fail."""
        self.counts[operation] += 1
        for fault in [f for f in self._faults if f[0] == operation and f[3] in path]:
            self._faults.remove(fault)
            if fault[2] == 0:
                self.counts["errors"] += 1
                raise OSError(fault[1], "injected", path)
            self._faults.append((fault[0], fault[1], fault[2] - 1, fault[3]))

    def is_short(self) -> bool:
        short = self.chance.random() < self.short_write_probability
        self.counts["short writes"] += short
        return short

    def is_cold(self) -> bool:
        return self._cold_chance.random() < self.cold_probability

    def heal(self) -> None:
        """No fault that was asked for happens any more."""
        self._faults.clear()
        self.capacity_bytes = UNLIMITED
        self.short_write_probability = 0.0

    def used_bytes(self) -> int:
        return _size_of(self._root)

    def room_for(self, node: _File, end: int, size: int) -> int:
        """How many of `size` bytes fit. Raises ENOSPC when none does."""
        if self.capacity_bytes == UNLIMITED:
            return size
        used = _size_of(self._root)
        excess = used + max(end - len(node.cached), 0) - self.capacity_bytes
        if excess <= 0:
            return size
        self.counts["full"] += 1
        if excess >= size:
            raise OSError(ENOSPC, "No space left on device")
        return size - excess

    def kill(self) -> None:
        """The process dies; the kernel writes everything down in its own time."""
        self.life += 1
        self.counts["kills"] += 1

    def lose_power(self) -> None:
        self.life += 1
        self.counts["power losses"] += 1
        self._faults.clear()
        self._lose(self._root)

    def _lose(self, folder: _Folder) -> None:
        kept = self.chance.randint(0, len(folder.pending))
        self.counts["entries kept"] += kept
        self.counts["entries lost"] += len(folder.pending) - kept
        for source, target, node in folder.pending[:kept]:
            _apply_entry(folder.durable, source, target, node)
        folder.pending.clear()
        folder.cached = dict(folder.durable)
        for node in folder.cached.values():
            if isinstance(node, _Folder):
                self._lose(node)
            else:
                self._lose_pages(node)

    def _lose_pages(self, file: _File) -> None:
        if not file.pending:
            return
        kept = self.chance.randint(0, len(file.pending))
        written: list[range] = []
        for position, data in file.pending[:kept]:
            _apply_write(file.durable, position, data)
            written.append(range(position, position + len(data or b"")))
        for position, data in file.pending[kept : kept + 1]:
            if data and self.chance.random() < 0.5:
                data = data[: self.chance.randrange(len(data))]
                _apply_write(file.durable, position, data)
                self.counts["torn writes"] += 1
        self.counts["dropped bytes"] += sum(len(d or b"") for _, d in file.pending[kept:])
        if written and self.chance.random() < 0.3:
            self._zero_page(file, self.chance.choice(written))
        file.pending.clear()
        file.cached = bytearray(file.durable)

    def _zero_page(self, file: _File, written: range) -> None:
        """A page whose size reached the disk and whose data did not."""
        if not written:
            return
        page = self.chance.choice(written) // self.page_bytes * self.page_bytes
        hole = range(max(page, written.start), min(page + self.page_bytes, written.stop))
        file.durable[hole.start : hole.stop] = bytes(len(hole))
        self.counts["zeroed bytes"] += len(hole)

    # ports.Disk

    def open(self, path: str, *, create: bool = False) -> SimFile:
        self.count("open", path)
        folder, name = self._parent(path)
        node = folder.cached.get(name)
        if node is None:
            if not create:
                raise FileNotFoundError(path)
            node = _File(modified_ms=self.now_ms)
            folder.change("", name, node)
        if isinstance(node, _Folder):
            raise IsADirectoryError(path)
        return SimFile(self, node, path)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def list(self, path: str) -> Sequence[str]:
        return sorted(self._folder(path).cached)

    def make_dir(self, path: str) -> None:
        folder = self._root
        for name in path.strip("/").split("/"):
            node = folder.cached.get(name)
            if node is None:
                node = _Folder()
                folder.change("", name, node)
            if isinstance(node, _File):
                raise OSError(EEXIST, "a file", path)
            folder = node

    def remove(self, path: str) -> None:
        self.count("remove", path)
        folder, name = self._parent(path)
        if not isinstance(folder.cached.get(name), _File):
            raise FileNotFoundError(path)
        folder.change(name, "", None)

    def remove_tree(self, path: str) -> None:
        self.count("remove", path)
        folder, name = self._parent(path)
        self._folder(path)
        folder.change(name, "", None)

    def rename(self, source: str, target: str) -> None:
        self.count("rename", source)
        folder, name = self._parent(source)
        target_folder, target_name = self._parent(target)
        assert folder is target_folder, "we never move a file between folders"
        if name not in folder.cached:
            raise FileNotFoundError(source)
        folder.change(name, target_name, None)

    def sync_dir(self, path: str) -> None:
        self.count("sync_dir", path)
        folder = self._folder(path)
        for source, target, node in folder.pending:
            _apply_entry(folder.durable, source, target, node)
        folder.pending.clear()

    def read_whole(self, path: str) -> bytes:
        file = self.open(path)
        return file.read_at(0, file.size())

    def size(self, path: str) -> int:
        return self.open(path).size()

    def modified_ms(self, path: str) -> int:
        node = self._find(path)
        if not isinstance(node, _File):
            raise FileNotFoundError(path)
        return node.modified_ms

    def space(self, path: str) -> Space:
        self._folder(path)
        return Space(self.capacity_bytes, max(self.capacity_bytes - self.used_bytes(), 0))

    def tells_cached(self, path: str) -> bool:
        return True

    def _find(self, path: str) -> "_File | _Folder | None":
        node: _File | _Folder | None = self._root
        for name in [name for name in path.split("/") if name not in ("", ".")]:
            node = node.cached.get(name) if isinstance(node, _Folder) else None
        return node

    def _folder(self, path: str) -> _Folder:
        node = self._find(path)
        if isinstance(node, _File):
            raise NotADirectoryError(path)
        if node is None:
            raise FileNotFoundError(path)
        return node

    def _parent(self, path: str) -> tuple[_Folder, str]:
        parent, _, name = path.strip("/").rpartition("/")
        return (self._folder(parent) if parent else self._root), name


def _size_of(node: _File | _Folder) -> int:
    if isinstance(node, _File):
        return len(node.cached)
    return sum(_size_of(child) for child in node.cached.values())


def _apply_write(content: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        del content[position:]
    if len(content) < position:
        content += bytes(position - len(content))
    if data is not None:
        content[position : position + len(data)] = data


def _apply_entry(
    entries: dict[str, _File | _Folder], source: str, target: str, node: _File | _Folder | None
) -> None:
    if source:
        moved = entries.pop(source, None)
        node = moved if target else None
    if target and node is not None:
        entries[target] = node
