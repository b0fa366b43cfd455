"""One partition's log: segments in order, and the state that its batches imply.

Four offsets, never mixed: `log_start_offset` (first that may be read), `flushed_offset` (everything
before it survives a power loss), `log_end_offset` (the next to be written); the high watermark is
the partition's and comes in as an argument.

Rules:
  - everything but `Flush.run` and `Purge.run` happens on the loop;
  - an OSError from a write or a sync takes the log offline for good (`offline` says why). What was
    acknowledged is still in the files; recovery at the next start cuts what was not. A want of file
    descriptors passes, so it fails the one request that met it;
  - the recovery point that a checkpoint file holds may be too low, never too high.
"""

from bisect import bisect_right
from collections.abc import Iterator

from runnel.errors import ErrorCode, RunnelError
from runnel.storage.log_cleaning import CleanableLog
from runnel.storage.log_state import Surroundings as Surroundings  # what a log is made with
from runnel.storage.rebuild import rebuild_transactions
from runnel.storage.segment import Segment, base_offset_of
from runnel.storage.timestamps import Candidate, batches_at_or_after, latest_batch
from runnel.storage.transactions import AbortedTransaction, TransactionIndex
from runnel.types import FileSlice


class Log(CleanableLog):
    """Made by `recovery.load_log` and `LogStore.create`; owned by the partition that uses it."""

    # Reading; appending, cutting and flushing are in the layers below, see `log_state.py`.

    def slice(
        self,
        offset: int,
        max_bytes: int,
        before_offset: int,
        *,
        at_least_one: bool,
        wait: bool = True,
    ) -> FileSlice | None:
        """Whole batches from the one that holds `offset`; None when there is nothing to give.

        The first may start before `offset`. They lie in one segment, end before `before_offset`
        (high watermark, last stable offset or log end) and take at most `max_bytes`, except that
        the first is given whole if `at_least_one`. The cut at `max_bytes` is made at an indexed
        batch, which is up to one index interval early, because finding the last batch that fits
        would mean walking headers; so no partial batch is ever sent. Raises OFFSET_OUT_OF_RANGE,
        and unless it may `wait` for the disk, ColdError.
        """
        if offset < self.log_start_offset or offset > self.log_end_offset:
            raise RunnelError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.partition}: {offset} is not in"
                f" {self.log_start_offset}..{self.log_end_offset}",
            )
        if self.offline is not None:
            raise self._offline_error()
        if offset >= before_offset:
            return None
        segment = self._active
        try:
            if offset >= segment.base_offset:
                return segment.slice(
                    offset, max_bytes, before_offset, at_least_one=at_least_one, wait=wait
                )
            for segment in self.segments[self._slot_of(offset) :]:
                if segment.base_offset >= before_offset:
                    return None
                found = segment.slice(
                    offset, max_bytes, before_offset, at_least_one=at_least_one, wait=wait
                )
                if found is not None or segment.position_of(offset) < segment.size:
                    return found  # only a segment without a batch at or after `offset` is passed
        except OSError as error:
            raise self.fail(error) from error
        return None

    def end_of(self, found: FileSlice, offset: int, before_offset: int) -> int:
        """All that was found from `offset` on lies before this, which may be an interval too far.

        So a reader is told of the aborted transactions in its bytes, not of all that follow.
        """
        segment = self.segments[self._slot_of(offset)]
        try:
            if found.file is not segment.file:  # nothing was left there: it is in a later one
                return before_offset
            end = segment.index.offset_from(found.position + found.size, segment.next_offset)
        except OSError as error:
            raise self.fail(error) from error
        return min(end, before_offset)

    def aborted_in(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Aborted transactions that touch the half-open range, for readers of committed data.

        Raises KAFKA_STORAGE_ERROR.
        """
        found: list[AbortedTransaction] = []
        for segment in self.segments[self._slot_of(from_offset) :]:
            if self.collect_aborted(segment, from_offset, to_offset, found):
                break
        return found

    def collect_aborted(
        self, segment: Segment, from_offset: int, to_offset: int, found: list[AbortedTransaction]
    ) -> bool:
        """Add what one segment knows; True when later ones know nothing more.

        Raises KAFKA_STORAGE_ERROR.
        """
        try:
            return self._transactions_of(segment).collect(from_offset, to_offset, found)
        except OSError as error:
            raise self.fail(error) from error

    def _transactions_of(self, segment: Segment) -> TransactionIndex:
        try:
            return segment.txn_index
        except ValueError:
            around = self._around
            segment.txn_index = rebuild_transactions(
                around.disk, self.segments, self.snapshots, segment
            )
            return segment.txn_index

    def batches_at_or_after(self, timestamp: int) -> Iterator[Candidate]:
        """Where the first record not before `timestamp` may be. Raises KAFKA_STORAGE_ERROR."""
        try:
            yield from batches_at_or_after(self.segments, timestamp, self.log_start_offset)
        except OSError as error:
            raise self.fail(error) from error

    def latest_batch(self) -> Candidate | None:
        """Where the latest record is, the first of equals (KIP-734). Raises KAFKA_STORAGE_ERROR."""
        try:
            return latest_batch(self.segments)
        except OSError as error:
            raise self.fail(error) from error

    def _slot_of(self, offset: int) -> int:
        """Which segment holds `offset`, or the first if it lies before all."""
        return max(bisect_right(self.segments, offset, key=base_offset_of) - 1, 0)
