"""What a store of logs knows. Its parts are layers of one object, as those of a log are:

`StoreState` < `CheckpointingStore` < `MovingStore` < `OpeningStore` < `LogStore`, which everybody
else uses.
"""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from runnel.config.topic import LogConfig
from runnel.ports import Clock, Disk
from runnel.storage.checkpoints import replace_file
from runnel.storage.data_folder import WRITING
from runnel.storage.files import MemoryDisk, OpenFiles
from runnel.storage.flush import Flush
from runnel.storage.folder import TMP
from runnel.storage.future_log import FutureLog
from runnel.storage.log import Log, Surroundings
from runnel.storage.retention import ClockGuard
from runnel.storage.trash import Trash
from runnel.types import TopicPartition

MEMORY_FOLDER = ":memory:"
SYNCED_AT_ONCE = 64  # logs; each holds descriptors while it is flushed

MapBlocking = Callable[[Callable[[Flush], None], Sequence[Flush]], Iterable[None]]


class CheckpointWrite:
    """Files to replace. `run` may be called in a thread; `error` says whether it failed."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.files: dict[tuple[str, str], bytes] = {}
        self.withdrawn: set[tuple[str, str]] = set()  # newer contents were written meanwhile
        self.error: OSError | None = None

    def run(self) -> None:
        try:
            for (directory, name), data in self.files.items():
                if (directory, name) not in self.withdrawn:
                    replace_file(self._disk, directory, name, data, temporary=WRITING + TMP)
        except OSError as error:
            self.error = error


class StoreState:
    """The fields of a store, and the logs in it."""

    def __init__(
        self, disk: Disk, dirs: list[str], clock: Clock, rng: random.Random, defaults: LogConfig, *,
        memory_disk: Disk | None = None, cluster_id: str = "", node_id: int = -1,
        boot_id: str = "", max_open_files: int = 512, map_blocking: MapBlocking = map,
    ) -> None:  # fmt: skip
        """`map_blocking` runs the syncs of a start or a stop, side by side if it likes."""
        assert dirs
        self.dirs = dirs
        self.cordoned: frozenset[str] = frozenset()  # folders that get no new logs
        self.offline_dirs: dict[str, str] = {}  # folders that the start could not use, and why
        self.futures: dict[TopicPartition, FutureLog] = {}  # copies under way to another folder
        self.unfinished_moves: dict[TopicPartition, str] = {}  # found at the start, with the folder
        self.failed: dict[TopicPartition, str] = {}
        self._failed_in: dict[TopicPartition, str] = {}
        self._map_blocking = map_blocking
        self._counts: Counter[str] = Counter()  # of the logs in each folder
        # What the checkpoints said of logs that could not be opened, by folder and file.
        self._carried: dict[tuple[str, str], dict[TopicPartition, int]] = {}
        self.clock_guard = ClockGuard(clock)
        self._logs: dict[TopicPartition, Log] = {}
        self._defaults = defaults
        self._cluster_id = cluster_id
        self._node_id = node_id
        self._boot_id = boot_id
        self._checkpointed: dict[str, dict[str, dict[TopicPartition, int]]] = {}
        self._unwritten: set[tuple[str, str]] = set()  # a write failed: the file may say otherwise
        self._writing: CheckpointWrite | None = None
        self._disk = disk
        self._random = rng
        open_files = OpenFiles(max_open_files)
        serials = itertools.count()
        memory = memory_disk or MemoryDisk()
        self._on_disk = Surroundings(
            disk, open_files, clock, self.clock_guard, rng, Trash(disk, clock), serials
        )
        self._in_memory = Surroundings(
            memory, open_files, clock, self.clock_guard, rng, Trash(memory, clock), serials
        )

    def get(self, topic: str, index: int) -> Log | None:
        return self._logs.get(TopicPartition(topic, index))

    @property
    def logs(self) -> Iterator[Log]:
        return iter(self._logs.values())

    @property
    def disk(self) -> Disk:
        return self._disk

    def keep_out(self, partition: TopicPartition, why: str) -> None:
        """It exists where this start cannot reach it: no new, empty one may take its place."""
        self.failed[partition] = why

    def __len__(self) -> int:
        return len(self._logs)

    def _run_flushes(self, begun: list[tuple[Log, Flush | None]]) -> None:
        flushes = [flush for _, flush in begun if flush is not None]
        for _ in self._map_blocking(Flush.run, flushes):
            pass
        for log, flush in begun:
            if flush is not None:
                log.end_flush(flush)

    def _forget(self, log: Log) -> None:
        del self._logs[log.partition]
        self._counts[directory_of(log)] -= 1

    def logs_in(self, directory: str) -> list[Log]:
        return [log for log in self._logs.values() if directory_of(log) == directory]


def directory_of(log: Log) -> str:
    return log.folder.rpartition("/")[0]


def read_or_none(disk: Disk, path: str) -> bytes | None:
    try:
        return disk.read_whole(path)
    except FileNotFoundError:
        return None
