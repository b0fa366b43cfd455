"""Avro values as typed columns: the writer's schema is the reader's, or a registry has it by id.

What Avro's rules of resolution allow is read: fields that the reader does not know are dropped,
fields that the writer did not know have their defaults.
"""

import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from runnel.arrow.decoding import DecodeOptionError
from runnel.arrow.registry import MAGIC, PREFIX_BYTES, NoSchemaError, schema_by_id

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

WRITERS_MAX: Final = 1_000  # schemas of one task; a topic has a handful
_WIDER: Final = ({"int", "long"}, {"float", "double"})


class AvroDecoder:
    """Rows of one reader's schema; `decode` gives a column per field, and what is wrong."""

    def __init__(self, schema_text: str, wanted: "pa.Schema", registry: str | None) -> None:
        import pyarrow as pa
        from fastavro import schemaless_reader
        from fastavro.read import SchemaResolutionError

        self._read = schemaless_reader
        self._failures = (*_FAILURES, SchemaResolutionError)
        self._reader_schema = _parsed(schema_text)
        self._registry = registry
        self._writers: dict[int, Any] = {}  # by id; or why there is none
        self._row_type = pa.struct(list(wanted))

    def decode(self, values: "pa.Array") -> "tuple[list[pa.Array], dict[int, str]]":
        import pyarrow as pa

        bad: dict[int, str] = {}
        rows: list[dict[str, Any]] = []
        for at, raw in enumerate(values.to_pylist()):
            fields: dict[str, Any] = {}
            if raw is not None:
                try:
                    fields = self._record(raw)
                except self._failures as error:
                    bad[at] = f"not Avro: {type(error).__name__}: {error}"
            rows.append(fields)
        try:
            made = pa.array(rows, self._row_type)
        except (pa.ArrowException, OverflowError):
            made = self._row_by_row(rows, bad)
        return made.flatten(), bad

    def _record(self, raw: bytes) -> dict[str, Any]:
        writer = self._reader_schema
        stream = io.BytesIO(raw)
        if self._registry is not None:
            if len(raw) < PREFIX_BYTES or raw[0] != MAGIC:
                raise ValueError("it does not begin with 0 and the id of a schema")
            writer = self._writer(int.from_bytes(raw[1:PREFIX_BYTES], "big"))
            stream.seek(PREFIX_BYTES)
        found = self._read(stream, writer, self._reader_schema)
        if stream.tell() != len(raw):
            raise ValueError(f"{len(raw) - stream.tell()} bytes are left over")
        if not isinstance(found, dict):
            raise ValueError("it is no record")
        return found

    def _writer(self, schema_id: int) -> Any:  # noqa: ANN401  # fastavro's
        """Asked for once: an id that the registry does not have may stand before many values."""
        if schema_id not in self._writers:
            assert self._registry is not None
            if len(self._writers) >= WRITERS_MAX:
                self._writers.clear()
            try:
                self._writers[schema_id] = _parsed(schema_by_id(self._registry, schema_id))
            except (NoSchemaError, DecodeOptionError) as error:
                self._writers[schema_id] = error
        found = self._writers[schema_id]
        if isinstance(found, Exception):
            raise ValueError(str(found))
        return found

    def _row_by_row(self, rows: list[dict[str, Any]], bad: dict[int, str]) -> "pa.Array":
        """One value does not fit its column, such as a time beyond Arrow's: find it."""
        import pyarrow as pa

        for at, fields in enumerate(rows):
            try:
                pa.array([fields], self._row_type)
            except (pa.ArrowException, OverflowError) as error:
                rows[at], bad[at] = {}, f"it does not fit its column: {error}"
        return pa.array(rows, self._row_type)


_FAILURES: Final = (
    ValueError,
    EOFError,
    LookupError,
    TypeError,
    ArithmeticError,
    RecursionError,
)


def avro_struct(schema_text: str) -> "StructType":
    """The columns of an Avro record. Raises DecodeOptionError."""
    from pyspark.sql.types import StructField, StructType

    schema = _parsed(schema_text)
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise DecodeOptionError("valueSchema: an Avro schema of type record is wanted")
    named: dict[str, DataType] = {}
    fields = [
        StructField(field["name"], _spark_type(field["type"], named, 0))
        for field in schema["fields"]
    ]
    return StructType(fields)


