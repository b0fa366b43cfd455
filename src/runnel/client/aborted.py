"""Which records of a fetch belong to transactions that were aborted, as a reader has to tell.

A fetch of what is committed brings aborted records, too, and says where each aborted transaction
begins; it ends with its marker. That holds for one answer: the next one says it again.
"""

from collections.abc import Iterable, Iterator

from runnel.native.columns import BatchRows, ControlType, Record, RecordColumns, runs_of
from runnel.wire.batch import TRANSACTIONAL
from runnel.wire.messages.fetch import AbortedTransaction


class Aborted:
    """Of one partition in one answer; its batches have to be given in order."""

    def __init__(self, transactions: Iterable[AbortedTransaction] | None) -> None:
        self._coming = sorted(
            ((row.first_offset, row.producer_id) for row in transactions or ()), reverse=True
        )
        self._open: set[int] = set()  # producers within an aborted transaction

    def visible(self, columns: RecordColumns) -> Iterator[Record]:
        """The records that are not aborted."""
        rows = columns.rows()
        for batch in columns.batches:
            is_hidden = self._is_hidden(batch)
            for _ in range(batch.row_count):
                record = next(rows)
                if not is_hidden:
                    yield record

    def visible_runs(self, columns: RecordColumns) -> list[tuple[int, int]]:
        """First row and number of rows of what is not aborted, neighbours as one."""
        if not self._coming and not self._open:  # markers have no rows
            return [(0, columns.row_count)] if columns.row_count else []
        return runs_of(batch for batch in columns.batches if not self._is_hidden(batch))

    def _is_hidden(self, batch: BatchRows) -> bool:
        header = batch.header
        while self._coming and self._coming[-1][0] <= header.last_offset:
            self._open.add(self._coming.pop()[1])
        if batch.control is not None:
            if batch.control is ControlType.ABORT:
                self._open.discard(header.producer_id)
            return True
        return bool(header.attributes & TRANSACTIONAL) and header.producer_id in self._open
