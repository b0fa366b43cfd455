"""A log store on a simulated disk and clock, opened as often as a test likes."""

import random

from runnel.config.topic import LogConfig
from runnel.ports import Disk
from runnel.storage.log import Log
from runnel.storage.store import LogStore, Opened
from runnel.wire.batch import BatchHeader

TOPIC_ID = bytes(range(16))
FOLDER = "data"


class ManualClock:
    """Stands still until it is moved. Moving the wall alone is what setting a clock does."""

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self.wall = wall_ms
        self.monotonic = 5_000

    def wall_ms(self) -> int:
        return self.wall

    def monotonic_ms(self) -> int:
        return self.monotonic

    def advance(self, ms: int) -> None:
        self.wall += ms
        self.monotonic += ms


def open_store(
    disk: Disk, clock: ManualClock, config: LogConfig, *, boot_id: str = "boot-1"
) -> tuple[LogStore, Opened]:
    store = LogStore(
        disk, [FOLDER], clock, random.Random(7), config,
        cluster_id="cluster", node_id=1, boot_id=boot_id,
    )  # fmt: skip
    return store, store.open(config_of=lambda _topic: config)


def open_log(disk: Disk, clock: ManualClock, config: LogConfig) -> tuple[LogStore, Log]:
    """The log of topic-0, made if it is not there."""
    store, _ = open_store(disk, clock, config)
    log = store.get("topic", 0)
    return store, log if log is not None else store.create("topic", TOPIC_ID, 0, config)


def flush(log: Log) -> None:
    work = log.begin_flush(sync_active=True)
    if work is not None:
        work.run()
        log.end_flush(work)


def read_all(log: Log, max_bytes: int = 1 << 20) -> bytes:
    """All batches from the start of the log, fetched as a consumer would."""
    data, offset = bytearray(), log.log_start_offset
    while offset < log.log_end_offset:
        found = log.slice(offset, max_bytes, log.log_end_offset, at_least_one=True)
        assert found is not None, f"nothing at {offset} of {log.log_end_offset}"
        run = found.read()
        assert len(run) == found.size
        data += run
        offset = _end_of(run, offset)
    return bytes(data)


def _end_of(run: bytes, offset: int) -> int:
    position = 0
    while position < len(run):
        header = BatchHeader.read(run, position)
        position += header.size
        assert position <= len(run), "a partial batch"
        assert header.next_offset > offset, "a batch that the reader did not ask for"
        offset = header.next_offset
    return offset
