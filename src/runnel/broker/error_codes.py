"""Finds the errors in a response of any API, for whoever counts them.

What to look at is read off the declaration once. Produce and fetch are not asked: they count theirs
where they arise, because to look through their responses would cost more than all other counting.
"""

from collections.abc import Callable
from typing import Any

from runnel.wire.schema import Kind, schema_of

Found = Callable[[int], None]  # is told each code that is not 0
Look = Callable[[Any, Found], None]
ERROR_CODE = "error_code"


def look_of(response_type: type[Any]) -> Look | None:
    """None: such a response has no place for an error."""
    parts = [
        (field.name, field.kind.name == "array", inner)
        for field in schema_of(response_type).fields
        if (item := _class_of(field.kind)) is not None and (inner := look_of(item)) is not None
    ]
    has_own = any(field.name == ERROR_CODE for field in schema_of(response_type).fields)
    if not parts:
        return look_at_own if has_own else None

    def look(response: Any, found: Found) -> None:  # noqa: ANN401  # a message of that class
        if has_own and response.error_code:
            found(response.error_code)
        for name, is_array, look_inside in parts:
            value = getattr(response, name)
            if is_array:
                for each in value or ():
                    look_inside(each, found)
            elif value is not None:
                look_inside(value, found)

    return look


def _class_of(kind: Kind[Any]) -> type[Any] | None:
    item = kind.item
    if isinstance(item, Kind):
        return _class_of(item)
    return item if isinstance(item, type) else None


def look_at_own(response: Any, found: Found) -> None:  # noqa: ANN401  # a message of any class
    if response.error_code:
        found(response.error_code)
