"""`partition_by`: columns, or expressions that make one: `day(timestamp)`, `bucket(16, key)`.

A derived column is a column of the table like others, named after what it was made of. Days, hours
and so on are those of UTC, so that the same record goes to the same place on every machine.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BUCKETS_MAX: Final = 4096
WAYS: Final = "a column, year(t), month(t), day(t), hour(t), bucket(16, key), or SQL as NAME"
_CALL: Final = re.compile(r"(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?([A-Za-z_]\w*)\s*\)", re.IGNORECASE)
_NAMED: Final = re.compile(r"(.+?)\s+as\s+([A-Za-z_]\w*)", re.IGNORECASE | re.DOTALL)
_COLUMN: Final = re.compile(r"[A-Za-z_]\w*")
_TIMES: Final = {
    "year": "cast(date_format({}, 'yyyy') as int)",
    "month": "date_format({}, 'yyyy-MM')",
    "day": "to_date({})",
    "hour": "date_format({}, 'yyyy-MM-dd-HH')",
}


@dataclass(frozen=True)
class Partition:
    """One column that files are kept apart by."""

    name: str
    sql: str = ""  # empty where the column is there already
    time_of: str = ""  # the column in whose place `{}` stands in `sql`


def partition(text: str) -> Partition:
    """Raises ValueError."""
    text = text.strip()
    if _COLUMN.fullmatch(text):
        return Partition(text)
    if named := _NAMED.fullmatch(text):
        inner = _CALL.fullmatch(named[1].strip())
        if inner and (inner[1].lower() in _TIMES or inner[1].lower() == "bucket"):
            found = _call(inner, text)
            return Partition(named[2], found.sql, found.time_of)
        return Partition(named[2], named[1].strip())
    if call := _CALL.fullmatch(text):
        return _call(call, text)
    raise ValueError(f"{text!r} is not {WAYS}")


def _call(call: re.Match[str], text: str) -> Partition:
    function, number, column = call[1].lower(), call[2], call[3]
    if function == "bucket":
        if number is None or not 1 <= int(number) <= BUCKETS_MAX:
            raise ValueError(f"{text!r}: bucket takes a count up to {BUCKETS_MAX}: bucket(16, key)")
        return Partition(f"{column}_bucket", f"cast(pmod(hash(`{column}`), {number}) as int)")
    if function not in _TIMES or number is not None:
        raise ValueError(f"{text!r} is not {WAYS}")
    return Partition(f"{column}_{function}", _TIMES[function], column)


def partitions(texts: tuple[str, ...]) -> tuple[Partition, ...]:
    """Raises ValueError."""
    return tuple(partition(text) for text in texts)


def is_plain(texts: tuple[str, ...]) -> bool:
    return all(_COLUMN.fullmatch(text.strip()) for text in texts)


def with_columns(rows: "DataFrame", wanted: tuple[Partition, ...]) -> "DataFrame":
    """The rows with what the partitions are made of."""
    from pyspark.sql import functions as F

    made = {each.name: F.expr(_sql(rows, each)) for each in wanted if each.sql}
    return rows.withColumns(made) if made else rows


def _sql(rows: "DataFrame", wanted: Partition) -> str:
    if not wanted.time_of:
        return wanted.sql
    types = dict(rows.dtypes)
    column = f"`{wanted.time_of}`"
    if types.get(wanted.time_of) == "timestamp":  # as it is shown in the session's zone; in UTC
        column = f"to_utc_timestamp({column}, current_timezone())"
    return wanted.sql.format(column)
