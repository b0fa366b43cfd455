"""Rows of a table as records for a topic: key, value, headers and timestamp as they were."""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

RECORD: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
PLACES: Final = {
    "topic": "replay.topic",
    "partition": "replay.partition",
    "offset": "replay.offset",
}


class OutRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None
    headers: list[tuple[str, str | bytes | None]]
    partition: int | None


class Shape(NamedTuple):
    """What of a row becomes what. A table of decoded values has no `value`: the rest is JSON.

    `value` is bytes, or text where it was decoded as such. A struct is what `nested` makes of the
    whole value, if nothing is beside it that would be lost.
    """

    has_value: bool
    fields: tuple[str, ...]

    @classmethod
    def of(cls, schema: "pa.Schema") -> "Shape":
        from pyarrow import types

        fields = tuple(name for name in schema.names if name not in {*RECORD, "headers"})
        if "value" not in schema.names:
            return cls(False, fields)
        type_ = schema.field("value").type
        is_raw = any(is_(type_) for is_ in (types.is_binary, types.is_large_binary))
        is_text = any(is_(type_) for is_ in (types.is_string, types.is_large_string))
        if is_raw or is_text or (types.is_struct(type_) and not fields):
            return cls(True, fields)
        return cls(False, tuple(name for name in schema.names if name in {*fields, "value"}))


def records(
    batch: "pa.RecordBatch", shape: Shape, least_ms: int | None, most_ms: int | None
) -> Iterator[OutRecord | None]:
    """One for each row, in order; None for a row whose time is not wanted."""
    for row in batch.to_pylist():
        stamp_ms = _ms(row.get("timestamp"))
        if _is_outside(stamp_ms, least_ms, most_ms):
            yield None
            continue
        yield OutRecord(
            _bytes(row.get("key")),
            _value(row, shape),
            stamp_ms,
            _headers(row),
            row.get("partition"),
        )


def _value(row: Mapping[str, Any], shape: Shape) -> bytes | None:
    if not shape.has_value:
        return _json({name: row[name] for name in shape.fields})
    value = row["value"]
    return _json(value) if isinstance(value, dict) else _bytes(value)


def _is_outside(stamp_ms: int | None, least_ms: int | None, most_ms: int | None) -> bool:
    if least_ms is None and most_ms is None:
        return False
    if stamp_ms is None:
        return True
    return (least_ms is not None and stamp_ms < least_ms) or (
        most_ms is not None and stamp_ms >= most_ms
    )


def _headers(row: Mapping[str, Any]) -> list[tuple[str, str | bytes | None]]:
    """The record's own, and where it was."""
    found: list[tuple[str, str | bytes | None]] = [
        (each["key"], each["value"]) for each in row.get("headers") or ()
    ]
    for name, header in PLACES.items():
        if row.get(name) is not None:
            found.append((header, str(row[name]).encode()))
    return found


def _json(found: Mapping[str, Any]) -> bytes:
    try:
        return _dumped(found)
    except ValueError:  # JSON has no NaN and no infinity
        return _dumped(_with_words(found))


def _dumped(found: object) -> bytes:
    text = json.dumps(
        found, default=_plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def _with_words(value: object) -> object:
    """The words that Spark writes for numbers which JSON has not; decoders read them as such."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Mapping():
            return {name: _with_words(each) for name, each in value.items()}
        case list() | tuple():
            return [_with_words(each) for each in value]
        case _:
            return value


def _plain(value: object) -> object:
    match value:
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            import base64

            return base64.b64encode(value).decode()
        case _:
            return str(value)


def _bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode()


def _ms(value: object) -> int | None:
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else None
