"""Which transactions a compaction meets on its way, and whether their markers are needed still.

Data of an aborted transaction may go at once; the marker that ends a transaction may go only when
nothing of the transaction is left, because until then it tells readers what became of it. The rules
are those of Kafka's `CleanedTransactionMetadata`.
"""

from collections.abc import Sequence

from runnel.storage.transactions import AbortedTransaction, Marker
from runnel.wire.batch import TRANSACTIONAL, BatchHeader


class CleanedTransactions:
    """Told of every batch in order. `kept` collects what the new transaction index has to say."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._committing: set[int] = set()  # producers whose data was met, and no marker yet
        self._aborting: dict[int, AbortedTransaction] = {}
        self._with_data: set[int] = set()  # of those, the ones that have left a batch
        self.kept: list[AbortedTransaction] = []

    def _begin_up_to(self, offset: int) -> None:
        while self._coming and self._coming[-1].first_offset <= offset:
            entry = self._coming.pop()
            self._aborting.setdefault(entry.producer_id, entry)

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether this batch of data is part of an aborted transaction, and may go."""
        self._begin_up_to(header.last_offset)
        if not header.attributes & TRANSACTIONAL:
            return False
        if header.producer_id in self._aborting:
            self._with_data.add(header.producer_id)
            return True
        self._committing.add(header.producer_id)
        return False

    def may_drop_marker(self, header: BatchHeader, marker: Marker | None) -> bool:
        """Whether this control batch ends a transaction of which nothing else is left."""
        self._begin_up_to(header.last_offset)
        if marker is None:
            return header.record_count == 0  # compacted before; others are not ours to judge
        producer_id = header.producer_id
        if marker.is_commit:
            had_data = producer_id in self._committing
            self._committing.discard(producer_id)
            return not had_data
        entry = self._aborting.pop(producer_id, None)
        had_data = producer_id in self._with_data
        self._with_data.discard(producer_id)
        if entry is not None and had_data:
            self.kept.append(entry)
            return False
        return True
