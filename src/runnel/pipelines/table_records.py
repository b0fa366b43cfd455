"""Rows of a table as records for a topic: key, value, headers and timestamp as they were."""

import json
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
    """What of a row becomes what. A table of decoded values has no `value`: the rest is JSON."""

    has_value: bool
    fields: tuple[str, ...]

    @classmethod
    def of(cls, schema: "pa.Schema") -> "Shape":
        names = schema.names
        import pyarrow as pa

        has_value = "value" in names and pa.types.is_binary(schema.field("value").type)
        skipped = {*RECORD, "headers"} - (set() if has_value else {"value"})
        return cls(has_value, tuple(name for name in names if name not in skipped))


def records(
    batch: "pa.RecordBatch", shape: Shape, least_ms: int | None, most_ms: int | None
) -> Iterator[OutRecord | None]:
    """One for each row, in order; None for a row whose time is not wanted."""
    for row in batch.to_pylist():
        stamp_ms = _ms(row.get("timestamp"))
        if _is_outside(stamp_ms, least_ms, most_ms):
            yield None
            continue
        value = row["value"] if shape.has_value else _json(row, shape.fields)
        yield OutRecord(
            _bytes(row.get("key")), value, stamp_ms, _headers(row), row.get("partition")
        )


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


def _json(row: Mapping[str, Any], fields: tuple[str, ...]) -> bytes:
    found = {name: row[name] for name in fields}
    return json.dumps(found, default=_plain, separators=(",", ":"), ensure_ascii=False).encode()


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
