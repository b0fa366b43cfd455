"""Records of a partition packed into one row for each Arrow batch, before they are shuffled.

Spark hands a stateful operator in Python its rows one by one. Windows need three values of a
record, so thousands of records travel as one row, and numpy takes them up on the other side.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

PACKED: Final = "topic STRING, partition INT, offset BIGINT, packed BINARY"
_CONTENT: Final = ("timestamp_ms", "bytes", "label")


def pack(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """Batches of records in the order of their offsets; a task may read several partitions."""
    import pyarrow as pa

    for batch in batches:
        rows = [_row(batch.slice(first, count)) for first, count in _runs(batch)]
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=_packed_schema())


def unpack(packed: bytes) -> "pa.RecordBatch":
    """With `timestamp_ms`, `bytes` and `label`."""
    import pyarrow as pa

    return pa.ipc.open_stream(packed).read_next_batch()


def _runs(batch: "pa.RecordBatch") -> list[tuple[int, int]]:
    """First row and number of rows of each partition."""
    import numpy as np
    import pyarrow.compute as pc

    if not batch.num_rows:
        return []
    codes = pc.dictionary_encode(batch.column("topic")).indices.to_numpy(zero_copy_only=False)
    partitions = batch.column("partition").to_numpy(zero_copy_only=False)
    changes = (np.diff(codes) != 0) | (np.diff(partitions) != 0)
    starts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    ends = [*starts[1:], batch.num_rows]
    return [(start, end - start) for start, end in zip(starts, ends, strict=True)]


def _row(run: "pa.RecordBatch") -> dict[str, object]:
    import pyarrow as pa

    content = run.select(list(_CONTENT))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, content.schema) as writer:
        writer.write_batch(content)
    return {
        "topic": run.column("topic")[0].as_py(),
        "partition": run.column("partition")[0].as_py(),
        "offset": run.column("offset")[0].as_py(),
        "packed": sink.getvalue().to_pybytes(),
    }


def _packed_schema() -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("packed", pa.binary()),
        ]
    )
