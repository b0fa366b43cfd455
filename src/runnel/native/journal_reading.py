"""A coordinator's journal read back: its records and markers, one after the other.

A journal is millions of batches of one record each, where the columns of `native.records` cost more
than they give, so they are read as runs. What a coordinator does not write (compression) is left to
those columns, and markers.
"""

from collections.abc import Container

from runnel.native.batch_runs import read_run
from runnel.native.columns import ControlType
from runnel.native.journal_steps import Step, add_record, give_last
from runnel.native.records import decode
from runnel.wire.batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader


class JournalReader:
    """Of one run of whole batches. `steps` is what is to be replayed, see `journal_steps.py`."""

    def __init__(self, straight: Container[bytes]) -> None:
        self._straight = straight
        self._last: dict[bytes, bytes] = {}
        self.steps: list[Step] = []

    def read(self, data: bytes, from_offset: int) -> int:
        """All in these bytes; the offset after them. Raises RunnelError for bad bytes."""
        position, next_offset = 0, from_offset
        while True:
            position, after = read_run(
                data, position, from_offset, self._straight, self._last, self.steps
            )
            next_offset = max(next_offset, after)
            if len(data) - position < HEADER_SIZE:
                break
            header = BatchHeader.read(data, position)  # whole: the run has looked
            end = position + LOG_OVERHEAD + header.length
            self._read_slowly(data[position:end], from_offset)
            next_offset = max(next_offset, header.next_offset)
            position = end
        give_last(self._last, self.steps)
        return next_offset

    def _read_slowly(self, batch: bytes, from_offset: int) -> None:
        columns = decode(
            batch, from_offset=from_offset, max_records=2**31 - 1, max_bytes=2**30, headers=False
        )
        for found in columns.batches:
            producer_id = found.header.producer_id
            if found.control is None:
                keys, values = columns.keys.values(), columns.values.values()
                for key, value in zip(keys, values, strict=True):
                    if key is not None:
                        add_record(key, value, producer_id, self._straight, self._last, self.steps)
            elif found.control in (ControlType.COMMIT, ControlType.ABORT):
                give_last(self._last, self.steps)
                self.steps.append((found.control, None, producer_id))
