"""Columns of whole numbers: what is none is null, where a cast of DuckDB's would round 1.5 to 2.

Whole numbers within lists, structs and maps are taken out of JSON as texts, and each of these is
cast by itself.
"""

from typing import Any, Final

from runnel.query.json_shape import quoted

WHOLE: Final = frozenset(
    f"{sign}{size}"
    for sign in ("", "U")
    for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
)
_INTEGER: Final = r"^(-?\d+)(\.0)?$"


def whole(text: str, kind: str) -> str:
    """Of an expression that is a text."""
    return f"try_cast(regexp_extract({text}, '{_INTEGER}', 1) as {kind})"


def of_nested(found: str, kind: str) -> str | None:
    """Of an expression that is JSON; None if the type has no whole numbers."""
    if not any(name in kind for name in WHOLE):
        return None
    import duckdb

    nested = duckdb.sqltype(kind)
    if not _has_whole(nested):
        return None
    texts = f"try_cast({found} as {_with_texts(nested)})"
    # A list of one gives the value a name, so that it is made once and not for each field.
    return f"list_transform([{texts}], lambda e0: {_cast('e0', nested, 1)})[1]"


def _has_whole(kind: Any) -> bool:  # noqa: ANN401  # a type of DuckDB, here and below
    if kind.id in ("struct", "list", "array", "map"):
        return any(_has_whole(child) for name, child in kind.children if name != "size")
    return str(kind) in WHOLE


def _with_texts(kind: Any) -> str:  # noqa: ANN401
    """The type with texts in place of whole numbers."""
    if not _has_whole(kind):
        return str(kind)
    children = kind.children if kind.id in ("struct", "list", "array", "map") else []
    if kind.id == "struct":
        fields = (f"{quoted(name)} {_with_texts(child)}" for name, child in children)
        return f"STRUCT({', '.join(fields)})"
    if kind.id == "map":
        return f"MAP({_with_texts(children[0][1])}, {_with_texts(children[1][1])})"
    return f"{_with_texts(children[0][1])}[]" if children else "VARCHAR"


def _cast(value: str, kind: Any, depth: int) -> str:  # noqa: ANN401
    """What `_with_texts` left as texts, as the numbers that they are."""
    if not _has_whole(kind):
        return value
    each = f"e{depth}"
    if kind.id == "struct":
        fields = (
            f"{quoted(name)} := {_cast(f'{value}.{quoted(name)}', child, depth)}"
            for name, child in kind.children
        )
        return f"case when {value} is not null then struct_pack({', '.join(fields)}) end"
    if kind.id in ("list", "array"):
        inner = _cast(each, kind.children[0][1], depth + 1)
        return f"try_cast(list_transform({value}, lambda {each}: {inner}) as {kind})"
    if kind.id == "map":
        parts = (
            f"list_transform(map_{part}({value}), lambda {each}: {_cast(each, child, depth + 1)})"
            for part, (_, child) in zip(("keys", "values"), kind.children, strict=True)
        )
        return f"case when {value} is not null then try(map({', '.join(parts)})) end"
    return whole(value, str(kind))
