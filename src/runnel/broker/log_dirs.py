"""The data folders as administrators see them: what lies in each, and the moves between them.

One log moves at a time: its batches are copied in a worker, some at a time, while it is written and
read; when little is left that rest is copied on the loop, and the copy takes the log's place before
anybody else has a turn. A move that a stop cuts short begins again at the next start.
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from runnel.broker.log_fields import about
from runnel.broker.partition import Partition
from runnel.broker.partitions import Partitions
from runnel.broker.uninterrupted import uninterrupted
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Space, Workers
from runnel.storage.future_log import FutureLog
from runnel.storage.log import Log
from runnel.storage.store import LogStore
from runnel.storage.store_state import MEMORY_FOLDER, directory_of
from runnel.types import FileSlice, TopicPartition

_log = logging.getLogger(__name__)
COPIED_AT_ONCE_BYTES: Final = 4 << 20
# Copied on the loop, with one fsync: at first so much, and twice that whenever it was not enough,
# or a log that is written fast would never arrive.
REST_BYTES, REST_BYTES_MAX = 64 << 10, 4 << 20
RETRY_MS: Final = 5
PACE_MS: Final = 20
UNKNOWN_SPACE: Final = Space(-1, -1)


class Replica(NamedTuple):
    partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDir(NamedTuple):
    path: str
    error: ErrorCode
    replicas: Sequence[Replica]
    space: Space


class LogDirs:
    """Owned by the broker, started and stopped with it."""

    def __init__(
        self, logs: LogStore, partitions: Partitions, workers: Workers, ids: Sequence[bytes],
        paths: Sequence[str], bytes_per_second: int,
    ) -> None:  # fmt: skip
        self.ids = ids  # of those that are online
        self.paths = paths
        self.bytes_per_second = bytes_per_second  # of a move; may be changed at any time
        self._logs = logs
        self._partitions = partitions
        self._workers = workers
        self._wanted: dict[TopicPartition, str] = dict(logs.unfinished_moves)
        self._asked = asyncio.Event()
        if self._wanted:
            self._asked.set()

    # Describing

    async def describe(self) -> list[LogDir]:
        """All folders at one moment: a log that moves is in one of them."""
        spaces = await self._workers.run(self.spaces)
        found = [self._describe(path, space) for path, space in spaces.items()]
        if self._logs.logs_in(MEMORY_FOLDER):
            found.append(self._describe(MEMORY_FOLDER, UNKNOWN_SPACE))
        return found

    def spaces(self) -> dict[str, Space | None]:
        """In a worker, because a disk that fails may take its time. None for such a one."""
        found: dict[str, Space | None] = {}
        for path in self.paths:
            try:
                offline = path in self._logs.offline_dirs
                found[path] = None if offline else self._logs.disk.space(path)
            except OSError as error:
                _log.error("%s: %s", path, error, extra={"folder": path})
                found[path] = None
        return found

    def _describe(self, path: str, space: Space | None) -> LogDir:
        if space is None:
            return LogDir(path, ErrorCode.KAFKA_STORAGE_ERROR, (), UNKNOWN_SPACE)
        replicas = [self._replica(log) for log in self._logs.logs_in(path)]
        for partition, future in self._logs.futures.items():
            log = self._logs.get(*partition)
            if future.directory == path and log is not None:
                lag = log.log_end_offset - future.log_end_offset
                replicas.append(Replica(partition, future.size_bytes, lag, True))
        return LogDir(path, ErrorCode.NONE, replicas, space)

    def _replica(self, log: Log) -> Replica:
        held = self._partitions.find(log.topic, log.index)
        lag = 0 if held is None else max(held.high_watermark - log.log_end_offset, 0)
        return Replica(log.partition, log.size_bytes, lag, False)

    # Moving

    def move(self, partition: TopicPartition, path: str) -> None:
        """Begin to move it there; to where it is means to stay. Raises RunnelError."""
        held = self._partitions.get(*partition)
        if path not in self._logs.dirs:
            raise RunnelError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is none of this broker's")
        log = held.log
        if directory_of(log) == MEMORY_FOLDER:
            raise RunnelError(ErrorCode.INVALID_REQUEST, f"{partition} is in memory")
        if log.offline is not None:
            raise RunnelError(ErrorCode.KAFKA_STORAGE_ERROR, log.offline)
        if directory_of(log) == path:
            self._wanted.pop(partition, None)
        elif self._wanted.get(partition) != path:
            self._wanted.pop(partition, None)  # then it comes last, even if it is under way
            self._wanted[partition] = path
            self._asked.set()

    async def run(self) -> None:
        """As long as the broker: one move after the other, in the order they were asked for."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            while self._wanted:
                partition, path = next(iter(self._wanted.items()))
                try:
                    await self._move(partition, path)
                except RunnelError as error:
                    _log.error(
                        "%s is not moved to %s: %s", partition, path, error, extra=about(partition)
                    )
                if self._wanted.get(partition) == path:
                    del self._wanted[partition]
                await self._discard(self._logs.abandon_move(partition))

    async def _discard(self, future: FutureLog | None) -> None:
        if future is not None:
            try:
                await uninterrupted(self._workers.run(future.discard))
            except OSError as error:
                _log.error("files of a move stay until the next start: %s", error)

    async def _move(self, partition: TopicPartition, path: str) -> None:
        held = self._partitions.find(*partition)
        if held is None or path not in self._logs.dirs or directory_of(held.log) == path:
            return
        log = held.log
        future = self._logs.begin_move(log, path)
        is_near, rest_bytes = False, REST_BYTES
        while self._is_wanted(held, log, path):
            end_offset, found = log.log_end_offset, self._next(log, future)
            if found is not None and not is_near:
                await uninterrupted(self._workers.run(partial(_copy, found, future)))
                is_near = future.log_end_offset >= end_offset
                await self._pace(held, log, path, found.size)
                continue
            await uninterrupted(self._workers.run(future.flush))
            if log.is_flushing:
                await asyncio.sleep(RETRY_MS / 1000)
            elif self._is_wanted(held, log, path) and self._copy_rest(log, future, rest_bytes):
                held.replace_log(self._logs.end_move(log, future))
                _log.info("%s was moved to %s", partition, path, extra=about(partition))
                return
            else:
                is_near, rest_bytes = False, min(2 * rest_bytes, REST_BYTES_MAX)

    def _is_wanted(self, held: Partition, log: Log, path: str) -> bool:
        """Not once the topic is deleted, the log has failed, or somebody thought better of it."""
        return (
            self._wanted.get(held.topic_partition) == path
            and self._partitions.find(*held.topic_partition) is held
            and held.log is log
            and log.offline is None
        )

    async def _pace(self, held: Partition, log: Log, path: str, size_bytes: int) -> None:
        """Wait as long as the limit asks for, in short steps: it may be raised meanwhile."""
        waited_ms = 0
        while (
            waited_ms < size_bytes * 1000 // max(self.bytes_per_second, 1)
            and self._is_wanted(held, log, path)
        ):  # fmt: skip
            await asyncio.sleep(PACE_MS / 1000)
            waited_ms += PACE_MS

    def _next(self, log: Log, future: FutureLog) -> FileSlice | None:
        """What is to be copied next; None when the copy has caught up."""
        if not log.log_start_offset <= future.log_end_offset <= log.log_end_offset:
            future.start_again_at(log.log_start_offset)  # retention was faster
        return log.slice(
            future.log_end_offset,
            min(COPIED_AT_ONCE_BYTES, self.bytes_per_second),
            log.log_end_offset,
            at_least_one=True,
        )

    def _copy_rest(self, log: Log, future: FutureLog, limit_bytes: int) -> bool:
        """False if it is too much for the loop to wait for."""
        copied_bytes = 0
        while (found := self._next(log, future)) is not None:
            copied_bytes += found.size
            if copied_bytes > limit_bytes:
                return False
            _copy(found, future)
        return True


def _copy(found: FileSlice, future: FutureLog) -> None:
    future.take(found.read())