def _parsed(schema_text: str) -> Any:  # noqa: ANN401  # fastavro's
    from fastavro import parse_schema
    from fastavro.schema import SchemaParseException

    try:
        return parse_schema(_without_uuids(json.loads(schema_text)))
    except (ValueError, KeyError, TypeError, SchemaParseException) as error:
        raise DecodeOptionError(f"valueSchema is no Avro schema: {error}") from None


def _without_uuids(schema: Any) -> Any:  # noqa: ANN401  # of JSON
    """An Avro uuid is text, which fastavro would make an object of that no column takes."""
    if isinstance(schema, list):
        return [_without_uuids(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _without_uuids(value)
        for name, value in schema.items()
        if (name, value) != ("logicalType", "uuid")
    }


def _spark_type(schema: Any, named: "dict[str, DataType]", depth: int) -> "DataType":  # noqa: ANN401
    from pyspark.sql import types as t

    if depth > 50:
        raise DecodeOptionError("valueSchema: the Avro schema is nested too deep, or in itself")
    if isinstance(schema, list):
        return _union(schema, named, depth)
    name = schema if isinstance(schema, str) else schema["type"]
    if isinstance(name, dict | list):
        return _spark_type(name, named, depth + 1)
    logical = None if isinstance(schema, str) else schema.get("logicalType")
    special: dict[tuple[str, str | None], DataType] = {
        ("int", "date"): t.DateType(),
        ("long", "timestamp-millis"): t.TimestampType(),
        ("long", "timestamp-micros"): t.TimestampType(),
        ("long", "local-timestamp-millis"): t.TimestampNTZType(),
        ("long", "local-timestamp-micros"): t.TimestampNTZType(),
    }
    if (name, logical) in special:
        return special[name, logical]
    if logical == "decimal":
        return t.DecimalType(schema["precision"], schema.get("scale", 0))
    if logical in ("time-millis", "time-micros", "duration"):
        raise DecodeOptionError(f"valueSchema: Avro's {logical} is not read; take the number")
    return _plain_type(name, schema, named, depth)


def _plain_type(
    name: str,
    schema: Any,  # noqa: ANN401  # of JSON
    named: "dict[str, DataType]",
    depth: int,
) -> "DataType":
    from pyspark.sql import types as t

    plain: dict[str, Callable[[], DataType]] = {
        "boolean": t.BooleanType,
        "int": t.IntegerType,
        "long": t.LongType,
        "float": t.FloatType,
        "double": t.DoubleType,
        **dict.fromkeys(("string", "enum"), t.StringType),
        **dict.fromkeys(("bytes", "fixed"), t.BinaryType),
        "null": t.StringType,
    }
    found: DataType
    if name in plain:
        found = plain[name]()
    elif name == "array":
        return t.ArrayType(_spark_type(schema["items"], named, depth + 1))
    elif name == "map":
        return t.MapType(t.StringType(), _spark_type(schema["values"], named, depth + 1))
    elif name == "record":
        found = t.StructType(
            [
                t.StructField(field["name"], _spark_type(field["type"], named, depth + 1))
                for field in schema["fields"]
            ]
        )
    elif name in named:
        return named[name]
    else:
        raise DecodeOptionError(f"valueSchema: Avro's {name} is not read here")
    if isinstance(schema, dict) and "name" in schema:
        named[schema["name"]] = found
    return found


def _union(branches: list[Any], named: "dict[str, DataType]", depth: int) -> "DataType":
    from pyspark.sql import types as t

    others = [branch for branch in branches if branch != "null"]
    if len(others) == 1:
        return _spark_type(others[0], named, depth + 1)
    names = {branch for branch in others if isinstance(branch, str)}
    if len(names) == len(others) and names in _WIDER:
        return t.LongType() if "long" in names else t.DoubleType()
    raise DecodeOptionError(
        f"valueSchema: a union of {len(others)} types has no column; use one type and null"
    )
