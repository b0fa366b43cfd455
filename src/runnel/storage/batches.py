"""A run of batches as it comes from a leader: cut into single ones, each checked."""

from collections.abc import Iterator

from runnel.errors import ErrorCode, RunnelError
from runnel.wire.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, BatchHeader, crc_is_right


def split_batches(records: memoryview) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The whole batches, in order. A partial one at the end is what a fetch may end with.

    Raises CORRUPT_MESSAGE for a length, magic or CRC that cannot be.
    """
    position = 0
    while position + HEADER_SIZE <= len(records):
        header = BatchHeader.read(records, position)
        if header.length < HEADER_SIZE - LOG_OVERHEAD or header.magic != MAGIC:
            raise RunnelError(ErrorCode.CORRUPT_MESSAGE, f"no batch at position {position}")
        raw = records[position : position + header.size]
        if len(raw) < header.size:
            return
        if header.last_offset_delta < 0 or not crc_is_right(header, raw):
            raise RunnelError(ErrorCode.CORRUPT_MESSAGE, f"batch {header.base_offset} is damaged")
        yield header, raw
        position += header.size
