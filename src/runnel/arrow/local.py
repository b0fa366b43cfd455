"""A range of offsets read from segment files instead of from the broker: the same rows.

The driver has learned from the broker (or, if that is down, from `offline`) up to where the range
may be read, and where the files are (`locating`). Whether they are here, and still are, is found
out in the task; where they are not, from that offset on the broker is asked instead. Without a
broker that is an error that says which file is missing.
"""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from runnel.arrow.counting import BatchCounter
from runnel.arrow.log_files import folder_of
from runnel.arrow.losses import report_loss
from runnel.arrow.mapped import GoneError, MappedLog
from runnel.arrow.markers import UndecidedError
from runnel.arrow.ranges import Place, Range, Scan
from runnel.arrow.segment_reading import SegmentReader
from runnel.arrow.tally import Tally
from runnel.errors import RunnelError
from runnel.storage.checkpoints import LOG_STARTS, decode_offsets
from runnel.storage.files import OsDisk
from runnel.types import NO_TOPIC_ID, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

BOOTSTRAP: Final = "bootstrap.servers"
_log = logging.getLogger(__name__)


def open_range(
    scan: Scan, piece: Range, tally: Tally | None = None, *, headers_suffice: bool = False
) -> "Iterator[pa.RecordBatch] | None":
    """The records of the range; None if its files are not for us to read, and a broker can be.

    With `headers_suffice` only topic and partition are wanted, which is to say how many there are:
    then batches are counted by their headers where those tell. The files are open when it returns.
    Raises ReadError.
    """
    if piece.place is None or piece.start >= piece.end:
        return None
    disk = OsDisk(read_only=True)
    try:
        log = _opened(disk, piece.place, piece)
    except (OSError, GoneError) as error:
        _leave_to_broker(scan, piece, piece.start, str(error))
        return None if scan.client.get(BOOTSTRAP) else iter(())
    tally = tally or Tally()
    reader = BatchCounter if headers_suffice else SegmentReader
    return _rows(scan, piece, reader(scan, piece, log, tally), tally)


def _opened(disk: OsDisk, place: Place, piece: Range) -> MappedLog:
    partition = TopicPartition(piece.topic, piece.partition)
    folder = folder_of(disk, place.folders, partition)
    if folder is None:
        raise GoneError(f"there is no folder {partition} in {', '.join(place.folders)}")
    if piece.start < _log_start(disk, folder, partition):
        raise GoneError(f"{partition} begins after offset {piece.start}")
    topic_id = place.topic_id if piece.topic_id == NO_TOPIC_ID else piece.topic_id
    return MappedLog(disk, folder, topic_id, piece.start, piece.end)


def _log_start(disk: OsDisk, folder: str, partition: TopicPartition) -> int:
    """Records before it were deleted by somebody, although their segment may still be there."""
    path = f"{folder.rpartition('/')[0]}/{LOG_STARTS}"
    try:
        return decode_offsets(disk.read_whole(path), path).get(partition, 0)
    except (FileNotFoundError, ValueError, RunnelError):
        return 0


def _leave_to_broker(scan: Scan, piece: Range, offset: int, why: str) -> None:
    """Raises ReadError where there is none, unless what is missing may be skipped."""
    if not scan.client.get(BOOTSTRAP):
        report_loss(scan, piece, offset, piece.end, f"{why}; and no kafka.{BOOTSTRAP} to ask")
    _log.info("%s-%s from offset %s on is read from the broker: %s", *piece[:2], offset, why)


def _rows(
    scan: Scan, piece: Range, reader: SegmentReader, tally: Tally
) -> "Iterator[pa.RecordBatch]":
    try:
        yield from reader.batches()
    except (OSError, GoneError, UndecidedError) as error:
        why = f"{error}" if not isinstance(error, UndecidedError) else f"open transaction: {error}"
        yield from _rest_from_broker(scan, piece, reader.offset, why, tally)
    else:
        if reader.offset < piece.end:
            why = f"{reader.folder} ends at offset {reader.offset}"
            yield from _rest_from_broker(scan, piece, reader.offset, why, tally)


def _rest_from_broker(
    scan: Scan, piece: Range, offset: int, why: str, tally: Tally
) -> "Iterator[pa.RecordBatch]":
    from runnel.arrow.scan import read_from_broker  # which imports this module

    _leave_to_broker(scan, piece, offset, why)
    if scan.client.get(BOOTSTRAP):
        yield from read_from_broker(scan, piece._replace(start=offset, place=None), tally)
