"""Every log of the data folders: open and recover, create, delete, checkpoint, close.

The caller holds the lock of each folder. A folder with `.kafka_cleanshutdown` opens without a scan;
that file goes before the first write, so that a crash is never taken for a clean stop. Stray files
are left alone and told of as notices; a log that cannot be opened is kept out (`failed` says why)
and takes nobody else with it.
"""

import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Clock, Disk
from runnel.storage.checkpoints import (
    BOOT,
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    Boot,
    CleanShutdown,
    MetaProperties,
    decode_boot,
    decode_clean_shutdown,
    decode_meta,
    decode_offsets,
    encode_boot,
    encode_clean_shutdown,
    encode_meta,
    encode_offsets,
    encode_partition_metadata,
    replace_file,
)
from runnel.storage.data_folder import WRITING, holds_log, is_free, read_data_folder
from runnel.storage.files import MemoryDisk, OpenFiles
from runnel.storage.flush import Flush
from runnel.storage.folder import TMP, Notice
from runnel.storage.log import Log, Surroundings
from runnel.storage.recovery import Wanted, load_log
from runnel.storage.retention import ClockGuard
from runnel.storage.trash import Purge, Trash
from runnel.types import TopicId, TopicPartition

DELETE_SUFFIX = "-delete"
MEMORY_FOLDER = ":memory:"
FOLDER_NAME_MAX = 255
SYNCED_AT_ONCE = 64  # logs; each holds descriptors while it is flushed

_WITHOUT = {
    RECOVERY_POINTS: "every log read whole and cut at the first damage",
    HIGH_WATERMARKS: "no other effect on a broker without replicas",
    LOG_STARTS: "records readable again that DeleteRecords had hidden",
}

Progress = Callable[[int, int, str], None]
MapBlocking = Callable[[Callable[[Flush], None], Sequence[Flush]], Iterable[None]]


class Opened(NamedTuple):
    """What `open` found. `broker_epoch` is -1 unless every folder was stopped cleanly with one."""

    clean: bool
    broker_epoch: int
    same_boot: bool  # the kernel has run on since the last writer, and no write of it failed
    directory_ids: list[TopicId]
    notices: list[Notice]


def read_identity(disk: Disk, directory: str) -> MetaProperties | None:
    """Whose data folder it is, or None for a new one. Raises RunnelError if it cannot be told."""
    path = f"{directory}/{META_PROPERTIES}"
    data = _read_or_none(disk, path)
    return None if data is None else decode_meta(data, path)


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


