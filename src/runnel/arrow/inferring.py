"""Which fields JSON values have, and of which types: for tables that grow with their topic.

A field that is null everywhere has no type yet. Whole numbers and fractions together are fractions;
whatever else does not go together is text. Objects are structs; lists are lists where their items
are of one plain type, else text. Texts stay texts, also those that look like a time.
"""

import json
from typing import TYPE_CHECKING, Any, Final

from runnel.arrow.json_values import without_halves

if TYPE_CHECKING:
    import pyarrow as pa

MAX_DEPTH: Final = 32
OPENED_MAX: Final = 5_000  # braces and brackets of one value: Arrow's types overflow the stack
_INT64_MAX: Final = (1 << 63) - 1


def inferred(values: "pa.Array") -> "pa.DataType":
    """A struct with the fields of all values that are JSON objects; others are passed over."""
    import pyarrow as pa

    quick = _at_once(values)
    if quick is not None:
        return quick
    found: pa.DataType = pa.struct([])
    for raw in values.to_pylist():
        if raw is None:
            continue
        try:
            value = without_halves(json.loads(raw), raw)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found = merged(found, _type_of(value, 0))
    return found


def merged(one: "pa.DataType", other: "pa.DataType") -> "pa.DataType":
    """What takes the values of both; fields keep their order, new ones come last."""
    import pyarrow as pa
    from pyarrow import types

    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if types.is_struct(one) and types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            known = fields.get(field.name)
            fields[field.name] = field.type if known is None else merged(known, field.type)
        return pa.struct([pa.field(name, type_) for name, type_ in fields.items()])
    if types.is_list(one) and types.is_list(other):
        item = merged(one.value_type, other.value_type)
        return _list(item)
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    return pa.string()


def known_only(type_: "pa.DataType") -> "pa.DataType | None":
    """Without what has no type yet; None where nothing is left."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_null(type_):
        return None
    if types.is_list(type_):
        return None if types.is_null(type_.value_type) else type_
    if types.is_struct(type_):
        fields = [(field.name, known_only(field.type)) for field in type_]
        kept = [pa.field(name, found) for name, found in fields if found is not None]
        return pa.struct(kept) if kept else None
    return type_


def _at_once(values: "pa.Array") -> "pa.DataType | None":
    """By pyarrow's own parser; None where it refuses a value or does not know what it is."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.json as pj

    from runnel.arrow.decoding_json import json_lines

    lines = json_lines(pc.drop_null(values)) if len(values) > values.null_count else None
    if lines is not None and _most_opened(values) > OPENED_MAX:
        return None
    if lines is None:
        return pa.struct([]) if len(values) == values.null_count else None
    options = pj.ReadOptions(use_threads=False, block_size=lines.size + 1)
    try:
        schema = pj.read_json(pa.BufferReader(lines), read_options=options).schema
    except pa.ArrowException:
        return None
    return _plain(pa.struct(list(schema)), 0)


def _most_opened(values: "pa.Array") -> int:
    """How deep a value may be nested at most."""
    import pyarrow.compute as pc

    opened = pc.add(pc.count_substring(values, "{"), pc.count_substring(values, "["))
    most: int = pc.max(opened).as_py()
    return most


def _plain(type_: "pa.DataType", depth: int) -> "pa.DataType":
    import pyarrow as pa
    from pyarrow import types

    if types.is_nested(type_) and depth >= MAX_DEPTH:
        return pa.string()
    if types.is_struct(type_):
        return pa.struct([pa.field(field.name, _plain(field.type, depth + 1)) for field in type_])
    if types.is_list(type_):
        return _list(_plain(type_.value_type, depth + 1))
    return pa.string() if types.is_temporal(type_) else type_


def _type_of(value: Any, depth: int) -> "pa.DataType":  # noqa: ANN401  # any JSON
    import pyarrow as pa

    match value:
        case None:
            return pa.null()
        case bool():
            return pa.bool_()
        case int():
            return pa.int64() if -_INT64_MAX <= value <= _INT64_MAX else pa.string()
        case float():
            return pa.float64()
        case dict() if depth < MAX_DEPTH:
            return pa.struct([pa.field(n, _type_of(v, depth + 1)) for n, v in value.items()])
        case list() if depth < MAX_DEPTH:
            item: pa.DataType = pa.null()
            for each in value:
                item = merged(item, _type_of(each, depth + 1))
            return _list(item)
        case _:
            return pa.string()


def _list(item: "pa.DataType") -> "pa.DataType":
    """Lists of objects or of lists are text: what is in them could not grow with the table."""
    import pyarrow as pa

    return pa.string() if pa.types.is_nested(item) else pa.list_(item)
