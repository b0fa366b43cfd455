"""Records that cannot be read, as rows of a table of dead letters; apart from those that can."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from runnel.arrow.decoding import ERROR_COLUMN, RAW_COLUMN

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

REASON_MAX: Final = 1000
_PLACE: Final = ("topic", "partition", "offset", "timestamp", "key", "headers")
COLUMNS: Final = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>, error STRING, batch BIGINT,"
    " failed_at TIMESTAMP"
)


def schema() -> "StructType":
    from runnel.arrow.ddl import struct_type

    return struct_type(COLUMNS)


def scanned(wanted: tuple[str, ...]) -> tuple[str, ...]:
    """What must be read: what is wanted, and what a dead letter has."""
    more = (*_PLACE, ERROR_COLUMN, RAW_COLUMN)
    return (*wanted, *(name for name in more if name not in wanted))


class Apart:
    """Good rows go on; `bad` are the others, when all have been gone through."""

    def __init__(self, wanted: tuple[str, ...], batch: int) -> None:
        self._wanted = list(wanted)
        self._batch = batch
        self.bad: list[pa.RecordBatch] = []

    def good(self, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow.compute as pc

        for batch in batches:
            errors = batch.column(ERROR_COLUMN)
            if errors.null_count < batch.num_rows:
                self.bad.append(self._letters(batch.filter(pc.is_valid(errors))))
                batch = batch.filter(pc.is_null(errors))
            yield batch.select(self._wanted)

    def _letters(self, rows: "pa.RecordBatch") -> "pa.RecordBatch":
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyspark.sql.pandas.types import to_arrow_schema

        wanted = to_arrow_schema(schema(), timezone="UTC")
        now_us = int(time.time() * 1_000_000)
        made = {
            **{name: rows.column(name) for name in _PLACE},
            "value": rows.column(RAW_COLUMN),
            "error": pc.utf8_slice_codeunits(rows.column(ERROR_COLUMN), 0, REASON_MAX),
            "batch": pa.array([self._batch] * rows.num_rows, pa.int64()),
            "failed_at": pa.array([now_us] * rows.num_rows, pa.timestamp("us", "UTC")),
        }
        return pa.RecordBatch.from_arrays([made[name] for name in wanted.names], schema=wanted)
