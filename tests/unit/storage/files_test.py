"""The operating system's disk and the one in memory keep the same contract."""

import errno
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runnel.ports import Disk, File
from runnel.storage.files import PAGE_BYTES, MemoryDisk, OpenFiles, OsDisk, write_all
from tests.simulated.disk import SimDisk


@pytest.fixture(params=["os", "memory", "simulated"])
def disk_and_root(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    disks: dict[str, Callable[[], Disk]] = {
        "os": OsDisk,
        "memory": MemoryDisk,
        "simulated": lambda: SimDisk(0),
    }
    disk = disks[request.param]()
    root = str(tmp_path) + "/data"
    disk.make_dir(root)
    return disk, root


def test_write_read_truncate(disk_and_root: tuple[Disk, str]) -> None:
    disk, root = disk_and_root
    file = disk.open(f"{root}/a", create=True)
    write_all(file, 0, b"hello world")
    write_all(file, 6, memoryview(b"there"))
    assert file.read_at(0, 100) == b"hello there"
    assert file.read_at(6, 3) == b"the"
    assert file.read_at(50, 3) == b""
    file.truncate(5)
    file.sync()
    assert (file.size(), disk.size(f"{root}/a"), disk.read_whole(f"{root}/a")) == (5, 5, b"hello")
    write_all(file, 8, b"x")
    assert file.read_at(0, 100) == b"hello\0\0\0x"


def test_names(disk_and_root: tuple[Disk, str]) -> None:
    disk, root = disk_and_root
    disk.make_dir(f"{root}/t-0")
    disk.make_dir(f"{root}/t-0")
    for name in ("b", "a"):
        write_all(disk.open(f"{root}/t-0/{name}", create=True), 0, name.encode())
    assert list(disk.list(f"{root}/t-0")) == ["a", "b"]
    disk.rename(f"{root}/t-0/a", f"{root}/t-0/b")
    assert disk.read_whole(f"{root}/t-0/b") == b"a"
    disk.rename(f"{root}/t-0", f"{root}/t-1")
    disk.sync_dir(root)
    assert not disk.exists(f"{root}/t-0/b")
    assert disk.exists(f"{root}/t-1/b")
    assert disk.modified_ms(f"{root}/t-1/b") >= 0
    disk.remove(f"{root}/t-1/b")
    assert list(disk.list(f"{root}/t-1")) == []
    disk.remove_tree(f"{root}/t-1")
    assert list(disk.list(root)) == []


def test_what_is_missing_is_not_found(disk_and_root: tuple[Disk, str]) -> None:
    disk, root = disk_and_root
    missing = f"{root}/missing"
    for attempt in (
        disk.open,
        disk.read_whole,
        disk.size,
        disk.remove,
        disk.list,
        disk.remove_tree,
    ):
        with pytest.raises(FileNotFoundError):
            attempt(missing)
    with pytest.raises(FileNotFoundError):
        disk.rename(missing, root + "/x")


def test_a_descriptor_lives_as_long_as_someone_holds_its_file(tmp_path: Path) -> None:
    disk = OsDisk()
    path = str(tmp_path / "f")
    file = disk.open(path, create=True)
    write_all(file, 0, b"data")
    held, fd = file, file.fileno()
    disk.remove(path)
    del file
    assert os.pread(held.fileno(), 4, 0) == b"data"
    del held
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_memory_files_can_be_sent_by_the_kernel() -> None:
    disk = MemoryDisk()
    file = disk.open("f", create=True)
    write_all(file, 0, b"data")
    reading, writing = os.pipe()
    try:
        assert os.sendfile(writing, file.fileno(), 0, 4) == 4
        assert os.read(reading, 10) == b"data"
    finally:
        os.close(reading)
        os.close(writing)


class _Holder:
    released = 0

    def release(self) -> None:
        self.released += 1


def test_open_files_are_bounded() -> None:
    cache, holders = OpenFiles(3), [_Holder() for _ in range(5)]
    for holder in holders:
        cache.opened(holder)
    assert len(cache) == 3
    assert [holder.released for holder in holders] == [1, 1, 0, 0, 0]
    cache.closed(holders[3])
    cache.closed(holders[0])  # it was released before
    assert len(cache) == 2
    cache.opened(holders[1])
    assert [holder.released for holder in holders] == [1, 1, 0, 0, 0], "there was a place"


def test_what_is_cached_is_read_and_what_was_warmed_is_cached(
    disk_and_root: tuple[Disk, str],
) -> None:
    disk, root = disk_and_root
    data = bytes(range(256)) * 4096
    file = disk.open(f"{root}/a", create=True)
    write_all(file, 0, data)
    file.warm(0, len(data))
    assert file.is_cached(0, len(data))
    assert file.read_cached(100, 5000) == data[100:5100]
    assert file.read_cached(len(data) - 5, 100) == data[-5:], "short only at the end"
    assert file.read_cached(len(data) + 5, 100) == b""


def _telling_file(tmp_path: Path) -> File:
    """A new one, where the file system tells what is cached: some (tmpfs, overlays) do not."""
    disk, path = OsDisk(), str(tmp_path / "a")
    file = disk.open(path, create=True)
    if not disk.tells_cached(path):
        pytest.skip("the file system of the test does not tell what is cached")
    return file


def test_evicted_bytes_are_cold_until_warmed(tmp_path: Path) -> None:
    file, size = _telling_file(tmp_path), 4 << 20
    data = os.urandom(size)
    write_all(file, 0, data)
    assert file.is_cached(0, size)
    assert _is_cold(file, lambda: file.read_cached(0, 100) is None)
    assert _is_cold(file, lambda: not file.is_cached(size - (1 << 20), 1 << 20))
    file.warm(0, size)
    assert file.is_cached(0, size)
    assert file.read_cached(0, size) == data


def test_pages_that_came_with_the_neighbours_do_not_make_a_slice_warm(tmp_path: Path) -> None:
    file = _telling_file(tmp_path)
    write_all(file, 0, os.urandom(64 * PAGE_BYTES))
    first, last = 10 * PAGE_BYTES + 100, 20 * PAGE_BYTES + 100

    def has_only_its_ends() -> bool:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        os.pread(file.fileno(), 1, first)
        os.pread(file.fileno(), 1, last)
        return not file.is_cached(first, last + 1 - first)

    assert _is_cold(file, has_only_its_ends)
    file.warm(first, last + 1 - first)
    assert file.is_cached(first, last + 1 - first)


@pytest.mark.parametrize("cold_page", [10, 20])
def test_a_cold_page_at_an_end_makes_a_slice_cold(tmp_path: Path, cold_page: int) -> None:
    """As when another reader began one page later, or ended one page earlier."""
    file = _telling_file(tmp_path)
    write_all(file, 0, os.urandom(64 * PAGE_BYTES))
    first, last = 10 * PAGE_BYTES + 100, 20 * PAGE_BYTES + 100

    def lacks_an_end() -> bool:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for page in range(10, 21):
            if page != cold_page:
                os.pread(file.fileno(), 1, page * PAGE_BYTES)
        return not file.is_cached(first, last + 1 - first)

    assert _is_cold(file, lacks_an_end)


def _is_cold(file: File, look: Callable[[], bool]) -> bool:
    """Evict first, each time: to look makes the kernel read. Pages in use elsewhere stay."""
    for _ in range(100):
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if look():
            return True
        time.sleep(0.05)
    return False


def test_a_file_system_that_does_not_tell_counts_as_cached(tmp_path: Path) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    disk, path = OsDisk(), str(tmp_path / "a")
    file = disk.open(path, create=True)
    write_all(file, 0, b"data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "preadv", refuse)
        assert not disk.tells_cached(path)
        assert file.read_cached(0, 10) == b"data"
        assert file.is_cached(0, 4)
    assert file.read_cached(0, 10) == b"data", "it is asked only once"


def test_reserved_space_is_taken_without_changing_the_size(tmp_path: Path) -> None:
    disk = OsDisk()
    file = disk.open(f"{tmp_path}/f", create=True)
    write_all(file, 0, b"abc")
    file.reserve(1 << 20)
    assert file.size() == 3 and file.read_at(0, 10) == b"abc"
    taken_bytes = (tmp_path / "f").stat().st_blocks * 512
    assert taken_bytes >= 1 << 20 or not _can_reserve(tmp_path)
    file.truncate(3)
    assert file.read_at(0, 10) == b"abc"


def _can_reserve(folder: Path) -> bool:
    """Whether the file system of the test can, as util-linux finds it."""
    command = ["fallocate", "--keep-size", "--length", "1048576", str(folder / "probe")]
    return subprocess.run(command, check=False).returncode == 0
