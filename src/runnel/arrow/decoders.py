"""Values as typed columns: which columns, who decodes them, and what becomes of bad records.

`badRecords=fail` ends the task with the place of the first bad record, `null` keeps it as a row
whose `_error` and `_raw` say what it was, `dlq` sends it to another topic and leaves it out. A
record without a value is no bad one: its columns are null.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from runnel.arrow.ddl import struct_type
from runnel.arrow.decoding import ERROR_COLUMN, RAW_COLUMN, DecodeOptionError, Decoding
from runnel.arrow.decoding_avro import AvroDecoder, avro_struct
from runnel.arrow.decoding_json import JsonDecoder
from runnel.arrow.json_values import converter
from runnel.arrow.losses import ReadError
from runnel.arrow.registry import RegistryError, latest_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructField, StructType

KAFKA_COLUMNS = frozenset(
    {"key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"}
)


class BadRecordError(ReadError):
    """A value could not be decoded; the message names its topic, partition and offset."""


class Kind(Protocol):
    """A way to decode: a column for each wanted field, and what is wrong with which row."""

    def decode(self, values: "pa.Array") -> "tuple[list[pa.Array], dict[int, str]]": ...


class Decoded(NamedTuple):
    columns: "Mapping[str, pa.Array]"
    bad: Mapping[int, str]


class TextDecoder:
    """The bytes as UTF-8; what is not is a bad record, with U+FFFD in place of the wrong bytes."""

    def decode(self, values: "pa.Array") -> "tuple[list[pa.Array], dict[int, str]]":
        import pyarrow as pa

        text = values.view(pa.string())
        try:
            text.validate(full=True)
        except pa.ArrowInvalid:
            return _replaced(values)
        return [text], {}


class ValueDecoder:
    """Decodes the values of a scan into the columns that are wanted."""

    def __init__(self, decode: Decoding, wanted: Sequence[str]) -> None:
        self._decode = decode
        whole = value_struct(decode)
        is_one = decode.nested or decode.kind == "string"
        fields = [field for field in whole if is_one or field.name in wanted]
        self._fields = type(whole)(fields)
        self._kind = _kind(decode, self._fields)
        self._wanted = set(wanted)
        self.names = {field.name for field in decoded_fields(decode)}

    def decode(self, values: "pa.Array") -> Decoded:
        import pyarrow as pa

        arrays, bad = self._kind.decode(values)
        if self._decode.nested and self._decode.kind != "string":
            made = pa.StructArray.from_arrays(
                arrays, fields=list(_arrow_schema(self._fields)), mask=values.is_null()
            )
            columns = {"value": made}
        else:
            columns = dict(zip(self._fields.names, arrays, strict=True))
        if ERROR_COLUMN in self._wanted:
            columns[ERROR_COLUMN] = _reasons(bad, len(values))
        if RAW_COLUMN in self._wanted:
            columns[RAW_COLUMN] = _raw(values, bad)
        return Decoded(columns, bad)


def decoded_fields(decode: Decoding) -> "list[StructField]":
    """The columns that stand for the value, in order. Raises DecodeOptionError."""
    from pyspark.sql.types import BinaryType, StringType, StructField

    whole = value_struct(decode)
    if decode.nested and decode.kind != "string":
        fields = [StructField("value", whole)]
    else:
        fields = list(whole)
        if decode.kind != "string" and (taken := taken_names(whole.names, decode.bad_records)):
            raise DecodeOptionError(
                f"valueSchema has a field {taken[0]}, as every record has a column of that"
                f" name: set nestValue=true, then it is value.{taken[0]}"
            )
    if decode.bad_records == "null":
        fields.append(StructField(ERROR_COLUMN, StringType()))
        fields.append(StructField(RAW_COLUMN, BinaryType()))
    return fields


def taken_names(names: "Sequence[str]", bad_records: str) -> list[str]:
    """Those that other columns have, whatever their case: for Spark and tables they are one."""
    added = {ERROR_COLUMN, RAW_COLUMN} if bad_records == "null" else set()
    others = {name.lower() for name in KAFKA_COLUMNS | added}
    return sorted(name for name in names if name.lower() in others)


def value_struct(decode: Decoding) -> "StructType":
    """What a value holds. Raises DecodeOptionError."""
    from pyspark.sql.types import StringType, StructField, StructType

    if decode.kind == "string":
        return StructType([StructField("value", StringType())])
    if decode.kind == "json":
        found = struct_type(decode.schema)
        for field in found:
            converter(field.dataType)  # refuses what JSON is not read as
    else:
        found = avro_struct(decode.schema)
    names = [name.lower() for name in found.names]
    if len(set(names)) < len(names):
        raise DecodeOptionError("valueSchema names a field twice")
    return StructType([StructField(field.name, field.dataType) for field in found])


def pinned(decode: Decoding, topics: Sequence[str]) -> Decoding:
    """With the registry's newest schema in it, for all tasks alike. Driver only.

    Raises DecodeOptionError, RegistryError.
    """
    if decode.kind != "avro" or decode.schema:
        return decode
    assert decode.registry is not None, "checked when it was made"
    subject = decode.subject
    if subject is None:
        if len(topics) != 1:
            raise DecodeOptionError(
                "schemaRegistry with several topics needs schemaSubject or valueSchema"
            )
        subject = f"{topics[0]}-value"
    return replace(decode, schema=latest_schema(decode.registry, subject), subject=subject)


def bad_record(decode: Decoding, where: str, offset: int, why: str) -> BadRecordError:
    return BadRecordError(
        f"{where} at offset {offset}: the value cannot be read as {decode.kind}: {why}; set"
        " badRecords=null to see it in _error and _raw, or badRecords=dlq to put it aside"
    )


def _kind(decode: Decoding, fields: "StructType") -> Kind:
    if decode.kind == "string":
        return TextDecoder()
    if decode.kind == "json":
        return JsonDecoder(fields)
    return AvroDecoder(decode.schema, _arrow_schema(fields), decode.registry)


def _arrow_schema(fields: "StructType") -> "pa.Schema":
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(fields, timezone="UTC")


def _reasons(bad: Mapping[int, str], rows: int) -> "pa.Array":
    import pyarrow as pa

    if not bad:
        return pa.nulls(rows, pa.string())
    return pa.array([bad.get(row) for row in range(rows)], pa.string())


def _raw(values: "pa.Array", bad: Mapping[int, str]) -> "pa.Array":
    import pyarrow as pa

    if not bad:
        return pa.nulls(len(values), values.type)
    return values.take(pa.array([row if row in bad else None for row in range(len(values))]))


def _replaced(values: "pa.Array") -> "tuple[list[pa.Array], dict[int, str]]":
    import pyarrow as pa

    bad: dict[int, str] = {}
    out: list[str | None] = []
    for row, raw in enumerate(values.to_pylist()):
        try:
            out.append(None if raw is None else raw.decode())
        except UnicodeDecodeError as error:
            bad[row] = f"not UTF-8: {error.reason} at byte {error.start}"
            out.append(raw.decode(errors="replace"))
    return [pa.array(out, pa.string())], bad


__all__ = [
    "BadRecordError",
    "RegistryError",
    "ValueDecoder",
    "bad_record",
    "decoded_fields",
    "pinned",
    "taken_names",
    "value_struct",
]
