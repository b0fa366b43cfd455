"""A topic in the shape of an Arrow dataset, which DuckDB asks for columns and filters as it scans.

DuckDB takes subclasses of `pyarrow.dataset.Dataset` and calls `scanner(columns=, filter=)`, then
`to_reader()`; no other part of a dataset is used. Filters are applied here, exactly as given.
"""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from runnel.query.presenting import Presenter

if TYPE_CHECKING:
    from runnel.query.topic_reading import TopicReader


class TopicDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    def __init__(self, reader: "TopicReader", presenter: Presenter) -> None:
        # Not the parent's, which makes datasets of files.
        self._reader, self._presenter = reader, presenter

    @property
    def schema(self) -> pa.Schema:
        return self._presenter.schema

    def scanner(
        self,
        columns: list[str] | None = None,
        filter: Any = None,  # noqa: ANN401  # DuckDB's words
        **_: object,
    ) -> "_Scanner":
        wanted = self.schema.names if columns is None else columns
        return _Scanner(self._reader, self._presenter, wanted, filter)


class _Scanner:
    def __init__(
        self,
        reader: "TopicReader",
        presenter: Presenter,
        wanted: list[str],
        mask: Any,  # noqa: ANN401  # an expression, or None
    ) -> None:
        self._reader, self._presenter, self._wanted, self._mask = reader, presenter, wanted, mask

    def to_reader(self) -> pa.RecordBatchReader:
        schema = pa.schema([self._presenter.schema.field(name) for name in self._wanted])
        batches = self._reader.batches(self._presenter, self._wanted, self._mask)
        return pa.RecordBatchReader.from_batches(schema, batches)
