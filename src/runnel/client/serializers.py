"""From values to bytes and back: JSON, Avro, text, bytes, or anything with these two methods.

    ProducerConfig(value_serializer=JsonSerializer())
    ConsumerConfig(group_id="billing", value_deserializer=JsonSerializer())

Without one a producer takes bytes, text (as UTF-8) and None, and a consumer gives bytes. None, the
tombstone of a compacted topic, stays None: no serializer ever sees it.
"""

import json
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, Protocol

from runnel.client.failures import ConfigurationError, SerializationError

_FRAME_BYTES = 5  # a zero byte, then the schema's id: the frame of Confluent's registry


class Serializer(Protocol):
    """Your own is any object with these two; it may raise what it likes."""

    def serialize(self, value: Any) -> bytes: ...  # noqa: ANN401  # whatever it is made for

    def deserialize(self, data: bytes) -> Any: ...  # noqa: ANN401  # whatever it is made for


class BytesSerializer:
    """Bytes as they are, and nothing else."""

    def serialize(self, value: object) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise SerializationError(f"bytes are wanted here, not {type(value).__name__}")
        return bytes(value)

    def deserialize(self, data: bytes) -> bytes:
        return data


class StringSerializer:
    """Text, by default in UTF-8."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self._encoding = encoding

    def serialize(self, value: object) -> bytes:
        if not isinstance(value, str):
            raise SerializationError(f"text is wanted here, not {type(value).__name__}")
        return value.encode(self._encoding)

    def deserialize(self, data: bytes) -> str:
        return data.decode(self._encoding)


class JsonSerializer:
    """JSON in UTF-8. `default` turns objects that JSON does not know into others."""

    def __init__(self, default: Callable[[Any], Any] | None = None) -> None:
        self._encoder = json.JSONEncoder(
            ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=default
        )

    def serialize(self, value: object) -> bytes:
        return self._encoder.encode(value).encode()

    def deserialize(self, data: bytes) -> Any:  # noqa: ANN401  # any JSON
        return json.loads(data)


class AvroSerializer:
    """Avro by one schema; needs `pip install 'runnel[avro]'`.

    Plain Avro by default. With `schema_id` every value gets the frame that Confluent's registry
    uses, and frames with that id are read. `reader_schema`, if it is given, is what values are
    turned into when they are read.
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | str,
        *,
        schema_id: int | None = None,
        reader_schema: Mapping[str, Any] | str | None = None,
    ) -> None:
        try:
            import fastavro
        except ImportError:
            raise ConfigurationError("Avro needs fastavro: pip install 'runnel[avro]'") from None
        self._avro = fastavro
        self._schema = self._parsed(schema)
        self._reader_schema = None if reader_schema is None else self._parsed(reader_schema)
        self._schema_id = schema_id
        self._frame = b"" if schema_id is None else b"\0" + schema_id.to_bytes(4, "big")

    def _parsed(self, schema: Mapping[str, Any] | str) -> Any:  # noqa: ANN401  # fastavro's own
        plain = json.loads(schema) if isinstance(schema, str) else dict(schema)
        try:
            return self._avro.parse_schema(plain)
        except (ValueError, KeyError, TypeError, self._avro.schema.SchemaParseException) as error:
            raise ConfigurationError(f"this is no schema of Avro: {error}") from error

    def serialize(self, value: object) -> bytes:
        out = BytesIO()
        out.write(self._frame)
        self._avro.schemaless_writer(out, self._schema, value)
        return out.getvalue()

    def deserialize(self, data: bytes) -> Any:  # noqa: ANN401  # what the schema says
        body = data
        if self._schema_id is not None:
            if data[:1] != b"\0" or len(data) < _FRAME_BYTES:
                raise SerializationError("no frame of a schema registry before this Avro value")
            found = int.from_bytes(data[1:_FRAME_BYTES], "big")
            if found != self._schema_id:
                raise SerializationError(
                    f"the value has schema {found}, and only {self._schema_id} is known here"
                )
            body = data[_FRAME_BYTES:]
        source = BytesIO(body)
        value = self._avro.schemaless_reader(source, self._schema, self._reader_schema)
        if source.tell() != len(body):
            raise SerializationError(
                f"{len(body) - source.tell()} bytes are left after the Avro value: "
                "it was written by another schema"
            )
        return value


def to_bytes(serializer: Serializer, value: object, what: str) -> bytes | None:
    """`what` names the value in the error: `the value for orders`."""
    if value is None:
        return None
    try:
        return serializer.serialize(value)
    except Exception as error:  # whatever a user's serializer raises
        raise _unfit(
            f"{what} could not be serialized by {type(serializer).__name__}", error
        ) from error


def from_bytes(serializer: Serializer, data: bytes, what: str) -> Any:  # noqa: ANN401  # any value
    try:
        return serializer.deserialize(data)
    except Exception as error:  # whatever a user's deserializer raises
        raise _unfit(f"{what} could not be read by {type(serializer).__name__}", error) from error


def _unfit(what: str, error: Exception) -> SerializationError:
    return SerializationError(f"{what}: {error or type(error).__name__}")
