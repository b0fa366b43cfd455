"""Rows of one statement: as Arrow, as pandas, or one by one. It runs when they are taken."""

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, Final

from runnel.arrow.tally import Figures
from runnel.query.errors import MissingExtraError, QueryError
from runnel.query.far_times import time_text
from runnel.query.topic_reading import Moment

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from duckdb import DuckDBPyRelation

BATCH_ROWS: Final = 16_384
DAY_US: Final = 86_400_000_000
INFINITE_US: Final = (1 << 63) - 1
_US: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}  # in nanoseconds
HUGE_DIGITS: Final = 38  # of a decimal that stands for a HUGEINT

Running = Callable[
    [], AbstractContextManager[None]
]  # a context in which DuckDB's errors become ours


class Result:
    """Each way of taking the rows runs the statement: take them once."""

    def __init__(
        self, relation: "DuckDBPyRelation | None", moment: Moment, running: Running
    ) -> None:
        self._relation, self._moment, self._running = relation, moment, running
        self._columns = [] if relation is None else list(relation.columns)
        self._has_rows = relation is not None
        self._when_taken: Callable[[], None] = _nothing

    def when_taken(self, call: Callable[[], None]) -> "Result":
        """Called once the rows have been taken, or taking them has failed."""
        self._when_taken = call
        return self

    def drop(self) -> None:
        """What has not been taken is not there any more, as the connection is closed."""
        self._relation = None

    @property
    def has_rows(self) -> bool:
        """False for a statement that gives none, as `create view`; it has run already."""
        return self._has_rows

    @property
    def columns(self) -> list[str]:
        return self._columns

    @property
    def figures(self) -> Figures:
        """What was read of topics, so far."""
        return self._moment.tally.figures

    @property
    def planned_offsets(self) -> int:
        """How many offsets of topics the scans so far had to cover."""
        return self._moment.planned_offsets

    @property
    def notes(self) -> list[str]:
        """What there is to say: columns that were inferred, times out of order, odd bytes."""
        return list(self._moment.notes)

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """As they come, whatever their number; where there is no row, one that tells the types.

        Raises QueryError.
        """
        import pyarrow as pa

        if not self._has_rows:
            return
        reader, is_empty = None, True
        try:
            with self._running():
                reader = self._taken().to_arrow_reader(BATCH_ROWS)
            while (batch := self._next(reader)) is not None:
                is_empty = False
                yield batch
            if is_empty:
                yield pa.RecordBatch.from_pylist([], schema=reader.schema)
        finally:
            if reader is not None:
                reader.close()
            self._when_taken()

    def arrow(self) -> "pa.Table":
        """All of them. Raises QueryError."""
        import pyarrow as pa

        if not self._has_rows:
            return pa.table({})
        try:
            with self._running():
                return _with_integers(self._taken().to_arrow_table())
        finally:
            self._when_taken()

    def pandas(self) -> "pd.DataFrame":
        """Raises QueryError."""
        try:
            return self.arrow().to_pandas()
        except ImportError:
            raise MissingExtraError("a data frame needs pandas: pip install pandas") from None

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Raises QueryError."""
        return list(self)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row; None if there is none. Raises QueryError."""
        rows = iter(self)
        try:
            return next(rows, None)
        finally:
            rows.close()

    def _taken(self) -> "DuckDBPyRelation":
        if self._relation is None:
            raise QueryError("the rows were taken, or the connection is closed: run it again")
        return self._relation

    def _next(self, reader: "pa.RecordBatchReader") -> "pa.RecordBatch | None":
        with self._running():
            try:
                return reader.read_next_batch()
            except StopIteration:
                return None

    def __iter__(self) -> Generator[tuple[Any, ...]]:
        for batch in self.batches():
            yield from zip(*map(cells, batch.columns), strict=True)


def cells(column: "pa.Array") -> list[Any]:
    """Values of Python; DuckDB's sums of integers are decimals to Arrow, and integers here.

    A time that Python does not have, as after the year 9999, is a text.
    """
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        return [_cell(scalar) for scalar in column]
    if _is_integral(column.type):
        return [None if cell is None else int(cell) for cell in found]
    return found


def _cell(scalar: Any) -> Any:  # noqa: ANN401  # of Arrow, and what it is in Python
    import pyarrow as pa

    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        kind = scalar.type
    if pa.types.is_timestamp(kind):
        text = _far(scalar.value * _US[kind.unit] // 1000)
        return text if kind.tz else text.removesuffix("Z")
    if pa.types.is_date32(kind):
        return _far(scalar.value * DAY_US).partition("T")[0]
    if pa.types.is_struct(kind):
        return {name: _cell(each) for name, each in scalar.items()}
    if pa.types.is_map(kind):
        return [(_cell(each["key"]), _cell(each["value"])) for each in scalar.values]
    return [_cell(each) for each in scalar.values] if hasattr(scalar, "values") else str(scalar)


def _far(us: int) -> str:
    """DuckDB's infinities are the largest numbers that it has."""
    if abs(us) >= INFINITE_US:
        return "infinity" if us > 0 else "-infinity"
    return time_text(us, "microseconds" if us % 1000 else "milliseconds")


def _with_integers(table: "pa.Table") -> "pa.Table":
    """Where they fit into 64 bits, which Arrow and pandas count with."""
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        if _is_integral(field.type):
            with suppress(pa.ArrowInvalid):
                column = table.column(at).cast(pa.int64())
                table = table.set_column(at, field.with_type(pa.int64()), column)
    return table


def _is_integral(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    is_huge = pa.types.is_decimal(kind) and kind.precision == HUGE_DIGITS
    return bool(is_huge and kind.scale == 0)


def _nothing() -> None:
    """Nobody waits for it."""
