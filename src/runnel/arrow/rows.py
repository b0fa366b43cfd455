"""Records as Spark takes them: one Arrow batch of the wanted columns per run of decoded records.

The decoder's buffers become Arrow's as they are. What is the same in every row of a partition is
built once and sliced. Spark compares the first batch's schema with its own to the last detail:
microseconds in UTC, `binary` and not `large_binary`, every field nullable.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

from runnel.arrow.dead_letters import put_aside
from runnel.arrow.decoders import ValueDecoder, bad_record, decoded_fields
from runnel.arrow.ranges import Scan
from runnel.native.columns import BinaryColumn, HeaderColumns, RecordColumns
from runnel.native.records import decode as decode_records
from runnel.ports import Readable
from runnel.wire.batch import LOG_APPEND_TIME

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from runnel.arrow.decoding import Decoding

BATCH_ROWS: Final = 32_768
BATCH_BYTES: Final = 16 << 20  # of keys, values and headers; one larger record is a batch by itself
CREATE_TIME, LOG_APPENDED = 0, 1  # values of the column timestampType
INT64_MAX: Final = (1 << 63) - 1


def spark_schema(columns: Sequence[str], decode: "Decoding | None" = None) -> "StructType":
    """The columns as Spark declares them; `value` stands for all that decoding makes of it."""
    from pyspark.sql import types as t

    kinds: dict[str, t.DataType] = {
        "key": t.BinaryType(),
        "value": t.BinaryType(),
        "topic": t.StringType(),
        "partition": t.IntegerType(),
        "offset": t.LongType(),
        "timestamp": t.TimestampType(),
        "timestampType": t.IntegerType(),
        "headers": t.ArrayType(
            t.StructType(
                [t.StructField("key", t.StringType()), t.StructField("value", t.BinaryType())]
            )
        ),
    }
    typed = {} if decode is None else {field.name: field for field in decoded_fields(decode)}
    return t.StructType(
        [typed.get(name) or t.StructField(name, kinds[name]) for name in expanded(columns, typed)]
    )


def arrow_schema(columns: Sequence[str], decode: "Decoding | None" = None) -> "pa.Schema":
    """What Spark makes of its own schema, and wants batches to have."""
    if decode is None:
        return _kafka_schema(columns)
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(spark_schema(columns, decode), timezone="UTC")


def _kafka_schema(columns: Sequence[str]) -> "pa.Schema":
    """The same without PySpark, which SQL over topics does not need."""
    import pyarrow as pa

    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    kinds = {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestampType": pa.int32(),
        "headers": pa.list_(pa.field("element", header)),
    }
    return pa.schema([(name, kinds[name]) for name in columns])


def expanded(columns: Sequence[str], typed: Collection[str]) -> list[str]:
    """The columns with all decoded ones that are not named themselves in the place of `value`."""
    rest = [name for name in typed if name not in columns or name == "value"]
    return [
        name for column in columns for name in (rest if typed and column == "value" else (column,))
    ]


class Visible(Protocol):
    """Who knows which transactions were aborted."""

    def visible_runs(self, columns: RecordColumns) -> list[tuple[int, int]]:
        """First row and number of rows of what is not aborted, in order."""
        ...


class RowBuilder:
    """Of one partition. `decode`, then `build`, as often as there are records."""

    def __init__(self, scan: Scan, topic: str, partition: int) -> None:
        self._scan, self._topic, self._partition = scan, topic, partition
        self._schema = arrow_schema(scan.columns, scan.decode)
        self._constants = _Constants(topic, partition)
        names = self._schema.names
        self._values = None if scan.decode is None else ValueDecoder(scan.decode, names)
        typed = set() if self._values is None else self._values.names
        self._kafka_names = [name for name in names if name not in typed]
        if scan.decode is not None:
            needed = ["value", "offset"]
            if scan.decode.bad_records == "dlq":
                needed += ["key", "headers"]  # which dead letters keep
            self._kafka_names += [name for name in needed if name not in self._kafka_names]
        self._with_keys = "key" in self._kafka_names
        self._with_values = "value" in self._kafka_names
        self._with_headers = "headers" in self._kafka_names
        self.verifies_crc = scan.client.get("check.crcs", "true").lower() != "false"
        self._makers: Mapping[str, Callable[[RecordColumns], pa.Array]] = {
            "key": lambda columns: _binary(columns.keys, columns.row_count),
            "value": lambda columns: _binary(columns.values, columns.row_count),
            "topic": lambda columns: self._constants.topics(columns.row_count),
            "partition": lambda columns: self._constants.partitions(columns.row_count),
            "offset": _offsets,
            "timestamp": _timestamps,
            "timestampType": self._constants.timestamp_types,
            "headers": _headers,
        }

    @property
    def schema(self) -> "pa.Schema":
        return self._schema

    def decode(
        self, data: Readable, position: int, from_offset: int, up_to_offset: int
    ) -> RecordColumns:
        """The next records of these whole batches, no more than one Arrow batch of them."""
        return self._decode(data, position, from_offset, up_to_offset, with_content=True)

    def stamps(
        self, data: Readable, position: int, from_offset: int, up_to_offset: int
    ) -> RecordColumns:
        """The same run of records without what they hold, which takes a fraction of the time."""
        return self._decode(data, position, from_offset, up_to_offset, with_content=False)

    def _decode(
        self,
        data: Readable,
        position: int,
        from_offset: int,
        up_to_offset: int,
        *,
        with_content: bool,
    ) -> RecordColumns:
        return decode_records(
            data,
            position=position,
            from_offset=from_offset,
            up_to_offset=up_to_offset,
            max_records=BATCH_ROWS,
            max_bytes=BATCH_BYTES,
            keys=with_content and self._with_keys,
            values=with_content and self._with_values,
            headers=with_content and self._with_headers,
            verify_crc=self.verifies_crc,
            runs=True,
        )

    def build(self, columns: RecordColumns, visible: Visible) -> "pa.RecordBatch":
        """The rows that a reader may see; it may be none."""
        import pyarrow as pa

        arrays = {name: self._makers[name](columns) for name in self._kafka_names}
        runs = visible.visible_runs(columns)
        if runs != [(0, columns.row_count)]:
            arrays = {name: _picked(array, runs) for name, array in arrays.items()}
        if self._values is not None:
            arrays = self._typed(self._values, arrays)
        return pa.RecordBatch.from_arrays(
            [arrays[name] for name in self._schema.names], schema=self._schema
        )

    def constant(self, rows: int) -> "pa.RecordBatch":
        """So many rows of columns that are the same in all of them, for who only counts."""
        import pyarrow as pa

        made = {"topic": self._constants.topics, "partition": self._constants.partitions}
        arrays = [made[name](rows) for name in self._schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _typed(self, decoder: ValueDecoder, arrays: "dict[str, pa.Array]") -> "dict[str, pa.Array]":
        """The columns with the value decoded. Raises BadRecordError, ReadError."""
        import pyarrow as pa

        assert self._scan.decode is not None
        made, bad = decoder.decode(arrays["value"])
        if bad and self._scan.decode.bad_records == "fail":
            row, why = next(iter(bad.items()))
            where, offset = f"{self._topic}-{self._partition}", arrays["offset"][row].as_py()
            raise bad_record(self._scan.decode, where, offset, why)
        whole = {**arrays, **made}
        if bad and self._scan.decode.bad_records == "dlq":
            put_aside(self._scan, self._topic, self._partition, arrays, bad)
            count = len(arrays["value"])
            kept = pa.array([row for row in range(count) if row not in bad], pa.int64())
            whole = {name: array.take(kept) for name, array in whole.items()}
        return whole


class _Constants:
    """Columns with one value in all rows of a partition, made once in the length of a batch."""

    def __init__(self, topic: str, partition: int) -> None:
        import pyarrow as pa

        self._topics = pa.repeat(pa.scalar(topic, pa.string()), BATCH_ROWS)
        self._partitions = pa.repeat(pa.scalar(partition, pa.int32()), BATCH_ROWS)
        self._types = [
            pa.repeat(pa.scalar(kind, pa.int32()), BATCH_ROWS)
            for kind in (CREATE_TIME, LOG_APPENDED)
        ]

    def topics(self, rows: int) -> "pa.Array":
        return _repeated(self._topics, rows)

    def partitions(self, rows: int) -> "pa.Array":
        return _repeated(self._partitions, rows)

    def timestamp_types(self, columns: RecordColumns) -> "pa.Array":
        """Batch by batch, as a topic's message.timestamp.type may have been changed."""
        import pyarrow as pa

        kinds = [
            (LOG_APPENDED if batch.header.attributes & LOG_APPEND_TIME else CREATE_TIME)
            for batch in columns.batches
        ]
        if len(set(kinds)) == 1:
            return self._types[kinds[0]].slice(0, columns.row_count)
        pieces = zip(kinds, columns.batches, strict=True)
        return pa.concat_arrays(
            [self._types[kind].slice(0, batch.row_count) for kind, batch in pieces]
        )


