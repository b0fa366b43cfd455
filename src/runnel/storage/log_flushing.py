"""Making a log durable: what is not yet, collected on the loop, run anywhere, ended on the loop."""

from runnel.errors import ErrorCode, RunnelError
from runnel.storage.checkpoints import encode_epochs
from runnel.storage.flush import Flush
from runnel.storage.log_state import LogState
from runnel.storage.segment import Segment


class FlushingLog(LogState):
    @property
    def is_flushing(self) -> bool:
        return self._flush is not None

    @property
    def is_dirty(self) -> bool:
        """Whether a flush would find anything to do."""
        return (
            self.log_end_offset > self.flushed_offset
            or self.epochs.dirty
            or bool(self.closed_unsynced)
            or bool(self.unsynced_paths)
            or bool(self.unsynced_folders)
            or bool(self._postponed_writes)
        )

    @property
    def unflushed_segments(self) -> list[Segment]:
        """Closed ones whose files somebody is about to write to: a flush, begun or to come."""
        return [*self.closed_unsynced, *self._flushing]

    def begin_flush(
        self, *, sync_active: bool | None = None, sync_indexes: bool = False
    ) -> Flush | None:
        """Collect what is not durable yet; None when there is nothing, or one is under way.

        None too if a file cannot be opened: then the log is offline, or still dirty.
        With durability `os` only closed segments are synced, as Kafka does, and the active one has
        its index entries written; `sync_active` says otherwise. The indexes of the active segment
        are synced only when the log is closed: after a crash they are made anew.
        """
        try:
            return self._collect_flush(sync_active, sync_indexes)
        except OSError as error:
            self.fail(error)
            return None

    def _collect_flush(self, sync_active: bool | None, sync_indexes: bool) -> Flush | None:
        if self._flush is not None or self.offline is not None:
            return None
        if sync_active is None:
            sync_active = self._config.durability != "os"
        next_offset = self.log_end_offset if sync_active else self._active.base_offset
        files = [s.file for s in self.closed_unsynced]
        if sync_active and self.log_end_offset > self.flushed_offset:
            files.append(self._active.file)
        flush = Flush(
            self._around.disk, self.folder, files,
            serial=self._serial, generation=self._generation, next_offset=next_offset,
        )  # fmt: skip
        flush.index_writes += self._postponed_writes
        for segment in (*self.closed_unsynced, self._active):
            flush.index_writes += segment.take_index_writes()
            if sync_indexes or not segment.is_active:
                flush.paths += [segment.path(suffix) for suffix in segment.indexes_unsynced]
                segment.indexes_unsynced = []
        flush.paths += self.unsynced_paths
        flush.folders += self.unsynced_folders
        if self.epochs.dirty:
            flush.epochs = encode_epochs(self.epochs.entries)
        if not (files or flush.index_writes or flush.paths or flush.folders or flush.epochs):
            return None
        self.epochs.dirty = False
        self._postponed_writes = []
        for segment in self.closed_unsynced:
            segment.is_flushing = True
        self._flushing, self.closed_unsynced = self.closed_unsynced, []
        self.unsynced_paths, self.unsynced_folders = [], []
        self._flush = flush
        return flush

    def end_flush(self, flush: Flush) -> None:
        """On the loop, after `flush.run`. A failure takes the log offline; nothing is raised."""
        assert flush is self._flush, "a flush ends once, on its own log"
        self._flush = None
        closed, self._flushing = self._flushing, []
        for segment in closed:
            segment.is_flushing = False
        if flush.error is not None:
            self.fail(flush.error)
        elif flush.postponed is not None:
            self.closed_unsynced[:0] = [
                s for s in closed if s in self.segments and s is not self._active
            ]
            self._postponed_writes = flush.index_writes
            self.unsynced_paths[:0] = flush.paths
            self.unsynced_folders[:0] = flush.folders
            self.epochs.dirty = self.epochs.dirty or flush.epochs is not None
        elif flush.generation == self._generation:
            self.flushed_offset = max(self.flushed_offset, flush.next_offset)

    def flush(self, *, sync_indexes: bool = False) -> None:
        """All of it inline. Raises KAFKA_STORAGE_ERROR."""
        try:
            flush = self._collect_flush(True, sync_indexes)
        except OSError as error:
            raise self.fail(error) from error
        if flush is not None:
            flush.run()
            self.end_flush(flush)
            if flush.postponed is not None:
                raise self.fail(flush.postponed)
        if self.offline is not None:
            raise self._offline_error()

    def begin_close(self) -> Flush | None:
        """For a clean stop: a flush after which opening reads next to nothing. None if in vain.

        No snapshot is written where there never was a producer: none at all means none to Kafka.
        Raises KAFKA_STORAGE_ERROR.
        """
        assert self._flush is None, "end the flush under way first"
        if self.offline is not None:
            raise self._offline_error()
        try:
            if (self.producers.producers or self.snapshots) and (
                not self.snapshots or self.snapshots[-1] < self.log_end_offset
            ):
                self._write_snapshot(self.log_end_offset)
            self._active.index_max_timestamp()
            return self._collect_flush(True, True)
        except OSError as error:
            raise self.fail(error) from error

    def close(self) -> None:
        """All of it inline. Raises KAFKA_STORAGE_ERROR."""
        flush = self.begin_close()
        if flush is not None:
            flush.run()
            self.end_flush(flush)
        self.end_close()

    def end_close(self) -> None:
        """After the flush of `begin_close`. Raises KAFKA_STORAGE_ERROR if it was in vain."""
        if self.offline is not None:
            raise self._offline_error()
        if self.is_dirty:
            raise RunnelError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.partition} is not flushed")
        for segment in self.segments:
            segment.release()

    def withdraw(self) -> None:
        """The log is deleted: nothing more is written, not even by a flush that is under way."""
        self.offline = f"{self.partition} is deleted"
        if self._flush is not None:
            self._flush.withdrawn = True
        for segment in self.segments:
            segment.release()  # or its bytes stay on the disk although its name is gone
