"""The least and greatest value of each column, out of a Parquet footer, in Delta's words.

Readers skip whole files by these, so a bound may be too wide and never too narrow: a long text is
cut for the lower bound and left out for the upper one, floats that could hide a NaN are left out,
and so are times beyond the year 9999.
"""

import datetime
import decimal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MAX_COLUMNS: Final = 32  # as Delta itself does by default
MAX_TEXT: Final = 64


def delta_stats(metadata: "pq.FileMetaData") -> dict[str, Any]:
    """`numRecords`, `minValues`, `maxValues` and `nullCount` of top-level columns."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for column in range(min(metadata.num_columns, MAX_COLUMNS)):
        name = metadata.schema.column(column).path
        if metadata.schema.column(column).max_repetition_level or "." in name:
            continue
        found = [metadata.row_group(g).column(column) for g in range(metadata.num_row_groups)]
        statistics = [chunk.statistics for chunk in found]
        if any(s is None or not s.has_null_count for s in statistics):
            continue
        nulls[name] = sum(s.null_count for s in statistics)
        ranged = [s for s in statistics if s.has_min_max]
        empty = [c for c in found if c.statistics.null_count == c.num_values]
        if not ranged or len(ranged) + len(empty) < len(found):
            continue
        bounds = _bounds(ranged)
        if bounds is None:
            continue
        if (text := _bound(bounds[0], upper=False)) is not None:
            least[name] = text
        if (text := _bound(bounds[1], upper=True)) is not None:
            greatest[name] = text
    return {
        "numRecords": metadata.num_rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": nulls,
    }


def without_bounds(metadata: "pq.FileMetaData") -> set[str]:
    """The columns with a bound that Python has no word for, such as a time in the year 10000."""
    chunks = [
        metadata.row_group(group).column(column)
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    ]
    ranged = [chunk for chunk in chunks if chunk.is_stats_set and chunk.statistics.has_min_max]
    return {chunk.path_in_schema for chunk in ranged if _bounds([chunk.statistics]) is None}


def _bounds(ranged: "list[pq.Statistics]") -> tuple[Any, Any] | None:
    try:
        return min(s.min for s in ranged), max(s.max for s in ranged)
    except (OverflowError, ValueError):
        return None


def _bound(value: object, *, upper: bool) -> int | str | None:
    match value:
        case bool() | bytes() | float():
            return None
        case int():
            return value
        case str():
            return None if upper and len(value) > MAX_TEXT else value[:MAX_TEXT]
        case datetime.datetime():
            text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
            return f"{text}Z" if value.tzinfo else text
        case datetime.date():
            return value.isoformat()
        case decimal.Decimal():
            return None  # as JSON it would be a float, and no bound any more
        case _:
            return None
