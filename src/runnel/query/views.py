"""The SQL of the relations that a topic becomes.

`orders` has a column for each field of its values, if these have fields, and then Kafka's; where a
field has the name of one of those, Kafka's has `_` before it. `raw.orders` has what Kafka has.
"""

import re
from collections.abc import Collection, Sequence
from typing import Final

from runnel.query.avro_fields import PREFIX
from runnel.query.json_shape import Column, quoted, unique
from runnel.query.shapes import Shape
from runnel.query.whole_numbers import WHOLE, of_nested, whole

RAW: Final = "raw"  # the schema of relations that have Kafka's columns and no others
RAW_COLUMNS: Final = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "headers",
)
BESIDE_FIELDS: Final = (
    "key",
    "partition",
    "offset",
    "timestamp",
    "headers",
    "topic",
    "timestamp_type",
)
HEADER_MACRO: Final = (
    "create macro header(headers, name) as"
    " try(decode(list_filter(headers, lambda each: each.key = name)[1].value))"
)
_NESTED: Final = re.compile(r"STRUCT|MAP|UNION|.*[\[\]]", re.DOTALL)


def view_of(name: str, source: str, shape: Shape) -> str:
    """What makes the relation, with its columns typed where they can be."""
    fields = _fields(shape)
    if not fields:
        return _view(name, source, [quoted(column) for column in RAW_COLUMNS])
    taken = [column for column, _ in fields]
    kafka = [f"{quoted(column)} as {quoted(_free(column, taken))}" for column in BESIDE_FIELDS]
    return _view(
        name, source, [*(f"{text} as {quoted(column)}" for column, text in fields), *kafka]
    )


def raw_view_of(name: str, source: str) -> str:
    return _view(f"{RAW}.{name}", source, [quoted(column) for column in RAW_COLUMNS])


def _view(name: str, source: str, columns: Sequence[str]) -> str:
    return f"create or replace view {name} as select {', '.join(columns)} from {quoted(source)}"


def _fields(shape: Shape) -> list[tuple[str, str]]:
    """Names of columns, and the expression of each."""
    if shape.columns:
        return [(column.name, _of_json(column)) for column in shape.columns]
    own = [name for name in shape.presenter.schema.names if name.startswith(PREFIX)]
    names = unique(name[len(PREFIX) :] for name in own)
    return [(name, quoted(source)) for name, source in zip(names, own, strict=True)]


def _free(column: str, taken: Collection[str]) -> str:
    lower = {name.lower() for name in taken}
    while column in lower:
        column = f"_{column}"
    return column


def _of_json(column: Column) -> str:
    """Null where the value is no JSON, has no such field, or one of another type."""
    pointer = "/" + column.field.replace("~", "~0").replace("/", "~1")
    path = "'" + pointer.replace("'", "''") + "'"
    if column.kind == "VARCHAR":
        return f"try(json_extract_string(value, {path}))"
    if column.kind in WHOLE:
        return whole(f"try(json_extract_string(value, {path}))", column.kind)
    if column.kind == "JSON":
        return f"try(json_extract(value, {path}))"
    if not _NESTED.match(column.kind):
        return f"try_cast(try(json_extract_string(value, {path})) as {column.kind})"
    found = f"try(json_extract(value, {path}))"
    return of_nested(found, column.kind) or f"try_cast({found} as {column.kind})"
