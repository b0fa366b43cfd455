"""Values of raw records as columns, within Spark: for schemas that change from batch to batch.

The source decodes by one schema for as long as a query lives. Here each batch has its own.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from runnel.arrow.decoding import ERROR_COLUMN, RAW_COLUMN, Decoding

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField, StructType

    Mapper = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

RECORD_COLUMNS: Final = (
    "key",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
)
BESIDE: Final = (*RECORD_COLUMNS, ERROR_COLUMN, RAW_COLUMN)
"""The columns that there are beside those of a value's fields."""
TAKEN: Final = (*BESIDE, "value")
TAKEN_PREFIX: Final = "value_"
"""Before the name of a field that is called as one of them."""


def column_name(field: str) -> str:
    return TAKEN_PREFIX + field if field in TAKEN else field


def typed(rows: "DataFrame", decode: Decoding, wanted: "StructType") -> "DataFrame":
    """Columns of the records, a column for each field of `wanted`, and what was wrong.

    `decode` says what values are written as. A value whose field does not fit `wanted` is wrong.
    """
    from pyspark.sql import types as t

    fields = [t.StructField(column_name(f.name), f.dataType) for f in wanted]
    return _mapped(rows, fields, lambda kept: _decoder(decode, wanted, kept))


def as_declared(rows: "DataFrame", decode: Decoding) -> "DataFrame":
    """The same columns as the source gives where it decodes, with `badRecords=null`."""
    from runnel.arrow.decoders import decoded_fields

    fields = decoded_fields(decode)[:-2]
    return _mapped(rows, fields, lambda kept: _plain_decoder(decode, kept))


def _mapped(
    rows: "DataFrame", fields: "list[StructField]", decoder: "Callable[[list[str]], Mapper]"
) -> "DataFrame":
    from pyspark.sql import types as t

    kept: list[str] = [name for name in RECORD_COLUMNS if name in rows.columns]
    schema = t.StructType(
        [
            *(rows.schema[name] for name in kept),
            *fields,
            t.StructField(ERROR_COLUMN, t.StringType()),
            t.StructField(RAW_COLUMN, t.BinaryType()),
        ]
    )
    return rows.select(*kept, "value").mapInArrow(decoder(kept), schema)


def _plain_decoder(decode: Decoding, kept: list[str]) -> "Mapper":
    def decoded(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        from runnel.arrow.decoders import ValueDecoder, decoded_fields

        names = [field.name for field in decoded_fields(decode)]
        decoder = ValueDecoder(decode, names)
        for batch in batches:
            columns, _ = decoder.decode(batch.column("value"))
            arrays = [batch.column(name) for name in kept] + [columns[name] for name in names]
            yield pa.RecordBatch.from_arrays(arrays, names=[*kept, *names])

    return decoded


def _decoder(decode: Decoding, wanted: "StructType", kept: list[str]) -> "Mapper":
    def decoded(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_type

        from runnel.arrow.decoders import ValueDecoder

        decoder = ValueDecoder(decode, ["value", ERROR_COLUMN, RAW_COLUMN])
        types = {f.name: to_arrow_type(f.dataType, timezone="UTC") for f in wanted}
        for batch in batches:
            columns, bad = decoder.decode(batch.column("value"))
            fields = columns["value"]
            bad = dict(bad)
            made = {
                column_name(name): fitted(fields, name, type_, bad) for name, type_ in types.items()
            }
            yield pa.RecordBatch.from_arrays(
                [
                    *(batch.column(name) for name in kept),
                    *made.values(),
                    _texts(bad, batch.num_rows),
                    _raws(batch.column("value"), bad),
                ],
                names=[*kept, *made, ERROR_COLUMN, RAW_COLUMN],
            )

    return decoded


def fitted(
    values: "pa.StructArray", name: str, type_: "pa.DataType", bad: dict[int, str]
) -> "pa.Array":
    """A field as the type that is wanted; rows whose value does not fit are bad, and null here."""
    import pyarrow as pa

    at = values.type.get_field_index(name)
    if at < 0:
        return pa.nulls(len(values), type_)
    column = values.flatten()[at]
    if column.type == type_:
        return column
    try:
        return column.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    found: list[object] = []
    for row, value in enumerate(column):
        try:
            found.append(value.cast(type_).as_py())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            found.append(None)
            bad.setdefault(row, f"{name}: {column.type} does not fit {type_} of the table")
    return pa.array(found, type_)


def _texts(bad: dict[int, str], rows: int) -> "pa.Array":
    import pyarrow as pa

    return pa.array([bad.get(row) for row in range(rows)] if bad else [None] * rows, pa.string())


def _raws(values: "pa.Array", bad: dict[int, str]) -> "pa.Array":
    import pyarrow as pa

    if not bad:
        return pa.nulls(len(values), values.type)
    return values.take(pa.array([row if row in bad else None for row in range(len(values))]))


def inferred_fields(rows: "DataFrame") -> "pa.DataType":
    """The fields of all JSON values of a batch; every task says what it has seen."""
    import pyarrow as pa

    from runnel.arrow.inferring import merged

    seen = rows.select("value").mapInArrow(_infer, "fields binary").collect()
    found: pa.DataType = pa.struct([])
    for text in sorted(bytes(row["fields"]) for row in seen):
        found = merged(found, pa.struct(list(pa.ipc.read_schema(pa.py_buffer(text)))))
    return found


def _infer(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    from runnel.arrow.inferring import inferred, merged

    found: pa.DataType = pa.struct([])
    for batch in batches:
        found = merged(found, inferred(batch.column("value")))
    schema = pa.schema(list(found)).serialize().to_pybytes()
    yield pa.RecordBatch.from_arrays([pa.array([schema], pa.binary())], names=["fields"])
