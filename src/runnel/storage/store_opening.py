"""Opening a store: whose folders they are, how they were left, and every log in them."""

from collections.abc import Callable
from typing import NamedTuple

from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Disk
from runnel.storage.checkpoints import (
    BOOT,
    CLEAN_SHUTDOWN,
    FIRST_DIRTY,
    HIGH_WATERMARKS,
    LOG_STARTS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    Boot,
    MetaProperties,
    decode_boot,
    decode_clean_shutdown,
    decode_meta,
    decode_offsets,
    encode_boot,
    encode_meta,
    replace_file,
)
from runnel.storage.data_folder import DataFolder, holds_log, read_data_folder
from runnel.storage.files import write_all
from runnel.storage.folder import TMP, Notice
from runnel.storage.log import Log
from runnel.storage.recovery import Wanted, load_log
from runnel.storage.store_moving import MovingStore
from runnel.storage.store_state import SYNCED_AT_ONCE, read_or_none
from runnel.types import TopicId, TopicPartition

_WITHOUT = {
    RECOVERY_POINTS: "every log read whole and cut at the first damage",
    HIGH_WATERMARKS: "no other effect on a broker without replicas",
    LOG_STARTS: "records readable again that DeleteRecords had hidden",
    FIRST_DIRTY: "compacted logs gone over from their start",
}

Progress = Callable[[int, int, str], None]


class Opened(NamedTuple):
    """What `open` found. `broker_epoch` is -1 unless every folder was stopped cleanly with one."""

    clean: bool
    broker_epoch: int
    same_boot: bool  # the kernel has run on since the last writer, and no write of it failed
    directory_ids: list[TopicId]
    notices: list[Notice]


class _Found(NamedTuple):
    """One data folder as it was left."""

    directory_id: TopicId
    epoch: int | None  # of the broker that stopped cleanly, -1 if it did not say
    boot: Boot
    contents: DataFolder


def read_identity(disk: Disk, directory: str) -> MetaProperties | None:
    """Whose data folder it is, or None for a new one. Raises RunnelError if it cannot be told."""
    path = f"{directory}/{META_PROPERTIES}"
    data = read_or_none(disk, path)
    return None if data is None else decode_meta(data, path)


class OpeningStore(MovingStore):
    def open(
        self, progress: Progress = lambda _done, _total, _name: None, *,
        config_of: Callable[[str], LogConfig | None] = lambda _topic: None,
        keep_marker: bool = False,
    ) -> Opened:  # fmt: skip
        """Open every log. A folder that fails is done without, see `offline_dirs`.

        Raises OSError if no folder is left, RunnelError for one of another cluster or release.

        `config_of` says None for a topic that it does not know: that one gets the defaults, but may
        be compacted. With `keep_marker` the clean-shutdown files stay until `remove_clean_markers`,
        which must come before the first append: a broker deletes them once its new epoch is
        registered.
        """
        notices: list[Notice] = []
        found = self._read_folders(notices)
        self._settle_moves({directory: each.contents for directory, each in found.items()})
        folders = [
            (directory, name, partition, each.epoch is not None)
            for directory, each in found.items()
            for name, partition in each.contents.partitions
        ]
        epochs = [each.epoch for each in found.values()]
        for each in found.values():
            for path in each.contents.deleted:
                self._on_disk.trash.add(path, 0)
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
            same_boot=self._boot_id != ""
            and all(each.boot == Boot(self._boot_id, False) for each in found.values()),
            directory_ids=[each.directory_id for each in found.values()],
            notices=notices,
        )

    def _read_folders(self, notices: list[Notice]) -> dict[str, _Found]:
        found: dict[str, _Found] = {}
        for directory in list(self.dirs):
            try:
                self._make_data_folder(directory)
                if len(self.dirs) > 1:
                    self._ensure_writable(directory)
                directory_id = self._check_identity(directory)
                marker = read_or_none(self._disk, f"{directory}/{CLEAN_SHUTDOWN}")
                boot = read_or_none(self._disk, f"{directory}/{BOOT}")
                self._checkpointed[directory] = {
                    name: self._read_offsets(directory, name)
                    for name in (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS, FIRST_DIRTY)
                }
                contents = read_data_folder(self._disk, directory, notices)
            except OSError as error:
                self._go_without(directory, error, notices)
                continue
            found[directory] = _Found(
                directory_id,
                None if marker is None else decode_clean_shutdown(marker).broker_epoch,
                Boot("", True) if boot is None else decode_boot(boot),
                contents,
            )
        return found

    def _go_without(self, directory: str, error: OSError, notices: list[Notice]) -> None:
        """A folder that fails takes its own logs offline, and the broker only if it is the last."""
        if len(self.dirs) == 1:
            raise error
        self.dirs.remove(directory)
        self.offline_dirs[directory] = str(error)
        notices.append(Notice(directory, f"cannot be used, its logs are offline: {error}"))

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

    def _ensure_writable(self, directory: str) -> None:
        """A disk that is full or read-only is found out before a log relies on it. Raises OSError.

        Where there is no other folder the start fails anyhow, and needs no question more.
        """
        path = f"{directory}/{META_PROPERTIES}{TMP}"
        file = self._disk.open(path, create=True)
        write_all(file, 0, b"can be written")
        file.sync()
        self._disk.remove(path)

    def _check_identity(self, directory: str) -> TopicId:
        path = f"{directory}/{META_PROPERTIES}"
        data = read_or_none(self._disk, path)
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
        data = read_or_none(self._disk, path)
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
            allow_gaps=config is None or config.is_compacted or partition in known[FIRST_DIRTY],
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
        log.first_dirty_offset = known[FIRST_DIRTY].get(partition, -1)
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

    def _keep_out(
        self, directory: str, partition: TopicPartition, why: str, notices: list[Notice]
    ) -> None:
        self.failed[partition] = why
        self._failed_in[partition] = directory
        for name, offsets in self._checkpointed[directory].items():
            if partition in offsets:
                self._carried.setdefault((directory, name), {})[partition] = offsets[partition]
        notices.append(Notice(f"{directory}/{partition}", f"cannot be opened: {why}"))