def _repeated(array: "pa.Array", rows: int) -> "pa.Array":
    """A slice; a new one where a header counts more rows than are ever decoded at once."""
    import pyarrow as pa

    return array.slice(0, rows) if rows <= len(array) else pa.repeat(array[0], rows)


def _picked(array: "pa.Array", runs: Sequence[tuple[int, int]]) -> "pa.Array":
    import pyarrow as pa

    if not runs:
        return array.slice(0, 0)
    return pa.concat_arrays([array.slice(first, count) for first, count in runs])


def _binary(column: BinaryColumn, rows: int, kind: "pa.DataType | None" = None) -> "pa.Array":
    import pyarrow as pa

    validity = pa.py_buffer(column.validity) if column.null_count else None
    buffers = [validity, pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(kind or pa.binary(), rows, buffers, null_count=column.null_count)


def _offsets(columns: RecordColumns) -> "pa.Array":
    import pyarrow as pa

    return pa.Array.from_buffers(
        pa.int64(), columns.row_count, [None, pa.py_buffer(columns.offsets)], null_count=0
    )


def _timestamps(columns: RecordColumns) -> "pa.Array":
    import pyarrow as pa
    import pyarrow.compute as pc

    stamps_ms = pa.Array.from_buffers(
        pa.int64(), columns.row_count, [None, pa.py_buffer(columns.timestamps)], null_count=0
    )
    try:
        stamps_us = pc.multiply_checked(stamps_ms, 1000)
    except pa.ArrowInvalid:  # a producer's nonsense, beyond the year 294,000: as late as can be
        limit = INT64_MAX // 1000
        nearest = pc.min_element_wise(pc.max_element_wise(stamps_ms, -limit), limit)
        stamps_us = pc.multiply(nearest, 1000)
    return stamps_us.view(pa.timestamp("us", tz="UTC"))


def any_within(columns: RecordColumns, least_ms: int, most_ms: int) -> bool:
    """Whether a record may have a timestamp from the one to the other; False is certain."""
    import pyarrow as pa
    import pyarrow.compute as pc

    stamps_ms = pa.Array.from_buffers(
        pa.int64(), columns.row_count, [None, pa.py_buffer(columns.timestamps)], null_count=0
    )
    found = pc.min_max(stamps_ms).as_py()
    return found["min"] is not None and found["min"] <= most_ms and found["max"] >= least_ms


def _headers(columns: RecordColumns) -> "pa.Array":
    """Null where a record has none, as the connector has it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = _headers_type()
    found = columns.headers
    assert found is not None, "headers were asked for"
    count = len(found.keys.offsets) // 4 - 1
    if count <= 0:
        return pa.nulls(columns.row_count, kind)
    pairs = _pairs(found, count, kind.value_type)
    ends = pa.Array.from_buffers(
        pa.int32(), columns.row_count + 1, [None, pa.py_buffer(found.list_offsets)], null_count=0
    )
    is_empty = pc.equal(ends[1:], ends[:-1])
    return pa.ListArray.from_arrays(ends, pairs, type=kind, mask=is_empty)


@cache
def _headers_type() -> "pa.ListType":
    found: pa.ListType = arrow_schema(("headers",)).field("headers").type
    return found


def _pairs(found: HeaderColumns, count: int, kind: "pa.StructType") -> "pa.Array":
    import pyarrow as pa

    columns = [_binary(found.keys, count, pa.string()), _binary(found.values, count)]
    return pa.StructArray.from_arrays(columns, fields=list(kind))
