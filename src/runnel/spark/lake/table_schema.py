"""Which columns a table has, and whether rows fit: names, types, what may be added or widened.

Everything is compared as Arrow types in one plain spelling, since Delta, Iceberg and Parquet each
hand their schema back a little differently. Columns are always nullable: a table outlives the
program that believed one of them never to be null.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from runnel.spark.lake.lake_options import TableError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

_WIDENS: Final = {
    "int8": ("int16", "int32", "int64"),
    "int16": ("int32", "int64"),
    "int32": ("int64",),
    "float": ("double",),
}
_KEPT: Final = frozenset(
    [
        *("boolean", "byte", "short", "integer", "long", "float", "double", "decimal"),
        *("string", "char", "varchar", "binary", "date", "timestamp", "timestamp_ntz"),
    ]
)


def of_rows(schema: "StructType") -> "pa.Schema":
    """How Spark's rows look as Arrow; refuses types that no table format keeps."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type

    fields = []
    names: dict[str, str] = {}
    for column in schema.fields:
        twin = names.setdefault(column.name.lower(), column.name)
        if twin is not column.name:
            raise TableError(
                f"columns {twin} and {column.name} differ in no more than case; rename one of them"
            )
        _refuse(column.name, column.dataType)
        arrow_type = to_arrow_type(column.dataType, timezone="UTC")
        fields.append(pa.field(column.name, plain(arrow_type)))
    if not fields:
        raise TableError("there is no column to write; select at least one")
    return pa.schema(fields)


def _refuse(name: str, type_: "DataType") -> None:
    for leaf in _leaves(type_):
        if leaf.typeName() not in _KEPT:
            raise TableError(
                f"column {name} has the type {leaf.simpleString()}, which tables do not keep; cast"
                f" it, for example with col('{name}').cast('string')"
            )


def _leaves(type_: "DataType") -> "Iterator[DataType]":
    from pyspark.sql.types import ArrayType, MapType, StructType

    match type_:
        case StructType():
            for field in type_.fields:
                yield from _leaves(field.dataType)
        case ArrayType():
            yield from _leaves(type_.elementType)
        case MapType():
            yield from _leaves(type_.keyType)
            yield from _leaves(type_.valueType)
        case _:
            yield type_


def plain(type_: "pa.DataType") -> "pa.DataType":
    """One spelling for each type: no large or view variants, UTC, all nullable."""
    import pyarrow as pa
    import pyarrow.types as types

    if types.is_large_string(type_) or types.is_string_view(type_):
        return pa.string()
    if types.is_large_binary(type_) or types.is_binary_view(type_):
        return pa.binary()
    if types.is_dictionary(type_):
        return plain(type_.value_type)
    if types.is_timestamp(type_):
        return pa.timestamp("us", "UTC" if type_.tz else None)
    if types.is_struct(type_):
        return pa.struct([pa.field(f.name, plain(f.type)) for f in type_])
    if types.is_map(type_):
        return pa.map_(plain(type_.key_type), plain(type_.item_type))
    if types.is_list(type_) or types.is_large_list(type_):
        return pa.list_(pa.field("element", plain(type_.value_type)))
    return type_


def read(serialized: bytes) -> "pa.Schema":
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(serialized))


def plain_schema(schema: "pa.Schema") -> "pa.Schema":
    import pyarrow as pa

    return pa.schema([pa.field(f.name, plain(f.type)) for f in schema])


def fit(
    rows: "pa.Schema", table: "pa.Schema", *, merge: bool, where: str
) -> "tuple[pa.Schema, list[pa.Field]]":
    """The schema that files get, and the columns that the table must be given first.

    Files take the table's type where it is the wider one, and a struct all fields of both. A column
    that the rows lack is null.
    """
    import pyarrow as pa

    known = {f.name.lower(): f for f in table}
    written: list[pa.Field] = []
    added: list[pa.Field] = []
    for column in rows:
        there = known.get(column.name.lower())
        if there is None:
            added.append(column)
            written.append(column)
        elif there.name != column.name:
            raise TableError(
                f"column {column.name} is called {there.name} in {where}; rename it:"
                f" .withColumnRenamed('{column.name}', '{there.name}')"
            )
        else:
            type_ = widest(column.type, there.type)
            if type_ is None:
                raise TableError(
                    f"column {column.name} is {column.type} in the rows but {there.type} in"
                    f" {where}; cast the column, or write to another table"
                )
            grown = pa.field(column.name, type_)
            written.append(grown)
            if type_ != there.type:
                added.append(grown)
    if added and not merge:
        names = ", ".join(f"{f.name} ({f.type})" for f in added)
        raise TableError(
            f"{where} has no column {names}; set mergeSchema=true to add it, or drop it from the"
            f" rows"
        )
    return pa.schema(written), added


def widest(rows: "pa.DataType", table: "pa.DataType") -> "pa.DataType | None":
    """The type that a column must have for both; None where the rows do not fit the table's.

    It is the table's, but for structs, which may be given more fields.
    """
    import pyarrow as pa
    import pyarrow.types as types

    if rows == table or str(table) in _WIDENS.get(str(rows), ()):
        return table
    if not (types.is_struct(rows) and types.is_struct(table)):
        return None
    fields = {field.name: field.type for field in table}
    for field in rows:
        known = fields.get(field.name)
        found = field.type if known is None else widest(field.type, known)
        if found is None:
            return None
        fields[field.name] = found
    return pa.struct([pa.field(name, type_) for name, type_ in fields.items()])


def grown(table: "pa.Schema", added: "Sequence[pa.Field]") -> "pa.Schema":
    """The table's columns with those that `fit` adds, or gives more fields."""
    import pyarrow as pa

    fields = {field.name: field for field in table} | {field.name: field for field in added}
    return pa.schema(list(fields.values()))


def check_partitions(columns: tuple[str, ...], schema: "pa.Schema") -> None:
    """Partition columns exist, are of a type that has one text, and are not all there is."""
    import pyarrow.types as types

    for name in columns:
        if name not in schema.names:
            raise TableError(
                f"partitionBy={name}: the rows have no such column, only {', '.join(schema.names)}"
            )
        type_ = schema.field(name).type
        if not (
            types.is_string(type_)
            or types.is_integer(type_)
            or types.is_date(type_)
            or types.is_boolean(type_)
        ):
            raise TableError(
                f"partitionBy={name}: it is {type_}; take a string, whole number, date or boolean"
            )
    if columns and len(columns) == len(schema.names):
        raise TableError("partitionBy names every column; leave one to be stored")
