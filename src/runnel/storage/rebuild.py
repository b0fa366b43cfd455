"""Producer state and transaction indexes made anew from the batches of a log (R25).

The newest undamaged snapshot at or before the wanted offset is loaded and the headers after it are
replayed. Without any snapshot the replay starts where the log does. Nothing is judged again.
"""

import contextlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from runnel.ports import Disk
from runnel.storage.files import write_all
from runnel.storage.producers import ProducerStates
from runnel.storage.segment import SNAPSHOT, Segment
from runnel.storage.transactions import TransactionIndex, read_marker
from runnel.wire.batch import CONTROL, LOG_OVERHEAD, BatchHeader

MARKER_READ_MAX_BYTES = 4096
REPLAY_READ_BYTES = 1 << 20


def rebuild_producers(
    disk: Disk, segments: Sequence[Segment], snapshots: list[int], end_offset: int
) -> ProducerStates:
    """The state after all batches that end before `end_offset`. Damaged snapshots are removed."""
    states, from_offset = _newest_snapshot(disk, segments, snapshots, end_offset)
    for segment, position, header in _batches(segments, from_offset, end_offset):
        if header.producer_id >= 0:
            raw = read_control(segment, position, header)
            states.update(header, read_marker(raw) if raw else None)
    return states


def rebuild_transactions(
    disk: Disk, segments: Sequence[Segment], snapshots: list[int], segment: Segment
) -> TransactionIndex:
    """The aborted transactions whose markers lie in `segment`, for a damaged transaction index."""
    states = rebuild_producers(disk, segments, snapshots, segment.base_offset)
    index = TransactionIndex()
    for position, header in segment.headers():
        if header.producer_id >= 0:
            raw = read_control(segment, position, header)
            aborted = states.update(header, read_marker(raw) if raw else None)
            if aborted is not None:
                index.append(aborted)
    index.rewrite()
    return index


def write_snapshot(disk: Disk, folder: str, offset: int, states: ProducerStates) -> str:
    """The path of the snapshot, which the caller syncs; a torn one is found by its CRC."""
    path = f"{folder}/{offset:020d}{SNAPSHOT}"
    file = disk.open(path, create=True)
    file.truncate(0)
    write_all(file, 0, states.snapshot())
    return path


def read_control(segment: Segment, position: int, header: BatchHeader) -> bytes:
    """The bytes of a control batch, none for any other."""
    if not header.attributes & CONTROL:
        return b""
    return segment.file.read_at(position, min(header.length + LOG_OVERHEAD, MARKER_READ_MAX_BYTES))


def _newest_snapshot(
    disk: Disk, segments: Sequence[Segment], snapshots: list[int], end_offset: int
) -> tuple[ProducerStates, int]:
    for offset in [o for o in reversed(snapshots) if o <= end_offset]:
        path = f"{segments[0].folder}/{offset:020d}{SNAPSHOT}"
        try:
            return ProducerStates.load(disk.read_whole(path)), offset
        except (ValueError, FileNotFoundError):
            snapshots.remove(offset)
            with contextlib.suppress(FileNotFoundError):
                disk.remove(path)
    return ProducerStates(), segments[0].base_offset


def _batches(
    segments: Sequence[Segment], from_offset: int, end_offset: int
) -> Iterator[tuple[Segment, int, BatchHeader]]:
    first = max(bisect_right([s.base_offset for s in segments], from_offset) - 1, 0)
    for segment in segments[first:]:
        if segment.base_offset >= end_offset:
            return
        start = segment.position_of(from_offset) if from_offset > segment.base_offset else 0
        for position, header in segment.headers(start, chunk_bytes=REPLAY_READ_BYTES):
            if header.base_offset >= end_offset:
                return
            yield segment, position, header
