"""Columns of framed Avro values, with the types that Arrow has for Avro's."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from runnel.arrow.decoding import DecodeOptionError
from runnel.arrow.decoding_avro import AvroDecoder
from runnel.query.errors import MissingExtraError, QueryError

if TYPE_CHECKING:
    import pyarrow as pa

DEPTH_MAX: Final = 20
PREFIX: Final = "."  # before names of fields in a scan, which has columns of its own


class AvroFields:
    """See `presenting.Fields`."""

    def __init__(self, schema_text: str, registry: str | None) -> None:
        """Raises QueryError."""
        import pyarrow as pa

        schema = json.loads(schema_text)
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise QueryError("the registry's Avro schema is no record: only records have columns")
        self._text, self._registry = schema_text, registry
        named: dict[str, Any] = {}
        self.schema = pa.schema(
            [
                (PREFIX + field["name"], _arrow_type(field["type"], named, 0))
                for field in schema["fields"]
            ]
        )
        self._decoders: dict[tuple[str, ...], AvroDecoder] = {}

    def decode(self, values: "pa.Array", names: Sequence[str]) -> "list[pa.Array]":
        wanted = tuple(names)
        if wanted not in self._decoders:
            self._decoders[wanted] = self._decoder(wanted)
        return self._decoders[wanted].decode(values)[0]

    def _decoder(self, names: tuple[str, ...]) -> AvroDecoder:
        import pyarrow as pa

        try:
            fields = [self.schema.field(name) for name in names]
            schema = pa.schema([field.with_name(field.name[len(PREFIX) :]) for field in fields])
            return AvroDecoder(self._text, schema, self._registry)
        except ImportError:
            raise MissingExtraError("Avro needs fastavro: pip install 'runnel[avro]'") from None
        except DecodeOptionError as error:
            raise QueryError(str(error)) from None


def _arrow_type(schema: Any, named: dict[str, Any], depth: int) -> "pa.DataType":  # noqa: ANN401
    if depth > DEPTH_MAX:
        raise QueryError("the registry's Avro schema is nested too deep, or in itself")
    if isinstance(schema, list):
        return _arrow_type(_only_branch(schema), named, depth + 1)
    if isinstance(schema, str):
        return named[schema] if schema in named else _plain(schema)
    if isinstance(schema["type"], dict | list):
        return _arrow_type(schema["type"], named, depth + 1)
    return _declared(schema, named, depth)


def _only_branch(union: list[Any]) -> Any:  # noqa: ANN401  # of JSON
    others = [branch for branch in union if branch != "null"]
    if len(others) > 1:
        raise QueryError(f"Avro's union of {', '.join(map(str, others))} has no column type")
    return others[0] if others else "null"


def _declared(schema: dict[str, Any], named: dict[str, Any], depth: int) -> "pa.DataType":
    import pyarrow as pa

    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal":
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    if logical is not None and (found := _logical(logical)) is not None:
        return found
    if kind == "array":
        return pa.list_(_arrow_type(schema["items"], named, depth + 1))
    if kind == "map":
        return pa.map_(pa.string(), _arrow_type(schema["values"], named, depth + 1))
    if kind == "record":
        fields = schema["fields"]
        kinds = [_arrow_type(each["type"], named, depth + 1) for each in fields]
        names = [each["name"] for each in fields]
        made = pa.struct(list(zip(names, kinds, strict=True)))
    else:
        made = _plain(kind)
    if "name" in schema:
        named[schema["name"]] = made
    return made


def _logical(name: str) -> "pa.DataType | None":
    import pyarrow as pa

    return {
        "date": pa.date32(),
        "timestamp-millis": pa.timestamp("us", tz="UTC"),
        "timestamp-micros": pa.timestamp("us", tz="UTC"),
        "local-timestamp-millis": pa.timestamp("us"),
        "local-timestamp-micros": pa.timestamp("us"),
        "time-millis": pa.time64("us"),
        "time-micros": pa.time64("us"),
    }.get(name)


def _plain(name: str) -> "pa.DataType":
    import pyarrow as pa

    kinds = {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "enum": pa.string(),
        "bytes": pa.binary(),
        "fixed": pa.binary(),
        "null": pa.string(),
    }
    if name not in kinds:
        raise QueryError(f"the registry's Avro schema names a type that is not there: {name}")
    return kinds[name]
