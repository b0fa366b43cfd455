"""One segment read whole after a crash: what of it is good, and what its batches imply.

Most batches are plain ones that follow each other, and are looked at in runs
(`native/batch_runs.py`). What ends a run is looked at by itself here: the first batch of the
segment, one of another epoch, a marker, one that the chunk has not whole, and whatever is wrong.
"""

import struct
import zlib
from typing import NamedTuple

from runnel.errors import ErrorCode, RunnelError
from runnel.native.batch_runs import scan_run
from runnel.native.scanned import ScanRules
from runnel.ports import File
from runnel.storage.checkpoints import RECOVERY_POINTS
from runnel.storage.epochs import LeaderEpochs
from runnel.storage.folder import Notice
from runnel.storage.index import MAX_RELATIVE_OFFSET
from runnel.storage.producers import ProducerStates
from runnel.storage.segment import LOG, Segment
from runnel.storage.transactions import Marker, read_marker
from runnel.wire.batch import (
    CONTROL,
    CRC_START,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    crc32c,
)

READ_BYTES = 1 << 20
_OFFSET_MAX = 2**63 - 1
_OLD_MESSAGE = struct.Struct(">qiIb")  # offset, size, CRC-32 of what follows it, magic


class Judge(NamedTuple):
    """What a scan may find fault with."""

    recovery_point: int
    allow_gaps: bool
    notices: list[Notice]

    @property
    def gaps_before(self) -> int:
        """A batch that starts here or before need not follow the one before it."""
        return _OFFSET_MAX if self.allow_gaps else min(self.recovery_point, _OFFSET_MAX)

    def allows_gap_before(self, offset: int) -> bool:
        return self.allow_gaps or offset <= self.recovery_point

    def keeps_damaged(self, segment: Segment, header: BatchHeader) -> bool:
        if header.next_offset > self.recovery_point:
            return False
        text = f"batch {header.base_offset} is damaged, and was durable: kept"
        self.notices.append(Notice(segment.path(LOG), text))
        return True

    def note_end(self, segment: Segment) -> None:
        if segment.next_offset < self.recovery_point:
            text = f"ends at {segment.next_offset}, before {self.recovery_point} was durable"
            self.notices.append(Notice(segment.path(LOG), text))


def scan_segment(
    segment: Segment, producers: ProducerStates, epochs: LeaderEpochs, judge: Judge
) -> int:
    """Read the whole file, keep the good batches at its start, cut the rest. Bytes cut.

    Raises RunnelError instead of cutting before the recovery point.
    """
    segment.reset_indexes()
    segment.next_offset = segment.base_offset
    segment.is_active = True
    size = segment.size
    segment.size = _Scan(segment, producers, epochs, judge).good_bytes()
    if segment.size < size and segment.next_offset < judge.recovery_point:
        raise RunnelError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{segment.path(LOG)} is damaged at position {segment.size}, before its recovery point"
            f" {judge.recovery_point}: restore the file, or remove {RECOVERY_POINTS} to have the"
            " log cut there",
        )
    if segment.size < size:
        segment.file.truncate(segment.size)
    return size - segment.size


