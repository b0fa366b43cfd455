"""Which kinds of messages there are, told by a header or by a field of a JSON value."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from runnel.native.columns import RecordColumns

KINDS_MAX = 10_000  # the rest is counted together
LABEL_CHARACTERS_MAX = 80
NONE, OTHERS, NO_JSON = "(none)", "(others)", "(no JSON)"


class By(NamedTuple):
    source: str  # "header" or "json"
    name: str


def parse_by(text: str) -> By:
    """`header:NAME` or `json:FIELD`. Raises ValueError."""
    source, colon, name = text.partition(":")
    if source not in ("header", "json") or not colon or not name:
        raise ValueError(f"{text!r} is neither header:NAME nor json:FIELD")
    return By(source, name)


class Kinds:
    """Messages and bytes by label."""

    def __init__(self, by: By) -> None:
        self.by = by
        self.messages: dict[str, int] = {}
        self.bytes: dict[str, int] = {}

    def add(self, columns: RecordColumns, sizes: Sequence[int]) -> None:
        labels = (
            _header_labels(columns, self.by.name)
            if self.by.source == "header"
            else _json_labels(columns, self.by.name.split("."))
        )
        messages, total = self.messages, self.bytes
        for label, size in zip(labels, sizes, strict=True):
            if label not in messages:
                if len(messages) >= KINDS_MAX:
                    label = OTHERS
                messages.setdefault(label, 0)
                total.setdefault(label, 0)
            messages[label] += 1
            total[label] += size

    def most(self, count: int) -> list[tuple[str, int, int]]:
        """The labels with most messages, then their messages and bytes."""
        order = sorted(self.messages.items(), key=lambda item: (-item[1], item[0]))
        return [(label, messages, self.bytes[label]) for label, messages in order[:count]]


def _header_labels(columns: RecordColumns, name: str) -> list[str]:
    headers = columns.headers
    if headers is None or not headers.keys.data:
        return [NONE] * columns.row_count
    ends = memoryview(headers.list_offsets).cast("i")
    keys, values = headers.keys.values(), headers.values.values()
    wanted = name.encode()
    labels = [NONE] * columns.row_count
    for row in range(columns.row_count):
        for at in range(ends[row], ends[row + 1]):
            if keys[at] == wanted:
                labels[row] = _label(values[at])
    return labels


def _json_labels(columns: RecordColumns, path: list[str]) -> list[str]:
    return [_json_label(value, path) for value in columns.values.values()]


def _json_label(value: bytes | None, path: list[str]) -> str:
    if value is None:
        return NONE
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return NO_JSON
    for name in path:
        if not isinstance(found, dict) or name not in found:
            return NONE
        found = found[name]
    return _cut(found if isinstance(found, str) else json.dumps(found))


def _label(value: bytes | None) -> str:
    return NONE if value is None else _cut(value.decode(errors="backslashreplace"))


def _cut(text: str) -> str:
    if len(text) > LABEL_CHARACTERS_MAX:
        text = text[:LABEL_CHARACTERS_MAX] + "..."
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
