"""Records as text: how `runnel consume` prints them, and the JSON that both commands share.

A JSON record has `key`, `value`, `headers`, `partition`, `offset` and `timestamp`. Bytes that are
no UTF-8 are `{"base64": "..."}`, so that what is consumed as JSON can be produced again.
"""

import base64
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from runnel.cli.logs import printable
from runnel.cli.output import CommandError
from runnel.native.columns import Record

Show = Callable[[int, Record], bytes]
TABLE_HEAD: Final = b"PARTITION      OFFSET  TIME                      KEY               VALUE\n"
KEY_CHARACTERS_MAX: Final = 16
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", "e": "\x1b"}
_TOKEN: Final = re.compile(r"%(.)|\\(.)|([^%\\]+)", re.DOTALL)


def shower(how: str, topic: str, null: str, on_terminal: bool) -> Show:
    """The function that prints a record, by `--format`. Raises CommandError."""
    if how == "value":
        return _Format("%v\\n", topic, null, on_terminal)
    if how == "json":
        return lambda partition, record: json_line(topic, partition, record)
    if how == "table":
        return lambda partition, record: _table_line(partition, record, null)
    if "%" in how:
        return _Format(how, topic, null, on_terminal)
    raise CommandError(
        f"--format: {how!r} is none; write value, json, table, or a text with %k (key), %v (value),"
        " %h (headers), %p, %o, %t (topic), %T (timestamp), such as '%k: %v\\n'."
    )


def json_line(topic: str, partition: int, record: Record) -> bytes:
    document = {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": json_text(record.key),
        "value": json_text(record.value),
        "headers": [[key, json_text(value)] for key, value in record.headers],
    }
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


def json_text(data: bytes | None) -> object:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def time_text(timestamp_ms: int) -> str:
    """In UTC, to the millisecond; empty where a record has no time."""
    if timestamp_ms < 0:
        return ""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):  # a time that no calendar has
        return f"@{timestamp_ms}"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp_ms % 1000:03d}Z"


def _table_line(partition: int, record: Record, null: str) -> bytes:
    key, value = (printable(_text(data, null)) for data in (record.key, record.value))
    headers = "".join(f" {name}={_text(data, null)}" for name, data in record.headers)
    line = (
        f"{partition:>9}  {record.offset:>10}  {time_text(record.timestamp):<24}"
        f"  {key[:KEY_CHARACTERS_MAX]:<{KEY_CHARACTERS_MAX}}  {value}{printable(headers)}"
    )
    return line.encode() + b"\n"


def _text(data: bytes | None, null: str) -> str:
    return null if data is None else data.decode(errors="replace")


class _Format:
    """A text with tokens, as kcat has them; a record is written as it is, byte for byte.

    On a terminal control characters are shown and not obeyed: a record comes from anybody.
    """

    def __init__(self, text: str, topic: str, null: str, on_terminal: bool) -> None:
        self._topic = topic.encode()
        self._null = null.encode()
        self._on_terminal = on_terminal
        self._parts: list[bytes | str] = []  # text, or the letter of a token
        for token, escape, plain in _TOKEN.findall(text):
            if token and token not in _TOKENS:
                known = ", ".join(f"%{letter}" for letter in _TOKENS)
                raise CommandError(f"--format: there is no %{token}; there are {known}.")
            if token and token != "%":
                self._parts.append(token)
            else:
                self._parts.append((token or _ESCAPES.get(escape, escape) or plain).encode())

    def __call__(self, partition: int, record: Record) -> bytes:
        return b"".join(
            part if isinstance(part, bytes) else self._shown(part, partition, record)
            for part in self._parts
        )

    def _shown(self, token: str, partition: int, record: Record) -> bytes:
        match token:
            case "k":
                return self._data(record.key)
            case "v" | "s":
                return self._data(record.value)
            case "h":
                pairs = (key.encode() + b"=" + self._data(data) for key, data in record.headers)
                return b",".join(pairs)
            case "t":
                return self._topic
        numbers = {
            "p": partition,
            "o": record.offset,
            "T": record.timestamp,
            "K": -1 if record.key is None else len(record.key),
            "S": -1 if record.value is None else len(record.value),
        }
        return str(numbers[token]).encode()

    def _data(self, data: bytes | None) -> bytes:
        if data is None:
            return self._null
        return _harmless(data) if self._on_terminal else data


_TOKENS: Final = "kvshtpoTKS%"


def _harmless(data: bytes) -> bytes:
    text = data.decode(errors="replace")
    return "".join(
        char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text
    ).encode()
