"""Recovery of many plain batches, which it looks at in runs: as appending left them, or cut.

Damage is done at every byte of a few batches; chunks are so small that runs end everywhere.
"""

from collections.abc import Iterator
from types import ModuleType

import pytest

from runnel.config.topic import LogConfig
from runnel.storage import segment_scan
from runnel.storage.log import Log
from runnel.wire.batch import BatchHeader
from tests.simulated.disk import SimDisk
from tests.support.batches import make_batch, make_marker
from tests.support.stores import FOLDER, ManualClock, open_log, open_store, read_all
from tests.unit.native.conftest import load

CONFIG = LogConfig(index_interval_bytes=150)
COMPACTED = LogConfig(index_interval_bytes=150, cleanup_policy=frozenset({"compact"}))
LOG_PATH = f"{FOLDER}/topic-0/00000000000000000000.log"
EPOCHS_PATH = f"{FOLDER}/topic-0/leader-epoch-checkpoint"
TIMES = (5, 9, 7, 9, 30, 20, 40)


def _batches(gap: int = 0) -> list[tuple[BatchHeader, bytes]]:
    """Two producers among them, one of which aborts; two epochs."""
    found: list[tuple[BatchHeader, bytes]] = []
    offset = 0
    for number in range(28):
        epoch, time = number // 20, TIMES[number % len(TIMES)] + number
        if number == 13:
            made = make_marker(offset, commit=False, producer_id=5, producer_epoch=1)
        elif number in (9, 11):
            made = make_batch(
                offset, 2, timestamp=time, producer_id=5, producer_epoch=1,
                sequence=number - 9, transactional=True,
            )  # fmt: skip
        elif number in (16, 17):
            made = make_batch(
                offset, timestamp=time, producer_id=8, producer_epoch=0, sequence=number - 16
            )
        else:
            made = make_batch(offset, 1 + number % 2, timestamp=time, epoch=epoch)
        found.append(made)
        offset = made[0].next_offset + (gap if number % 5 == 4 else 0)
    return found


@pytest.fixture(params=["_batch_runs", "_batch_runs_py"])
def runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load(request.param)
    monkeypatch.setattr(segment_scan, "scan_run", module.scan_run)
    return module


@pytest.fixture(params=[130, 1000, 1 << 20])
def chunk_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(segment_scan, "READ_BYTES", request.param)
    return int(request.param)


def _recover(content: bytes, config: LogConfig = CONFIG) -> Log:
    disk, clock = SimDisk(0), ManualClock()
    _store, log = open_log(disk, clock, config)
    log.flush()
    disk.open(LOG_PATH).write_at(0, content)
    disk.kill()
    store, opened = open_store(disk, clock, config)
    assert not opened.clean
    recovered = store.get("topic", 0)
    assert recovered is not None, store.failed
    return recovered


def _appended(batches: list[tuple[BatchHeader, bytes]], config: LogConfig = CONFIG) -> Log:
    _, log = open_log(SimDisk(0), ManualClock(), config)
    for header, raw in batches:
        log.append(header, raw, 0)
    return log


def _ensure_same(log: Log, built: Log) -> None:
    assert log.log_end_offset == log.flushed_offset == built.log_end_offset
    assert read_all(log) == read_all(built)
    segment, same = log.segments[-1], built.segments[-1]
    assert segment.size == same.size == segment.file.size()
    assert segment.index.entries() == same.index.entries()
    assert segment.time_index.entries() == same.time_index.entries()
    assert segment.max_timestamp == same.max_timestamp
    assert segment.max_timestamp_offset == same.max_timestamp_offset
    assert segment.first_timestamp == same.first_timestamp
    assert segment.txn_index.entries == same.txn_index.entries
    assert log.epochs.entries == built.epochs.entries
    assert log.producers.snapshot() == built.producers.snapshot()
    for offset in range(log.log_end_offset):
        assert segment.position_of(offset) == same.position_of(offset)


@pytest.mark.usefixtures("runs", "chunk_bytes")
def test_what_recovery_makes_is_what_appending_made() -> None:
    batches = _batches()
    _ensure_same(_recover(b"".join(raw for _, raw in batches)), _appended(batches))


@pytest.mark.usefixtures("runs", "chunk_bytes")
def test_gaps_that_compaction_left() -> None:
    batches = _batches(gap=3)
    content = b"".join(raw for _, raw in batches)
    _ensure_same(_recover(content, COMPACTED), _appended(batches, COMPACTED))
    _ensure_same(_recover(content), _appended(batches[:5]))  # a hole would be a loss


def _damages(content: bytes, first: int) -> Iterator[tuple[int, bytes]]:
    for position in range(first, len(content)):
        yield position, content[:position]
        yield position, content[:position] + bytes(len(content) - position)
        flipped = bytearray(content)
        flipped[position] ^= 0x10
        yield position, bytes(flipped)


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("chunk_bytes", [300, 1 << 20], indirect=True)
def test_damage_at_any_byte_cuts_there(chunk_bytes: int) -> None:
    batches = _batches()[:8]
    ends = [sum(len(raw) for _, raw in batches[: i + 1]) for i in range(len(batches))]
    content = b"".join(raw for _, raw in batches)
    built = [_appended(batches[:count]) for count in range(len(batches) + 1)]
    assert chunk_bytes > 0
    raised_epochs = 0
    for position, damaged in _damages(content, ends[4]):
        intact = next(
            (i for i, (a, b) in enumerate(zip(damaged, content, strict=False)) if a != b),
            len(damaged),
        )
        log = _recover(damaged)
        start = max(end for end in ends if end <= position)
        if len(damaged) == len(content) and 12 <= position - start < 16 and any(damaged[start:]):
            raised_epochs += log.epochs.latest_epoch > 0  # which no CRC covers
            if log.epochs.latest_epoch > 0:
                continue
        _ensure_same(log, built[sum(end <= intact for end in ends)])
    assert raised_epochs == 4 * 3


@pytest.mark.usefixtures("runs")
def test_the_epochs_of_a_log_that_was_scanned_whole_need_no_file() -> None:
    batches = _batches()
    disk, clock = SimDisk(0), ManualClock()
    _store, log = open_log(disk, clock, CONFIG)
    for header, raw in batches:
        log.append(header, raw, 0)
    log.flush()
    if disk.exists(EPOCHS_PATH):
        disk.remove(EPOCHS_PATH)
    disk.kill()
    store, _ = open_store(disk, clock, CONFIG)
    recovered = store.get("topic", 0)
    assert recovered is not None
    _ensure_same(recovered, _appended(batches))
