"""A log with keys, transactions and producers, for tests of compaction."""

from runnel.config.topic import LogConfig
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode
from runnel.ports import Disk
from runnel.storage.log import Log
from runnel.storage.store import LogStore
from runnel.wire.batch import BatchHeader
from tests.simulated.disk import SimDisk
from tests.support.batches import make_marker
from tests.support.compacting import clean, committed
from tests.support.stores import ManualClock, flush, open_log

T0 = 1_700_000_000_000


class World:
    """A log that is written, rolled, cleaned and opened again."""

    def __init__(self, config: LogConfig, disk: Disk | None = None) -> None:
        self.disk: Disk = SimDisk(0) if disk is None else disk
        self.clock = ManualClock(T0)
        self.config = config
        self.store: LogStore
        self.log: Log
        self.open()

    def open(self) -> None:
        self.store, self.log = open_log(self.disk, self.clock, self.config)
        self.log.producers.high_watermark_moved(self.log.log_end_offset)

    def crash(self) -> None:
        assert isinstance(self.disk, SimDisk)
        self.disk.kill()
        self.open()

    def put(
        self, *pairs: tuple[str, str | None], producer_id: int = -1, sequence: int = -1,
        transactional: bool = False, codec: Compression = Compression.NONE, epoch: int = 0,
    ) -> BatchHeader:  # fmt: skip
        now_ms = self.clock.wall_ms()
        raw = encode(
            [
                Record(key.encode(), None if value is None else value.encode(), now_ms + i)
                for i, (key, value) in enumerate(pairs)
            ],
            codec=codec,
            base_offset=self.log.log_end_offset,
            partition_leader_epoch=0,
            producer_id=producer_id,
            producer_epoch=epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
        )
        header = BatchHeader.read(raw)
        self.log.append(header, raw, now_ms)
        return header

    def end(self, producer_id: int, *, commit: bool) -> None:
        header, raw = make_marker(
            self.log.log_end_offset, commit=commit, producer_id=producer_id, producer_epoch=0,
            timestamp=self.clock.wall_ms(),
        )  # fmt: skip
        self.log.append(header, raw, self.clock.wall_ms())
        self.log.producers.high_watermark_moved(self.log.log_end_offset)

    def roll(self) -> None:
        self.log.roll(self.clock.wall_ms(), self.log.log_end_offset)
        flush(self.log)

    def clean(self, *, rolls: bool = True) -> None:
        if rolls:
            self.roll()
        clean(self.disk, self.log, self.clock.wall_ms())

    def seen(self) -> list[tuple[int, str, str | None]]:
        return [
            (s.offset, (s.key or b"").decode(), None if s.value is None else s.value.decode())
            for s in committed(self.log)
        ]
