"""A log on its way to another data folder, in Kafka's word a future log.

The copy is made batch by batch beside the log, in a folder `<topic>-<index>.<32 hex>-future` of the
other data folder, so that it has every CRC checked and its indexes made anew. When it has caught up
it takes the place of the log, on the loop and in this order:

  1. the copy is complete and synced, and is renamed to `...-moved`, durably;
  2. the old folder is renamed to `...-delete`, durably;
  3. the copy is renamed to `<topic>-<index>`, and from here on it is written to.

Whatever a crash leaves of this has one meaning: a `-future` folder is a copy that was not finished,
to be begun again; a `-moved` one is the log itself if there is no folder of its name, and of no
more use if there is. So no two folders ever claim to be the same log.
"""

import itertools
import random

from runnel.errors import ErrorCode, RunnelError
from runnel.storage.checkpoints import (
    PARTITION_METADATA,
    encode_partition_metadata,
    replace_file,
)
from runnel.storage.data_folder import FUTURE, MOVED
from runnel.storage.epochs import LeaderEpochs
from runnel.storage.files import OpenFiles
from runnel.storage.log import Log, Surroundings
from runnel.storage.recovery import Wanted, load_log
from runnel.storage.trash import Trash
from runnel.wire.batch import BatchHeader

OPEN_FILES_MAX = 4


class FutureLog:
    """Made by `LogStore.begin_move`. `take` and `flush` may run in a thread, one at a time; it has
    surroundings of its own, so nothing that the loop uses is touched there.
    """

    def __init__(self, around: Surroundings, log: Log, directory: str, name: str) -> None:
        """Raises OSError. An empty copy, from the first offset that may be read on."""
        disk, clock = around.disk, around.clock
        self.directory = directory
        self.folder = f"{directory}/{name}{FUTURE}"
        self.partition = log.partition
        self._disk = disk
        self._clock = clock
        own = Surroundings(
            disk, OpenFiles(OPEN_FILES_MAX), clock, around.clock_guard, random.Random(0),
            Trash(disk, clock), itertools.count(),
        )  # fmt: skip
        disk.make_dir(self.folder)
        metadata = encode_partition_metadata(log.topic_id)
        replace_file(disk, self.folder, PARTITION_METADATA, metadata)
        wanted = Wanted(True, 0, log.log_start_offset, True)
        self._log = load_log(own, self.folder, log.partition, log.config, wanted, [])
        self._log.unsynced_folders += [self.folder, directory]

    @property
    def log_end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def size_bytes(self) -> int:
        return self._log.size_bytes

    def take(self, records: bytes) -> None:
        """The next batches of the log. Raises RunnelError, if one of them is damaged too."""
        log = self._log
        base_offset = BatchHeader.read(records).base_offset
        if not log.size_bytes and base_offset < log.log_end_offset:
            log.truncate_fully_and_start_at(base_offset)  # a batch that is readable in part
        if not log.append_as_follower(memoryview(records), self._clock.wall_ms()):
            raise RunnelError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self.partition}: no batch at {base_offset}"
            )

    def start_again_at(self, offset: int) -> None:
        """What was copied is not part of the log any more. Raises KAFKA_STORAGE_ERROR."""
        self._log.truncate_fully_and_start_at(offset)

    def flush(self) -> None:
        """Raises KAFKA_STORAGE_ERROR."""
        self._log.flush()

    def finish(self, log: Log) -> None:
        """Step 1: all that the log is, on disk. Raises OSError and KAFKA_STORAGE_ERROR."""
        own = self._log
        if own.log_end_offset < log.log_end_offset:  # nothing is left to copy: offsets without data
            own.roll(self._clock.wall_ms(), log.log_end_offset)
        own.producers = log.producers
        own.epochs = LeaderEpochs(log.epochs.entries)
        own.epochs.dirty = True
        own.close()
        moved = self.folder.removesuffix(FUTURE) + MOVED
        self._disk.rename(self.folder, moved)
        self.folder = moved
        self._disk.sync_dir(self.directory)

    def discard(self) -> None:
        """It is not needed any more. Raises OSError."""
        self._log.withdraw()
        if self._disk.exists(self.folder):
            self._disk.remove_tree(self.folder)
