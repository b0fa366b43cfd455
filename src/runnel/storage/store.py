"""Every log of the data folders: open and recover, create, delete, checkpoint, close.

The caller holds the lock of each folder. A folder with `.kafka_cleanshutdown` opens without a scan;
that file goes before the first write, so that a crash is never taken for a clean stop. Stray files
are left alone and told of as notices; a log that cannot be opened is kept out (`failed` says why)
and takes nobody else with it.
"""

import contextlib
from collections.abc import Mapping

from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    PARTITION_METADATA,
    CleanShutdown,
    encode_clean_shutdown,
    encode_partition_metadata,
    replace_file,
)
from runnel.storage.data_folder import is_free
from runnel.storage.flush import Flush
from runnel.storage.log import Log
from runnel.storage.recovery import Wanted, load_log
from runnel.storage.store_opening import Opened as Opened
from runnel.storage.store_opening import OpeningStore
from runnel.storage.store_opening import read_identity as read_identity
from runnel.storage.store_state import MEMORY_FOLDER, SYNCED_AT_ONCE, directory_of
from runnel.storage.trash import Purge
from runnel.types import TopicId, TopicPartition


class LogStore(OpeningStore):
    """Owned by the broker; everything but `CheckpointWrite.run` and `Purge.run` on its loop."""

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
        directory = MEMORY_FOLDER if in_memory else self._emptiest()
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

    def _emptiest(self) -> str:
        """Where the fewest logs are; in a cordoned folder only where the others have failed."""
        free = [folder for folder in self.dirs if folder not in self.cordoned] or self.dirs
        return min(free, key=self._counts.__getitem__)

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
        target = self._name_for_deletion(log)
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

    # Closing

    def close_clean(self, broker_epoch: int, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Flush and close every log, then say so in each folder whose logs are all well.

        The recovery points of the others stay what they were, with all else that is known of them.
        """
        spoiled = set(self._failed_in.values())
        logs = [log for log in self._logs.values() if directory_of(log) != MEMORY_FOLDER]
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
                    spoiled.add(directory_of(log))
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