class LogStore:
    """Owned by the broker; everything but `CheckpointWrite.run` and `Purge.run` on its loop."""

    def __init__(
        self, disk: Disk, dirs: list[str], clock: Clock, rng: random.Random, defaults: LogConfig, *,
        memory_disk: Disk | None = None, cluster_id: str = "", node_id: int = -1,
        boot_id: str = "", max_open_files: int = 512, map_blocking: MapBlocking = map,
    ) -> None:  # fmt: skip
        """`map_blocking` runs the syncs of a start or a stop, side by side if it likes."""
        assert dirs
        self.dirs = dirs
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

    def __len__(self) -> int:
        return len(self._logs)

    # Opening

    def open(
        self, progress: Progress = lambda _done, _total, _name: None, *,
        config_of: Callable[[str], LogConfig | None] = lambda _topic: None,
        keep_marker: bool = False,
    ) -> Opened:  # fmt: skip
        """Open every log. Raises OSError; RunnelError for a folder of another cluster or release.

        `config_of` says None for a topic that it does not know: that one gets the defaults, but may
        be compacted. With `keep_marker` the clean-shutdown files stay until `remove_clean_markers`,
        which must come before the first append: a broker deletes them once its new epoch is
        registered.
        """
        notices: list[Notice] = []
        directory_ids, epochs, boots = [], [], []
        folders: list[tuple[str, str, TopicPartition, bool]] = []
        for directory in self.dirs:
            self._make_data_folder(directory)
            directory_ids.append(self._check_identity(directory))
            marker = _read_or_none(self._disk, f"{directory}/{CLEAN_SHUTDOWN}")
            boot = _read_or_none(self._disk, f"{directory}/{BOOT}")
            epochs.append(
                decode_clean_shutdown(marker).broker_epoch if marker is not None else None
            )
            boots.append(decode_boot(boot) if boot is not None else Boot("", True))
            self._checkpointed[directory] = {
                name: self._read_offsets(directory, name)
                for name in (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS)
            }
            found = read_data_folder(self._disk, directory, notices)
            for path in found.deleted:
                self._on_disk.trash.add(path, 0)
            for name, partition in found.partitions:
                folders.append((directory, name, partition, marker is not None))
        if not keep_marker:
            self.remove_clean_markers()
        scanned: list[tuple[str, Log]] = []
        for done, (directory, name, partition, clean) in enumerate(folders):
            progress(done, len(folders), name)
            config = config_of(partition.topic)
            log = self._open_log(directory, name, partition, clean, config, notices)
            if log is not None and log.is_dirty:
                scanned.append((directory, log))
            if len(scanned) == SYNCED_AT_ONCE:
                self._flush_scanned(scanned, notices)
        self._flush_scanned(scanned, notices)
        progress(len(folders), len(folders), "")
        for directory, epoch in zip(self.dirs, epochs, strict=True):
            if epoch is None:  # a log created just before the crash: its folder's name is in doubt
                self._disk.sync_dir(directory)
        clean_epochs = {epoch for epoch in epochs if epoch is not None}
        return Opened(
            clean=None not in epochs,
            broker_epoch=min(clean_epochs) if None not in epochs and len(clean_epochs) == 1 else -1,
            same_boot=all(b == Boot(self._boot_id, False) for b in boots) and self._boot_id != "",
            directory_ids=directory_ids,
            notices=notices,
        )

    def remove_clean_markers(self) -> None:
        """From here on a stop without `close_clean` is a crash."""
        for directory in self.dirs:
            path = f"{directory}/{CLEAN_SHUTDOWN}"
            replace_file(self._disk, directory, BOOT, encode_boot(Boot(self._boot_id, False)))
            if self._disk.exists(path):
                self._disk.remove(path)
                self._disk.sync_dir(directory)

    def _make_data_folder(self, directory: str) -> None:
        """A folder is as durable as its entry in the one above."""
        if not self._disk.exists(directory):
            parent = directory.rpartition("/")[0] or ("/" if directory.startswith("/") else ".")
            self._make_data_folder(parent)
            self._disk.make_dir(directory)
            self._disk.sync_dir(parent)

    def _check_identity(self, directory: str) -> TopicId:
        path = f"{directory}/{META_PROPERTIES}"
        data = _read_or_none(self._disk, path)
        if data is None:
            meta = MetaProperties(self._cluster_id, self._node_id, self._random.randbytes(16))
            replace_file(self._disk, directory, META_PROPERTIES, encode_meta(meta))
            return meta.directory_id
        meta = decode_meta(data, path)
        if self._cluster_id and meta.cluster_id != self._cluster_id:
            raise RunnelError(
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f"{path} belongs to cluster {meta.cluster_id!r}, not {self._cluster_id!r}",
            )
        if self._node_id >= 0 and meta.node_id != self._node_id:
            raise RunnelError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{path} belongs to broker {meta.node_id}, not {self._node_id}",
            )
        return meta.directory_id

    def _read_offsets(self, directory: str, name: str) -> dict[TopicPartition, int]:
        path = f"{directory}/{name}"
        data = _read_or_none(self._disk, path)
        if not data:  # Kafka makes these files at its start and fills them later
            return {}
        try:
            return decode_offsets(data, path)
        except ValueError as error:
            raise RunnelError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{path} is damaged ({error}): restore it, or remove it to start without, which has"
                f" {_WITHOUT[name]}",
            ) from error

    def _open_log(
        self, directory: str, name: str, partition: TopicPartition, clean: bool,
        config: LogConfig | None, notices: list[Notice],
    ) -> Log | None:  # fmt: skip
        folder = f"{directory}/{name}"
        known = self._checkpointed[directory]
        wanted = Wanted(
            clean,
            recovery_point=known[RECOVERY_POINTS].get(partition, 0),
            log_start_offset=known[LOG_STARTS].get(partition, 0),
            allow_gaps=config is None or "compact" in config.cleanup_policy,
        )
        try:
            if not holds_log(self._disk, folder, notices):
                return None
            if partition in self._logs or partition in self.failed:
                notices.append(Notice(folder, "a second folder of this partition: left alone"))
                return None
            log = load_log(
                self._on_disk, folder, partition, config or self._defaults, wanted, notices
            )
        except (OSError, RunnelError) as error:
            self._keep_out(directory, partition, str(error), notices)
            return None
        high_watermark = known[HIGH_WATERMARKS].get(partition, 0)
        log.opened_high_watermark = max(
            log.log_start_offset, min(high_watermark, log.log_end_offset)
        )
        self._adopt(log, directory)
        return log

    def _flush_scanned(self, scanned: list[tuple[str, Log]], notices: list[Notice]) -> None:
        """Nobody may append to what a scan found before it is durable."""
        begun = [(log, log.begin_flush(sync_active=True)) for _, log in scanned]
        self._run_flushes(begun)
        for directory, log in scanned:
            if log.offline is not None or log.is_dirty:
                self._forget(log)
                self._keep_out(directory, log.partition, log.offline or "not flushed", notices)
        scanned.clear()

    def _run_flushes(self, begun: list[tuple[Log, Flush | None]]) -> None:
        flushes = [flush for _, flush in begun if flush is not None]
        for _ in self._map_blocking(Flush.run, flushes):
            pass
        for log, flush in begun:
            if flush is not None:
                log.end_flush(flush)

    def _keep_out(
        self, directory: str, partition: TopicPartition, why: str, notices: list[Notice]
    ) -> None:
        self.failed[partition] = why
        self._failed_in[partition] = directory
        for name, offsets in self._checkpointed[directory].items():
            if partition in offsets:
                self._carried.setdefault((directory, name), {})[partition] = offsets[partition]
        notices.append(Notice(f"{directory}/{partition}", f"cannot be opened: {why}"))

    def _forget(self, log: Log) -> None:
        del self._logs[log.partition]
        self._counts[_directory_of(log)] -= 1

    def _adopt(self, log: Log, directory: str) -> None:
        self._logs[log.partition] = log
        self._counts[directory] += 1
        if directory == MEMORY_FOLDER:
            return  # nothing of it is checkpointed
        log.on_offsets_lowered = lambda: self._offsets_lowered(directory)
        log.on_failed = lambda: self._note_failure(directory)

    def _note_failure(self, directory: str) -> None:
        """An unclean stop loses nothing while the kernel runs on, unless a write failed (R17)."""
        with contextlib.suppress(OSError):
            replace_file(self._disk, directory, BOOT, encode_boot(Boot(self._boot_id, True)))

    # Creating and deleting

    def create(self, topic: str, topic_id: TopicId, index: int, config: LogConfig) -> Log:
        """A new, empty log, durable after its first flush. Raises KAFKA_STORAGE_ERROR.

        Data in a folder of its name, which the start did not take for a log, is not touched.
        """
        partition = TopicPartition(topic, index)
        assert partition not in self._logs, partition
        if partition in self.failed:
            raise RunnelError(ErrorCode.KAFKA_STORAGE_ERROR, self.failed[partition])
        in_memory = config.storage == "memory"
        around = self._in_memory if in_memory else self._on_disk
        directory = MEMORY_FOLDER if in_memory else min(self.dirs, key=self._counts.__getitem__)
        folder = f"{directory}/{partition}"
        try:
            for taken in [] if in_memory else [f"{each}/{partition}" for each in self.dirs]:
                if not is_free(self._disk, taken):
                    raise RunnelError(
                        ErrorCode.KAFKA_STORAGE_ERROR, f"{taken} holds files: move them away"
                    )
            if not in_memory:
                self._forget_checkpoints(directory, partition)
            around.disk.make_dir(folder)
            metadata = encode_partition_metadata(topic_id)
            around.open_files.sparing(
                lambda: replace_file(around.disk, folder, PARTITION_METADATA, metadata, sync=False)
            )
            log = load_log(around, folder, partition, config, Wanted(True, 0, 0, False), [])
        except OSError as error:
            raise RunnelError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition}: {error}") from error
        log.unsynced_paths.append(f"{folder}/{PARTITION_METADATA}")
        log.unsynced_folders += [folder, directory]
        self._adopt(log, directory)
        return log

    def adopt(self, log: Log, topic_id: TopicId) -> None:
        """Give a log its id, which it has none of or has lost. Raises KAFKA_STORAGE_ERROR."""
        around = self._in_memory if log.config.storage == "memory" else self._on_disk
        try:
            data = encode_partition_metadata(topic_id)
            replace_file(around.disk, log.folder, PARTITION_METADATA, data)
        except OSError as error:
            raise RunnelError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.partition}: {error}") from error
        log.topic_id = topic_id

    def delete(self, topic: str, index: int) -> None:
        """The log is gone at once; its files go `file.delete.delay.ms` later, see `purge`."""
        log = self._logs[TopicPartition(topic, index)]
        self._forget(log)
        around = self._in_memory if log.config.storage == "memory" else self._on_disk
        ending = f".{self._random.randbytes(16).hex()}{DELETE_SUFFIX}"
        directory, _, name = log.folder.rpartition("/")
        target = f"{directory}/{name[: FOLDER_NAME_MAX - len(ending)]}{ending}"
        log.withdraw()
        try:
            around.disk.rename(log.folder, target)
        except OSError as error:
            raise RunnelError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.partition}: {error}") from error
        around.trash.add(target, log.config.file_delete_delay_ms)

    def purge(self) -> list[Purge]:
        """What is due to be removed; the caller runs each, in a thread if it likes."""
        due = [around.trash.take_due() for around in (self._on_disk, self._in_memory)]
        return [purge for purge in due if purge is not None]

    # Checkpoints

    def begin_checkpoints(
        self, high_watermarks: Mapping[TopicPartition, int]
    ) -> CheckpointWrite | None:
        """Collect what changed of recovery points, high watermarks and log starts.

        None if nothing did, or a write is under way. Run it anywhere, then `end_checkpoints`.
        """
        if self._writing is not None:
            return None
        write = CheckpointWrite(self._disk)
        for directory in self.dirs:
            current = self._offsets_in(directory)
            current[HIGH_WATERMARKS] = self._carried.get((directory, HIGH_WATERMARKS), {}) | {
                log.partition: high_watermarks.get(log.partition, log.opened_high_watermark)
                for log in self._logs_in(directory)
            }
            for name, offsets in current.items():
                is_written = (directory, name) not in self._unwritten
                if offsets != self._checkpointed[directory][name] or not is_written:
                    self._checkpointed[directory][name] = offsets
                    self._unwritten.discard((directory, name))
                    write.files[directory, name] = encode_offsets(offsets)
        if not write.files:
            return None
        self._writing = write
        return write

    def end_checkpoints(self, write: CheckpointWrite) -> None:
        """On the loop, after `write.run`. Raises the OSError it met; the next write tries again."""
        assert write is self._writing, "a write ends once"
        self._writing = None
        for directory, name in write.withdrawn:
            offsets = self._checkpointed[directory][name]
            replace_file(self._disk, directory, name, encode_offsets(offsets))
        if write.error is not None:
            self._unwritten.update(write.files)
            raise write.error

    def write_checkpoints(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """All of it inline. Raises OSError."""
        write = self.begin_checkpoints(high_watermarks)
        if write is not None:
            write.run()
            self.end_checkpoints(write)

    def _offsets_in(self, directory: str) -> dict[str, dict[TopicPartition, int]]:
        logs = self._logs_in(directory)
        return {
            RECOVERY_POINTS: self._carried.get((directory, RECOVERY_POINTS), {})
            | {log.partition: log.flushed_offset for log in logs},
            LOG_STARTS: self._carried.get((directory, LOG_STARTS), {})
            | {
                log.partition: log.log_start_offset
                for log in logs
                if log.log_start_offset > log.segments[0].base_offset
            },
        }

    def _logs_in(self, directory: str) -> list[Log]:
        return [log for log in self._logs.values() if _directory_of(log) == directory]

    def _offsets_lowered(self, directory: str) -> None:
        """A truncation: no crash may find higher points beside batches that are not synced yet."""
        for name, offsets in self._offsets_in(directory).items():
            self._replace_now(directory, name, offsets)

    def _forget_checkpoints(self, directory: str, partition: TopicPartition) -> None:
        """Offsets of a deleted namesake must not be taken for those of the new log.

        Those of all other logs that are gone go with them: a topic has many partitions.
        """
        for name, offsets in self._checkpointed[directory].items():
            if partition in offsets or (directory, name) in self._unwritten:
                known = self._logs.keys() | self.failed.keys()
                rest = {key: offset for key, offset in offsets.items() if key in known}
                self._replace_now(directory, name, rest)

    def _replace_now(self, directory: str, name: str, offsets: dict[TopicPartition, int]) -> None:
        """Write at once; what a thread may be writing is older, and is written over at its end."""
        is_written = (directory, name) not in self._unwritten
        if self._checkpointed[directory][name] == offsets and is_written and self._writing is None:
            return
        self._checkpointed[directory][name] = offsets
        self._unwritten.add((directory, name))
        if self._writing is not None:
            self._writing.withdrawn.add((directory, name))
        replace_file(self._disk, directory, name, encode_offsets(offsets))
        self._unwritten.discard((directory, name))

    # Closing

    def close_clean(self, broker_epoch: int, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Flush and close every log, then say so in each folder whose logs are all well.

        The recovery points of the others stay what they were, with all else that is known of them.
        """
        spoiled = set(self._failed_in.values())
        logs = [log for log in self._logs.values() if _directory_of(log) != MEMORY_FOLDER]
        self._sync_dirs(logs)
        for start in range(0, len(logs), SYNCED_AT_ONCE):
            closing = logs[start : start + SYNCED_AT_ONCE]
            begun: list[tuple[Log, Flush | None]] = []
            for log in closing:
                with contextlib.suppress(RunnelError):  # which `end_close` raises again
                    begun.append((log, log.begin_close()))
            self._run_flushes(begun)
            for log in closing:
                try:
                    log.end_close()
                except RunnelError:
                    spoiled.add(_directory_of(log))
        self.write_checkpoints(high_watermarks)
        for directory in self.dirs:
            if directory not in spoiled:
                marker = encode_clean_shutdown(CleanShutdown(broker_epoch))
                replace_file(self._disk, directory, CLEAN_SHUTDOWN, marker)

    def _sync_dirs(self, logs: list[Log]) -> None:
        """Sync a data folder once for all its new logs. If it fails, each tries and says so."""
        for directory in self.dirs:
            new = [log for log in logs if directory in log.unsynced_folders]
            if new:
                with contextlib.suppress(OSError):
                    self._disk.sync_dir(directory)
                    for log in new:
                        log.unsynced_folders.remove(directory)


def _directory_of(log: Log) -> str:
    return log.folder.rpartition("/")[0]


def _read_or_none(disk: Disk, path: str) -> bytes | None:
    try:
        return disk.read_whole(path)
    except FileNotFoundError:
        return None
