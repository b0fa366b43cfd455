"""Rows of a query as a table, CSV, JSON lines or a Parquet file, as they come."""

import csv
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from runnel.cli.output import CommandError, note, show_line, show_texts
from runnel.query.json_shape import unique
from runnel.query.result import cells

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS: Final = ("table", "csv", "json", "parquet")
SUFFIXES: Final = {".csv": "csv", ".json": "json", ".jsonl": "json", ".parquet": "parquet"}
TABLE_ROWS: Final = 1000
NULL: Final = "NULL"
EXPLAINED: Final = ["explain_key", "explain_value"]  # a plan is a drawing of many lines

Batches = Iterable["pa.RecordBatch"]


def format_of(wanted: str | None, output: Path | None) -> str:
    """What is asked for, what the file's name says, or a table. Raises CommandError."""
    if wanted is None:
        return SUFFIXES.get(output.suffix, "csv") if output is not None else "table"
    if wanted not in FORMATS:
        raise CommandError(f"--format {wanted}: write one of {', '.join(FORMATS)}.")
    if wanted == "parquet" and output is None and sys.stdout.isatty():
        raise CommandError("--format parquet is no text: name a file with --output.")
    return wanted


def write(
    batches: Batches,
    columns: Sequence[str],
    how: str,
    output: Path | None = None,
    limit_rows: int = TABLE_ROWS,
) -> int:
    """How many rows there were. Raises CommandError for a file that cannot be written."""
    if how == "table":
        if output is None:
            return _table(batches, columns, limit_rows)
        raise CommandError("--format table is for reading here: choose csv, json or parquet.")
    writers: dict[str, Callable[[Batches, Sequence[str], IO[bytes]], int]] = {
        "csv": _csv,
        "json": _json,
        "parquet": _parquet,
    }
    with _opened(output) as file:
        return writers[how](batches, columns, file)


def plain(value: Any) -> Any:  # noqa: ANN401  # of any type that SQL has
    """What JSON can hold: times in ISO 8601, bytes as text where they are UTF-8."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return _bytes_text(value)
    if isinstance(value, datetime):
        digits = "microseconds" if value.microsecond % 1000 else "milliseconds"
        return value.isoformat(timespec=digits).replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
            return {str(plain(key)): plain(item) for key, item in value}  # a map
        return [plain(item) for item in value]
    if hasattr(value, "nanoseconds"):  # of Arrow, which need not be imported for it
        return _interval_text(*value)
    return str(value) if isinstance(value, Decimal | timedelta) else repr(value)


def text_of(value: Any) -> str:  # noqa: ANN401
    """One cell."""
    found = plain(value)
    if isinstance(found, str):
        return found
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, int | float):
        return repr(found)
    return json.dumps(found, ensure_ascii=False)


def _rows(batches: Batches) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*map(cells, batch.columns), strict=True)


def _table(batches: Batches, columns: Sequence[str], limit_rows: int) -> int:
    import pyarrow as pa

    if list(columns) == EXPLAINED:
        plans = [str(row[1]) for row in _rows(batches)]
        show_line("\n".join(plans).rstrip())
        return len(plans)
    texts: list[list[str]] = []
    kinds: list[pa.DataType] = []
    count = 0
    for batch in batches:
        kinds = kinds or list(batch.schema.types)
        left = (limit_rows - count) if limit_rows else batch.num_rows
        for row in _rows([batch.slice(0, max(left, 0))]):
            texts.append([NULL if cell is None else _one_line(text_of(cell)) for cell in row])
        count += batch.num_rows
        if limit_rows and count > limit_rows:
            break
    numeric = [
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        for kind in kinds
    ] or [False] * len(columns)
    show_texts(columns, texts, numeric)
    if limit_rows and count > limit_rows:
        note(
            f"there are more than these {limit_rows:,} rows: --limit-rows 0 shows all, --format"
            " csv, json or parquet writes all"
        )
        return limit_rows
    return count


def _csv(batches: Batches, columns: Sequence[str], file: IO[bytes]) -> int:
    import io

    count = 0
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        for row in _rows(batches):
            writer.writerow(["" if cell is None else text_of(cell) for cell in row])
            count += 1
        text.flush()
    finally:
        text.detach()
    return count


def _json(batches: Batches, columns: Sequence[str], file: IO[bytes]) -> int:
    count = 0
    names = unique(columns)  # a join has some twice, an object once
    for row in _rows(batches):
        document = dict(zip(names, map(plain, row), strict=True))
        file.write(json.dumps(document, ensure_ascii=False).encode() + b"\n")
        count += 1
    return count


def _parquet(batches: Batches, columns: Sequence[str], file: IO[bytes]) -> int:
    import pyarrow.parquet as pq

    names = unique(columns)  # of columns of one name most readers see the first, or fail
    count, writer = 0, None
    try:
        for batch in batches:
            named = batch.rename_columns(names)
            if writer is None:
                writer = pq.ParquetWriter(file, named.schema, compression="zstd")
            writer.write_batch(named)
            count += batch.num_rows
    finally:
        if writer is not None:
            writer.close()
    return count


@contextmanager
def _opened(output: Path | None) -> Iterator[IO[bytes]]:
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = output.resolve()  # what a link leads to, not the link
    is_file = target.is_file() or not target.exists()  # else /dev/stdout, a pipe: never replaced
    beside = target.with_name(f".{target.name}.part") if is_file else target
    try:
        with beside.open("wb") as file:
            yield file
        if is_file:
            beside.replace(target)
    except OSError as error:
        raise CommandError(f"--output {output}: {error.strerror or error}.") from None
    finally:
        if is_file:
            beside.unlink(missing_ok=True)


def _bytes_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02X}" for byte in raw)


def _interval_text(months: int, days: int, nanoseconds: int) -> str:
    """As DuckDB writes an interval: `1 year 2 months 3 days 04:05:06.789`."""
    years, months = (part if months > 0 else -part for part in divmod(abs(months), 12))
    units = {"year": years, "month": months, "day": days}
    parts = [f"{n} {unit}{'' if abs(n) == 1 else 's'}" for unit, n in units.items() if n]
    seconds, micros = divmod(abs(nanoseconds) // 1000, 1_000_000)
    if nanoseconds or not parts:
        sign = "-" if nanoseconds < 0 else ""
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        parts.append(
            f"{sign}{clock}.{micros:06}".rstrip("0").rstrip(".") if micros else sign + clock
        )
    return " ".join(parts)


def _one_line(text: str) -> str:
    """Without what would move a terminal's cursor."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
