"""Files that are deleted but not yet gone: renamed at once, removed `file.delete.delay.ms` later.

Kafka does the same: a reader that has only a path (an offline tool, a Spark job) is given time.
Removing a large file takes long, so it is work for a thread: `Purge.run` touches no shared state.
"""

from collections.abc import Sequence

from runnel.ports import Clock, Disk

DELETED = ".deleted"


class Purge:
    """Paths whose time has come. `run` may be called in a thread; what fails stays on the disk."""

    def __init__(self, disk: Disk, paths: Sequence[str]) -> None:
        self._disk = disk
        self.paths = paths
        self.errors: list[OSError] = []

    def run(self) -> None:
        for path in self.paths:
            try:
                if path.endswith(DELETED):
                    self._disk.remove(path)
                else:
                    self._disk.remove_tree(path)
            except FileNotFoundError:
                pass  # its folder went first
            except OSError as error:
                self.errors.append(error)


class Trash:
    """One per disk. Delays are counted on the monotonic clock."""

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._disk = disk
        self._clock = clock
        self._waiting: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def discard_file(self, path: str, delay_ms: int) -> None:
        """Rename a file out of the way now, remove it later. One that does not exist is fine."""
        try:
            self._disk.rename(path, path + DELETED)
        except FileNotFoundError:
            return
        self.add(path + DELETED, delay_ms)

    def add(self, path: str, delay_ms: int) -> None:
        """A file already renamed to `.deleted`, or a folder already renamed to `-delete`."""
        self._waiting.append((self._clock.monotonic_ms() + delay_ms, path))

    def take_due(self) -> Purge | None:
        now_ms = self._clock.monotonic_ms()
        due = [path for due_ms, path in self._waiting if due_ms <= now_ms]
        if not due:
            return None
        self._waiting = [entry for entry in self._waiting if entry[0] > now_ms]
        return Purge(self._disk, due)
