"""A range of offsets as Arrow batches: what Spark's `read` yields, in an executor."""

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from runnel.arrow.fetching import Fetched, fetched
from runnel.arrow.local import open_range
from runnel.arrow.losses import ReadError
from runnel.arrow.memory import keep_freed
from runnel.arrow.ranges import Range, Scan
from runnel.arrow.rows import RowBuilder
from runnel.arrow.tally import Tally
from runnel.client.aborted import Aborted
from runnel.errors import RunnelError

if TYPE_CHECKING:
    import pyarrow as pa


def read(scan: Scan, piece: Range, tally: Tally | None = None) -> "Iterator[pa.RecordBatch]":
    """The records with start <= offset < end, in order, as batches of the scan's columns.

    Raises ReadError, which names topic, partition and offset.
    """
    keep_freed()
    found = open_range(scan, piece, tally)
    return read_from_broker(scan, piece, tally) if found is None else found


def read_from_broker(
    scan: Scan, piece: Range, tally: Tally | None = None
) -> "Iterator[pa.RecordBatch]":
    """The same through the partition's leader, whatever broker of Kafka's protocol that is."""
    tally = tally or Tally()
    builder = RowBuilder(scan, piece.topic, piece.partition)
    with closing(fetched(scan, piece)) as answers:
        for answer in answers:
            tally.add(fetched_bytes=len(answer.data))
            for batch in _batches(builder, piece, answer):
                tally.add(records=batch.num_rows)
                yield batch


def _batches(builder: RowBuilder, piece: Range, answer: Fetched) -> "Iterator[pa.RecordBatch]":
    aborted = Aborted(answer.aborted)
    position, offset = 0, answer.from_offset
    while offset < piece.end:
        try:
            columns = builder.decode(answer.data, position, offset, piece.end)
        except RunnelError as error:
            raise ReadError(
                f"{piece.topic}-{piece.partition} from offset {offset} on cannot be decoded:"
                f" {error}; look at it with `runnel storage`, or start after it"
            ) from None
        if columns.next_offset == offset:
            return
        position, offset = columns.position, columns.next_offset
        if columns.row_count:
            batch = builder.build(columns, aborted)
            if batch.num_rows:
                yield batch
