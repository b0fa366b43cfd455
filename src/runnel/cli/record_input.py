"""Records from a stream of bytes: lines, JSON objects, or all of it as one record.

A line may have its key before a separator. A JSON object has `key`, `value`, `headers`,
`partition` and `timestamp`, all of them optional: text, null, `{"base64": "..."}` for bytes, or any
other JSON, which is sent as JSON text.
"""

import base64
import binascii
import json
import os
import select
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from runnel.cli.output import EXIT_FAILED, CommandError
from runnel.native.columns import Record

CHUNK_BYTES: Final = 256 << 10
RECORD_BYTES_MAX: Final = 64 << 20
INT64_MAX: Final = (1 << 63) - 1

Headers = Sequence[tuple[str, bytes | None]]


class Template(NamedTuple):
    """What a record has where the input says nothing else."""

    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    key_separator: bytes | None = None
    null: bytes | None = None  # a value or key of these bytes means none


class Entry(NamedTuple):
    record: Record  # its timestamp is -1 where now is meant
    partition: int | None


def lines_of(fd: int) -> Iterator[list[bytes]]:
    """Lines without their ends, all that are there; an empty list when there are none just now."""
    begun: list[bytes] = []  # the pieces of a line whose end is yet to come
    begun_bytes = number = 0
    while True:
        if not select.select([fd], [], [], 0)[0]:
            yield []
        chunk = _read(fd)
        if not chunk:
            break
        first, *others = chunk.split(b"\n")
        begun.append(first)
        begun_bytes += len(first)
        if begun_bytes > RECORD_BYTES_MAX:
            raise CommandError(
                f"line {number + 1} is longer than {RECORD_BYTES_MAX >> 20} MiB: part it."
            )
        if others:
            lines = [b"".join(begun), *others[:-1]]
            begun, begun_bytes = [others[-1]], len(others[-1])
            number += len(lines)
            yield [line.removesuffix(b"\r") for line in lines]
    if begun_bytes:
        yield [b"".join(begun)]


def whole_of(fd: int) -> bytes:
    """All of it, as one record."""
    out = bytearray()
    while chunk := _read(fd):
        out += chunk
        if len(out) > RECORD_BYTES_MAX:
            raise CommandError(f"The input is longer than {RECORD_BYTES_MAX >> 20} MiB: part it.")
    return bytes(out)


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, CHUNK_BYTES)
    except OSError as error:
        raise CommandError(f"The input cannot be read: {error.strerror}.", EXIT_FAILED) from None


def entry_of_line(line: bytes, number: int, template: Template) -> Entry:
    key, value = template.key, line
    if template.key_separator is not None:
        key, found, value = line.partition(template.key_separator)
        if not found:
            raise CommandError(
                f"line {number} has no {os.fsdecode(template.key_separator)!r} between key and"
                " value."
            )
    return _entry(key, value, template)


def entry_of_whole(data: bytes, template: Template) -> Entry:
    return _entry(template.key, data, template)


def entry_of_json(line: bytes, number: int, template: Template) -> Entry:
    try:
        fields = json.loads(line)
        if not isinstance(fields, dict):
            raise ValueError("it is no object")
        unknown = fields.keys() - _FIELDS
        if unknown:
            raise ValueError(f"there is no field {min(unknown)!r}; there are {', '.join(_KNOWN)}")
        key = _bytes_of(fields["key"]) if "key" in fields else template.key
        headers = _headers_of(fields["headers"]) if "headers" in fields else template.headers
        record = Record(
            key,
            _bytes_of(fields.get("value")),
            _number(fields, "timestamp", template.timestamp_ms, -1),
            headers,
        )
        partition = template.partition
        if partition is None and fields.get("partition") is not None:
            partition = _number(fields, "partition", None, 0)
    except (ValueError, binascii.Error, RecursionError) as error:
        raise CommandError(
            f"line {number} is no record: {error}. Write objects"
            ' such as {"key": "k", "value": "v", "headers": {"h": "1"}}.'
        ) from None
    return Entry(record, partition)


_KNOWN: Final = ("key", "value", "headers", "partition", "timestamp")
_FIELDS: Final = frozenset({*_KNOWN, "topic", "offset"})  # the last two as consume prints them


def _entry(key: bytes | None, value: bytes, template: Template) -> Entry:
    null = template.null
    if null is not None and key == null:
        key = None
    timestamp = -1 if template.timestamp_ms is None else template.timestamp_ms
    record = Record(key, None if value == null else value, timestamp, template.headers)
    return Entry(record, template.partition)


def _bytes_of(value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return base64.b64decode(str(value["base64"]), validate=True)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _headers_of(value: object) -> list[tuple[str, bytes | None]]:
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list) or not all(
        isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in pairs
    ):
        raise ValueError('headers are {"name": "value"} or [["name", "value"]]')
    return [(name, _bytes_of(data)) for name, data in pairs]


def _number(fields: dict[str, Any], name: str, default: int | None, least: int) -> int:
    value = fields.get(name)
    if value is None:
        return -1 if default is None else default
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= INT64_MAX:
        raise ValueError(f"{name} is {value!r}, not a number from {least}")
    return value
