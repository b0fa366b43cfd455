"""JSON values as typed columns, with the meaning of Spark's `from_json`.

A whole run of values is parsed at once, as lines, by pyarrow. What it refuses is halved until the
values that it refuses are alone; those are read one by one, exactly as `from_json` would.

Lines are as many as values and in their order: each begins with `{` and ends with `}`, so that it
is at least one document, and there are as many documents as values.
"""

from typing import TYPE_CHECKING, Final

from runnel.arrow.json_values import row_converter

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

ONE_BY_ONE_ROWS: Final = 16
PARTS: Final = 8  # a refused run is tried again in as many parts


class JsonDecoder:
    """Rows of one schema; `decode` gives a column for each field, and what is wrong with rows."""

    def __init__(self, schema: "StructType") -> None:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        self._convert = row_converter(schema)
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._row_type = pa.struct(list(self._schema))
        kinds = {field.name: _line_type(field.type) for field in self._schema}
        known = {name: kind for name, kind in kinds.items() if kind is not None}
        self._line_schema = pa.schema(known) if len(known) == len(kinds) else None

    def decode(self, values: "pa.Array") -> "tuple[list[pa.Array], dict[int, str]]":
        import pyarrow as pa
        import pyarrow.compute as pc

        bad: dict[int, str] = {}
        if not values.null_count:
            parts = self._decoded(values, 0, bad)
        else:  # a tombstone is a row of nulls: parse the others, then put them in their places
            present = pc.is_valid(values)
            rows = pc.indices_nonzero(present)
            found = self._decoded(pc.drop_null(values), 0, bad)
            bad = {rows[at].as_py(): why for at, why in bad.items()}
            places = pc.subtract(pc.cumulative_sum(present.cast(pa.int64())), 1)
            places = pc.if_else(present, places, None)
            whole = pa.Table.from_batches(found, self._schema).combine_chunks()
            parts = whole.take(places).combine_chunks().to_batches()
        table = pa.Table.from_batches(parts, self._schema).combine_chunks()
        return [_single(column, len(values)) for column in table.columns], bad

    def _decoded(
        self, values: "pa.Array", first: int, bad: dict[int, str]
    ) -> "list[pa.RecordBatch]":
        """Of values without nulls; `first` is the row that they begin with."""
        count = len(values)
        if count == 0:
            return []
        found = self._parsed(values)
        if found is not None:
            return found
        if count <= ONE_BY_ONE_ROWS or self._line_schema is None:
            return [self._one_by_one(values, first, bad)]
        size = -(-count // PARTS)
        return [
            batch
            for start in range(0, count, size)
            for batch in self._decoded(values.slice(start, size), first + start, bad)
        ]

    def _parsed(self, values: "pa.Array") -> "list[pa.RecordBatch] | None":
        """All at once, or None where a value is not what it should be."""
        import pyarrow as pa
        import pyarrow.json as pj

        lines = None if self._line_schema is None else json_lines(values)
        if lines is None:
            return None
        try:
            table = pj.read_json(
                pa.BufferReader(lines),
                read_options=pj.ReadOptions(use_threads=False, block_size=lines.size + 1),
                parse_options=pj.ParseOptions(
                    explicit_schema=self._line_schema, unexpected_field_behavior="ignore"
                ),
            )
            if len(table) != len(values):
                return None
            columns = [_cast(table[field.name], field.type) for field in self._schema]
        except pa.ArrowException:
            return None
        found: list[pa.RecordBatch] = (
            pa.table(columns, schema=self._schema).combine_chunks().to_batches()
        )
        return found

    def _one_by_one(self, values: "pa.Array", first: int, bad: dict[int, str]) -> "pa.RecordBatch":
        import pyarrow as pa

        rows = []
        for at, raw in enumerate(values.to_pylist()):
            fields, wrong = self._convert(raw)
            rows.append(fields or {})
            if wrong:
                bad[first + at] = wrong
        made = pa.array(rows, self._row_type)
        return pa.RecordBatch.from_arrays(made.flatten(), schema=self._schema)


def json_lines(values: "pa.Array") -> "pa.Buffer | None":
    """The values with line feeds between them; None if they cannot all be whole objects."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _all_objects(values):
        values = pc.ascii_trim_whitespace(values.cast(pa.string(), safe=False)).cast(pa.binary())
        if not _all_objects(values):
            return None
    try:
        values.view(pa.string()).validate(full=True)
    except pa.ArrowInvalid:  # not UTF-8, which the parser would let pass
        return None
    ends = pa.array([0, len(values)], pa.int32())
    return pc.binary_join(pa.ListArray.from_arrays(ends, values), b"\n")[0].as_buffer()


def _all_objects(values: "pa.Array") -> bool:
    import pyarrow.compute as pc

    starts, ends = pc.starts_with(values, b"{"), pc.ends_with(values, b"}")
    return bool(pc.all(starts).as_py()) and bool(pc.all(ends).as_py())


def _line_type(kind: "pa.DataType") -> "pa.DataType | None":
    """The type as the parser is told; None for what it cannot read, or reads otherwise."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_timestamp(kind) or types.is_date(kind):
        return pa.string()  # what they may look like is for us to say
    if types.is_list(kind):
        return kind if _is_read_as_it_is(kind.value_type) else None
    if types.is_struct(kind):
        return kind if all(_is_read_as_it_is(field.type) for field in kind) else None
    if types.is_map(kind) or types.is_binary(kind) or types.is_decimal(kind):
        return None
    return kind


def _is_read_as_it_is(kind: "pa.DataType") -> bool:
    found = _line_type(kind)
    return found is not None and found.equals(kind)


def _cast(column: "pa.ChunkedArray", kind: "pa.DataType") -> "pa.ChunkedArray":
    """Raises ArrowException for a time that is not one."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_timestamp(kind) and kind.tz is not None:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:  # without a zone: UTC
            return column.cast(pa.timestamp("us")).cast(kind)
    return column if column.type == kind else column.cast(kind)


def _single(column: "pa.ChunkedArray", rows: int) -> "pa.Array":
    """Of a table after `combine_chunks` there is one chunk, or none at all."""
    import pyarrow as pa

    assert len(column) == rows, (len(column), rows)
    return column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
