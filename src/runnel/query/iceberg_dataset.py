"""An Iceberg table in the shape of an Arrow dataset, as `topic_dataset` is one of a topic.

pyiceberg reads the columns that are asked for, and applies deletes; filters are applied to what it
reads.
"""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table


class IcebergDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    def __init__(self, table: "Table") -> None:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        # Not the parent's, which makes datasets of files.
        self._table = table
        declared = schema_to_pyarrow(table.schema(), include_field_ids=False)
        self._schema = pa.schema([(field.name, _plain(field.type)) for field in declared])

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(
        self,
        columns: list[str] | None = None,
        filter: Any = None,  # noqa: ANN401  # DuckDB's words
        **_: object,
    ) -> "_Scanner":
        return _Scanner(self._table, self._schema, columns, filter)


class _Scanner:
    def __init__(
        self,
        table: "Table",
        schema: pa.Schema,
        columns: list[str] | None,
        mask: Any,  # noqa: ANN401  # an expression, or None
    ) -> None:
        self._table, self._schema, self._mask = table, schema, mask
        self._columns = schema.names if columns is None else columns

    def to_reader(self) -> pa.RecordBatchReader:
        text = "" if self._mask is None else str(self._mask)
        needed = [name for name in self._schema.names if name in self._columns or name in text]
        whole = pa.schema([self._schema.field(name) for name in needed])
        schema = pa.schema([self._schema.field(name) for name in self._columns])
        return pa.RecordBatchReader.from_batches(schema, self._batches(whole))

    def _batches(self, whole: pa.Schema) -> "Iterator[pa.RecordBatch]":
        scan = self._table.scan(selected_fields=tuple(whole.names))
        for batch in scan.to_arrow_batch_reader():
            shown = batch.select(whole.names).cast(whole)
            if self._mask is not None:
                shown = shown.filter(self._mask)
            if shown.num_rows:
                yield shown.select(list(self._columns))


def _plain(kind: pa.DataType) -> pa.DataType:
    """Text and bytes with 32-bit offsets; what is nested stays as it is."""
    if kind == pa.large_string():
        return pa.string()
    return pa.binary() if kind == pa.large_binary() else kind
