"""The batches of a log file one after another, at most a few megabytes of it in memory.

A batch whose CRC is wrong is still a batch: its length says where the next one starts, so it is
given like any other and the caller judges it. Where a header makes no sense nothing after it can
be told apart either: that is `Damage`, and the end of the walk.
"""

from collections.abc import Iterator
from typing import NamedTuple

from runnel.ports import File
from runnel.wire.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, BatchHeader

READ_BYTES = 4 << 20
BATCH_MAX_BYTES = 1 << 30


class Batch(NamedTuple):
    """`raw` is a view that is good until the next one is asked for."""

    position: int
    header: BatchHeader
    raw: memoryview


class Damage(NamedTuple):
    """From `position` on the file holds no batches."""

    position: int
    why: str
    is_torn: bool  # the file ends too early, as after a crash, or in the middle of a write


def walk(file: File, end: int, position: int = 0) -> Iterator[Batch | Damage]:
    """Up to `end`, a size that the file has or had. Raises OSError."""
    window, start = memoryview(b""), position
    while position < end:
        if position - start + HEADER_SIZE > len(window):
            window, start = _read(file, position, READ_BYTES, end), position
        at = position - start
        if len(window) - at < HEADER_SIZE:
            yield _too_short(window[at:], position)
            return
        header = BatchHeader.read(window, at)
        damage = _fault(header, position, end - position)
        if damage is not None:
            if not any(window[at : at + HEADER_SIZE]):
                damage = Damage(position, f"{end - position} bytes, zeros and no batch", True)
            yield damage
            return
        if at + header.size > len(window):
            window, start = _read(file, position, max(READ_BYTES, header.size), end), position
            at = 0
            if len(window) < header.size:  # cut while we read
                yield _torn(header, position, len(window))
                return
        yield Batch(position, header, window[at : at + header.size])
        position += header.size


def _read(file: File, position: int, size: int, end: int) -> memoryview:
    return memoryview(file.read_at(position, min(size, end - position)))


def _too_short(left: memoryview, position: int) -> Damage:
    what = "bytes" if any(left) else "bytes of zeros"
    return Damage(position, f"torn: {len(left)} {what}, less than the header of a batch", True)


def _torn(header: BatchHeader, position: int, left: int) -> Damage:
    return Damage(
        position,
        f"torn: the batch at offset {header.base_offset} has {header.size} bytes,"
        f" of which {left} are there",
        True,
    )


def _fault(header: BatchHeader, position: int, left: int) -> Damage | None:
    if header.magic != MAGIC:
        if header.magic in (0, 1) and header.length > 0:
            why = f"message format {header.magic}, of before Kafka 0.11, is not read"
        else:
            why = f"no batch: its format would be {header.magic}"
        return Damage(position, why, False)
    if header.length < HEADER_SIZE - LOG_OVERHEAD:
        return Damage(position, f"no batch: its length would be {header.length}", False)
    if header.base_offset < 0 or header.last_offset_delta < 0 or header.record_count < 0:
        why = (
            f"no batch: offsets from {header.base_offset} to {header.last_offset},"
            f" {header.record_count} records"
        )
        return Damage(position, why, False)
    if header.size > left:
        return _torn(header, position, left)
    if header.size > BATCH_MAX_BYTES:
        return Damage(position, f"a batch of {header.size} bytes is not read", False)
    return None
