"""Which columns a topic of JSON objects has, told from some of its values.

A number that was always whole is BIGINT, else DOUBLE; what was of several kinds stays JSON. Names
that differ in case only are one column to SQL: the later ones get a number.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

FIELDS_MAX: Final = 500  # more are not columns but a table by themselves
OBJECTS_SHARE: Final = 0.9  # of the values, from which on a topic is one of objects
DEPTH_MAX: Final = 8  # what is nested deeper stays JSON
_INT64: Final = range(-(1 << 63), 1 << 63)
_NO_NAME: Final = re.compile("[\x00\ud800-\udfff]")  # has what no statement can have


class Column(NamedTuple):
    name: str  # as SQL has it
    field: str  # as the object has it
    kind: str  # of DuckDB


def json_columns(values: Sequence[bytes]) -> list[Column] | None:
    """None unless these are objects, but for a few. They are values after values, without nulls."""
    objects = [found for raw in values if isinstance(found := _parsed(raw), dict)]
    if not objects or len(objects) < OBJECTS_SHARE * len(values):
        return None
    names = list(dict.fromkeys(name for found in objects for name in found))
    names = [name for name in names if not _NO_NAME.search(name)]
    if not 0 < len(names) <= FIELDS_MAX:
        return None
    kinds = [_kind([found[name] for found in objects if name in found], 0) for name in names]
    return [Column(*each) for each in zip(unique(names), names, kinds, strict=True)]


def unique(names: Iterable[str]) -> list[str]:
    """With a number after those that SQL would take for one that was before them."""
    taken: set[str] = set()
    found = []
    for name in names:
        free, number = name or "_", 2
        while free.lower() in taken:
            free, number = f"{name}_{number}", number + 1
        taken.add(free.lower())
        found.append(free)
    return found


def quoted(name: str) -> str:
    """As an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def _parsed(raw: bytes) -> Any:  # noqa: ANN401  # of JSON
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _kind(values: Sequence[Any], depth: int) -> str:
    present = [value for value in values if value is not None]
    kinds = {type(value) for value in present}
    if not kinds or depth > DEPTH_MAX:
        return "JSON"
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {int} and all(value in _INT64 for value in present):
        return "BIGINT"
    if kinds <= {int, float}:
        return "DOUBLE"
    if kinds == {str}:
        return "VARCHAR"
    if kinds == {list}:
        return _kind([item for value in present for item in value], depth + 1) + "[]"
    if kinds == {dict}:
        return _struct(present, depth)
    return "JSON"


def _struct(objects: Sequence[dict[str, Any]], depth: int) -> str:
    names = list(dict.fromkeys(name for found in objects for name in found))
    are_apart = len({name.lower() for name in names}) == len(names)
    are_names = not any(map(_NO_NAME.search, names))
    if not 0 < len(names) <= FIELDS_MAX or not (are_apart and are_names):
        return "JSON"
    inner = [
        _kind([found[name] for found in objects if name in found], depth + 1) for name in names
    ]
    return f"STRUCT({', '.join(f'{quoted(n)} {k}' for n, k in zip(names, inner, strict=True))})"
