"""The times of one batch by its header alone, for who wants to know whether a log is in order."""

from typing import NamedTuple

from runnel.arrow.log_files import folder_of
from runnel.arrow.mapped import GoneError, MappedLog
from runnel.arrow.ranges import Range
from runnel.arrow.tally import Tally
from runnel.storage.files import OsDisk
from runnel.types import TopicPartition
from runnel.wire.batch import CONTROL, DELETE_HORIZON, HEADER_SIZE, LOG_APPEND_TIME, BatchHeader


class Times(NamedTuple):
    first_ms: int  # of the first record, which need not be the earliest
    latest_ms: int


def times_near(piece: Range, tally: Tally) -> Times | None:
    """Of the first batch in the range that has records; None if none has, or it is not in files."""
    if piece.place is None:
        return None
    disk = OsDisk(read_only=True)
    try:
        folder = folder_of(disk, piece.place.folders, TopicPartition(piece.topic, piece.partition))
        if folder is None:
            return None
        log = MappedLog(disk, folder, piece.place.topic_id, piece.start, piece.start + 1)
        segment = log.segment(0)
    except (OSError, GoneError):
        return None
    if segment is None:
        return None
    try:
        segment.read_sparsely()
        position = segment.position_near(piece.start, verify_crc=False)
        while (header := segment.header_at(position)) is not None:
            tally.add(file_bytes=HEADER_SIZE)
            if header.base_offset >= piece.end:
                break
            if header.next_offset > piece.start and (found := _times(header)) is not None:
                return found
            position += header.size
    finally:
        segment.close()
    return None


def _times(header: BatchHeader) -> Times | None:
    if header.attributes & CONTROL or header.record_count <= 0:
        return None
    is_first_known = not header.attributes & (LOG_APPEND_TIME | DELETE_HORIZON)
    first_ms = header.base_timestamp if is_first_known else header.max_timestamp
    return Times(first_ms, header.max_timestamp)
