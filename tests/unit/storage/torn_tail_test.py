"""Recovery after every way in which the end of a log can be damaged.

Goal: of a damaged log the batches before the damage are all there, byte for byte, and nothing
else is; the log goes on from there, and what recovery rebuilt equals what appending had built.
Method: a log of small batches; each damage is done to a copy of its folder's files, at every byte
of the last three batches, and the folder is opened as after a crash.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.log import Log
from runnel.wire.batch import HEADER_SIZE, BatchHeader
from tests.simulated.disk import SimDisk
from tests.support.batches import make_batch, make_marker
from tests.support.stores import FOLDER, ManualClock, flush, open_log, open_store, read_all

CONFIG = LogConfig(index_interval_bytes=100)
LOG_PATH = f"{FOLDER}/topic-0/00000000000000000000.log"


def _batches() -> list[tuple[BatchHeader, bytes]]:
    return [
        make_batch(0, 2, value=b"first" * 20, producer_id=9, producer_epoch=0, sequence=0),
        make_batch(2, 1, timestamp=2_000, epoch=1, value=b"x" * 40),
        make_batch(3, 3, producer_id=5, producer_epoch=1, sequence=0, transactional=True, epoch=1),
        make_batch(6, 2, timestamp=1_500, epoch=2, producer_id=9, producer_epoch=0, sequence=2),
        make_marker(8, commit=False, producer_id=5, producer_epoch=1, epoch=2),
    ]


BATCHES = _batches()
WHOLE = b"".join(raw for _, raw in BATCHES)
ENDS = [sum(len(raw) for _, raw in BATCHES[: i + 1]) for i in range(len(BATCHES))]
FIRST_OF_LAST_THREE = ENDS[-4]


def _recover(content: bytes) -> Log:
    """Open a folder whose log holds these bytes, as left by a process that crashed."""
    disk, clock = SimDisk(0), ManualClock()
    store, log = open_log(disk, clock, CONFIG)
    del store
    log.flush()
    file = disk.open(LOG_PATH)
    file.write_at(0, content)
    disk.kill()
    store, opened = open_store(disk, clock, CONFIG)
    assert not opened.clean
    if store.failed:
        raise RunnelError(ErrorCode.KAFKA_STORAGE_ERROR, next(iter(store.failed.values())))
    recovered = store.get("topic", 0)
    assert recovered is not None
    return recovered


def _ensure_recovered(log: Log, kept: int) -> None:
    """The first `kept` batches are there and nothing else, in memory as in the file."""
    expected = b"".join(raw for _, raw in BATCHES[:kept])
    end = BATCHES[kept - 1][0].next_offset if kept else 0
    assert log.log_end_offset == end
    assert log.flushed_offset == end
    assert log.segments[-1].file.size() == len(expected)
    assert read_all(log) == expected
    built = _built_by_appending(kept)
    segment, same = log.segments[-1], built.segments[-1]
    assert segment.index.entries() == same.index.entries()
    assert segment.max_timestamp == same.max_timestamp
    assert segment.txn_index.entries == same.txn_index.entries
    assert log.epochs.entries == built.epochs.entries
    assert log.producers.snapshot() == built.producers.snapshot()
    assert log.first_unstable_offset == built.first_unstable_offset


_BUILT: dict[int, Log] = {}


def _built_by_appending(count: int) -> Log:
    if count not in _BUILT:
        _, log = open_log(SimDisk(0), ManualClock(), CONFIG)
        for header, raw in BATCHES[:count]:
            log.append(header, raw, 0)
        _BUILT[count] = log
    return _BUILT[count]


def _kept_before(position: int) -> int:
    return sum(end <= position for end in ENDS)


def _damages() -> Iterator[tuple[str, bytes]]:
    for position in range(FIRST_OF_LAST_THREE, len(WHOLE)):
        yield "cut", WHOLE[:position]
        yield "zero-filled", WHOLE[:position] + bytes(len(WHOLE) - position)
        yield "zero-filled page", WHOLE[:position] + bytes(700)
        garbage = bytes((17 * i + position) & 0xFF for i in range(1, len(WHOLE) - position + 1))
        yield "garbled", WHOLE[:position] + garbage


def test_a_damaged_tail_is_cut_where_the_damage_begins() -> None:
    counts: Counter[str] = Counter()
    for kind, content in _damages():
        intact = next(
            (i for i, (a, b) in enumerate(zip(content, WHOLE, strict=False)) if a != b),
            min(len(content), len(WHOLE)),
        )
        _ensure_recovered(_recover(content), _kept_before(intact))
        counts[kind] += 1
    print(f"\nrecoveries: {dict(counts)}, {counts.total()} in all")
    assert counts.total() == 4 * (len(WHOLE) - FIRST_OF_LAST_THREE)


def test_a_log_goes_on_after_recovery() -> None:
    log = _recover(WHOLE[:-1])
    header, raw = make_batch(log.log_end_offset, 2, epoch=3)
    log.append(header, raw, 0)
    assert read_all(log) == WHOLE[: ENDS[-2]] + raw


def test_whole_batches_after_the_tail_are_kept() -> None:
    _ensure_recovered(_recover(WHOLE), len(BATCHES))


LEADER_EPOCH_BITS = range(12 * 8, 16 * 8)


def test_every_flipped_bit_of_a_header_is_noticed() -> None:
    """All but a raised leader epoch, which no checksum covers and which nothing contradicts."""
    counts: Counter[str] = Counter()
    for number in range(len(BATCHES) - 3, len(BATCHES)):
        start = ENDS[number - 1]
        for bit in range(HEADER_SIZE * 8):
            content = bytearray(WHOLE)
            content[start + bit // 8] ^= 0x80 >> (bit % 8)
            if content[start + 16] == 3:  # may be a later format: nothing is destroyed
                with pytest.raises(RunnelError, match="format 3"):
                    _recover(bytes(content))
                counts["refused"] += 1
                continue
            log = _recover(bytes(content))
            if bit in LEADER_EPOCH_BITS and log.log_end_offset > BATCHES[number][0].base_offset:
                epoch = BatchHeader.read(content, start).partition_leader_epoch
                assert epoch > BATCHES[number][0].partition_leader_epoch
                counts["raised epoch"] += 1
                continue
            _ensure_recovered(log, number)
            counts["cut"] += 1
    print(f"\nflipped header bits: {dict(counts)}")
    assert counts.total() == 3 * HEADER_SIZE * 8
    assert counts["cut"] > 3 * (HEADER_SIZE - 5) * 8
    assert counts["refused"] == 3


@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex", "snapshot"])
def test_damaged_side_files_are_made_anew_after_a_crash(suffix: str) -> None:
    disk, clock = SimDisk(0), ManualClock()
    _, log = open_log(disk, clock, CONFIG)
    for header, raw in BATCHES:
        log.append(header, raw, 0)
    flush(log)
    path = f"{FOLDER}/topic-0/00000000000000000000.{suffix}"
    content = disk.read_whole(path) if disk.exists(path) else b"\x00\x01garbage"
    count = 0
    for position in range(len(content) + 1):
        for damaged in (content[:position], content[:position] + b"\xa5" * 40):
            file = disk.open(path, create=True)
            file.truncate(0)
            file.write_at(0, damaged)
            disk.kill()
            store, _ = open_store(disk, clock, CONFIG)
            recovered = store.get("topic", 0)
            assert recovered is not None, store.failed
            _ensure_recovered(recovered, len(BATCHES))
            count += 1
    print(f"\n{suffix}: {count} recoveries")
