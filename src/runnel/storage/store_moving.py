"""Moving a log to another data folder while it is used; `future_log` tells the order of steps."""

from collections.abc import Mapping

from runnel.errors import ErrorCode, RunnelError
from runnel.storage.checkpoints import LOG_STARTS
from runnel.storage.data_folder import FUTURE, DataFolder
from runnel.storage.future_log import FutureLog
from runnel.storage.log import Log
from runnel.storage.recovery import Wanted, load_log
from runnel.storage.store_checkpoints import CheckpointingStore
from runnel.storage.store_state import directory_of
from runnel.types import TopicPartition

DELETE_SUFFIX = "-delete"
FOLDER_NAME_MAX = 255


class MovingStore(CheckpointingStore):
    def begin_move(self, log: Log, directory: str) -> FutureLog:
        """A copy of the log in another folder, empty yet. Raises KAFKA_STORAGE_ERROR."""
        assert directory in self.dirs, directory
        assert log.partition not in self.futures, log.partition
        name = f"{log.partition}.{self._random.randbytes(16).hex()}"
        if len(name) + len(FUTURE) > FOLDER_NAME_MAX:
            raise RunnelError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{log.partition}: its name is too long to be moved"
            )
        try:
            future = FutureLog(self._on_disk, log, directory, name)
        except OSError as error:
            raise RunnelError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.partition}: {error}") from error
        self.futures[log.partition] = future
        return future

    def end_move(self, old: Log, future: FutureLog) -> Log:
        """The copy, which has caught up, takes the place of the log. Raises KAFKA_STORAGE_ERROR.

        If that fails early, all is as before; later, the log is offline until the next start.
        """
        assert not old.is_flushing, "end the flush under way first"
        partition, directory = old.partition, future.directory
        try:
            self._forget_checkpoints(directory, partition)
            starts = self._offsets_in(directory)[LOG_STARTS]
            self._replace_now(directory, LOG_STARTS, {**starts, partition: old.log_start_offset})
            future.finish(old)
        except OSError as error:
            raise RunnelError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition}: {error}") from error
        folder, deleted = f"{directory}/{partition}", self._name_for_deletion(old)
        wanted = Wanted(True, old.log_end_offset, old.log_start_offset, True)
        try:
            self._disk.rename(old.folder, deleted)
            self._disk.sync_dir(directory_of(old))
            self._disk.rename(future.folder, folder)
            log = load_log(self._on_disk, folder, partition, old.config, wanted, [])
        except OSError as error:
            self.futures.pop(partition)  # it is the log now, but for its name
            raise old.fail(error, half_done=True) from error
        del self.futures[partition]
        self._forget(old)
        old.withdraw()
        self._on_disk.trash.add(deleted, old.config.file_delete_delay_ms)
        log.producers = old.producers  # with the whole window of each, of which a snapshot has one
        log.first_dirty_offset = old.first_dirty_offset
        log.unsynced_folders.append(directory)
        self._adopt(log, directory)
        return log

    def abandon_move(self, partition: TopicPartition) -> FutureLog | None:
        """The copy that is not needed, if there is one; the caller discards it, in a thread."""
        return self.futures.pop(partition, None)

    def _settle_moves(self, contents: Mapping[str, DataFolder]) -> None:
        """At a start: what a stop or a crash left of moves. Raises OSError."""
        there = {partition for found in contents.values() for _, partition in found.partitions}
        for directory, found in contents.items():
            for name, partition in found.futures:
                self._disk.remove_tree(f"{directory}/{name}")
                self.unfinished_moves[partition] = directory
            for name, partition in found.moved:
                if partition in there:
                    self._disk.remove_tree(f"{directory}/{name}")
                else:
                    self._disk.rename(f"{directory}/{name}", f"{directory}/{partition}")
                    there.add(partition)
                    found.partitions.append((str(partition), partition))
            if found.moved:
                self._disk.sync_dir(directory)

    def _name_for_deletion(self, log: Log) -> str:
        ending = f".{self._random.randbytes(16).hex()}{DELETE_SUFFIX}"
        directory, _, name = log.folder.rpartition("/")
        return f"{directory}/{name[: FOLDER_NAME_MAX - len(ending)]}{ending}"