class _Scan:
    """Of one segment, until the first batch that is not whole, sane and right.

    Memory stays at one chunk.
    """

    def __init__(
        self, segment: Segment, producers: ProducerStates, epochs: LeaderEpochs, judge: Judge
    ) -> None:
        self._segment = segment
        self._producers = producers
        self._epochs = epochs
        self._judge = judge
        self._epoch = -1  # of the batch before
        self._chunk, self._chunk_at = b"", 0
        self._rules = ScanRules(
            judge.gaps_before,
            min(segment.base_offset + MAX_RELATIVE_OFFSET, _OFFSET_MAX - 1),
            segment.index_interval_bytes,
        )

    def good_bytes(self) -> int:
        """The size of all good batches, which are then indexed and known to all else."""
        position, size = 0, self._segment.size
        while position + HEADER_SIZE <= size:
            if position - self._chunk_at + HEADER_SIZE > len(self._chunk):
                self._read(position)
            end = self._take_run(position) if position else 0
            if end <= position:
                end = self._take_one(position)
                if end == position:
                    break
            position = end
        return position

    def _read(self, position: int) -> None:
        size = min(READ_BYTES, self._segment.size - position)
        self._chunk, self._chunk_at = self._segment.file.read_at(position, size), position

    def _take_run(self, position: int) -> int:
        """The position after it, which is the same if there is none."""
        segment, rules = self._segment, self._rules
        if segment.next_offset > rules.last_offset_max:
            return position
        before = segment.scanned(position, self._epoch)
        run = scan_run(self._chunk, self._chunk_at, rules, before)
        if run.after.position > position:
            segment.note_run(run)
            for at in run.produced:
                header = BatchHeader.read(self._chunk, at - self._chunk_at)
                self._producers.update(header, None)
        return run.after.position

    def _take_one(self, position: int) -> int:
        """The same for one batch, of any kind."""
        segment, judge = self._segment, self._judge
        header = BatchHeader.read(self._chunk, position - self._chunk_at)
        end = position + header.size
        if header.length < HEADER_SIZE - LOG_OVERHEAD or end > segment.size:
            return position
        if header.magic != MAGIC:
            _refuse_other_formats(segment, header, position)
            return position
        if end > self._chunk_at + len(self._chunk) and position > self._chunk_at:
            self._read(position)
        if not _follows(segment, header, self._epoch, judge):
            return position
        at = position - self._chunk_at
        right = _body_crc(segment.file, header, self._chunk, at, position) == header.crc
        if not right and not judge.keeps_damaged(segment, header):
            return position
        marker = None
        if header.attributes & CONTROL:
            try:
                marker = read_marker(self._chunk[at : at + header.size])
            except RunnelError:
                return position
        self._keep(position, header, marker)
        return end

    def _keep(self, position: int, header: BatchHeader, marker: Marker | None) -> None:
        segment = self._segment
        segment.note(position, header.last_offset, header.max_timestamp)
        if header.partition_leader_epoch > self._epochs.latest_epoch:
            self._epochs.assign(header.partition_leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            aborted = self._producers.update(header, marker)
            if aborted is not None:
                segment.txn_index.append(aborted)
        self._epoch = header.partition_leader_epoch


def _follows(segment: Segment, header: BatchHeader, epoch: int, judge: Judge) -> bool:
    """Whether the fields that no CRC covers continue the batches before."""
    base_offset, expected = header.base_offset, segment.next_offset
    return (
        (
            base_offset == expected
            or (base_offset > expected and judge.allows_gap_before(base_offset))
        )
        and header.last_offset_delta >= 0
        and segment.may_hold(header.last_offset)
        and header.partition_leader_epoch >= epoch
    )


def _body_crc(file: File, header: BatchHeader, chunk: bytes, at: int, position: int) -> int:
    """CRC-32C of a batch; one larger than the chunk is read piece by piece, never at once."""
    end = position + LOG_OVERHEAD + header.length
    piece = memoryview(chunk)[at + CRC_START : at + LOG_OVERHEAD + header.length]
    crc = crc32c(piece)
    position += CRC_START + len(piece)
    while position < end:
        more = file.read_at(position, min(READ_BYTES, end - position))
        if not more:
            return -1
        crc = crc32c(more, crc)
        position += len(more)
    return crc


def _refuse_other_formats(segment: Segment, header: BatchHeader, position: int) -> None:
    """Bytes with another magic are garbage to cut, unless their own checksum says otherwise."""
    size = header.length + LOG_OVERHEAD
    if size > READ_BYTES:
        return
    raw = segment.file.read_at(position, size)
    _offset, _size, old_crc, magic = _OLD_MESSAGE.unpack_from(raw)
    is_old = magic in (0, 1) and zlib.crc32(raw[16:]) == old_crc
    is_newer = header.magic == MAGIC + 1 and crc32c(raw[CRC_START:]) == header.crc
    if is_old or is_newer:
        raise RunnelError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{segment.path(LOG)} holds records of format {header.magic} at position {position};"
            f" this release reads {MAGIC}",
        )
