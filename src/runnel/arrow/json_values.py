"""One JSON value as Spark's `from_json` reads it: the slow and exact way, record by record.

A field of the wrong type is null and the others stay, as Spark's partial results have it; the
record counts as bad all the same. Times without a zone are in UTC.
"""

import base64
import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from runnel.arrow.decoding import DecodeOptionError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

Misfits = list[str]
Converter = Callable[[Any, str, Misfits], Any]  # value, its path, where to say what does not fit
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_NUMBERS: Final = {
    "NaN": float("nan"),
    **dict.fromkeys(("Infinity", "+Infinity", "INF", "+INF"), float("inf")),
    **dict.fromkeys(("-Infinity", "-INF"), float("-inf")),
}
_SHOWN_CHARACTERS: Final = 60
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")  # or one of two


class _Number(float):
    """A float that remembers how it was written, for columns that want it as text or decimal."""

    text: str

    def __new__(cls, text: str) -> "_Number":
        made = super().__new__(cls, text)
        made.text = text
        return made


def without_halves(value: Any, raw: bytes) -> Any:  # noqa: ANN401  # whatever JSON has
    """The value of these bytes with `?`, as Spark has it, for each half of a surrogate pair.

    JSON may escape one alone, as where a text was cut within an emoji; no column takes it.
    """
    return _whole(value) if _HALF.search(raw) else value


def _whole(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_whole(name): _whole(item) for name, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def parsed(raw: bytes) -> Any:  # noqa: ANN401  # whatever JSON has
    """Raises ValueError, also for bytes that are not one whole JSON value."""
    try:
        value = json.loads(raw.decode(errors="replace"), parse_float=_Number)
        return without_halves(value, raw)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def row_converter(schema: "StructType") -> Callable[[bytes], tuple[dict[str, Any] | None, str]]:
    """A function that gives the fields of a value, and what is wrong with it or ''."""
    convert = _struct(schema)

    def converted(raw: bytes) -> tuple[dict[str, Any] | None, str]:
        if not raw.strip():
            return None, ""  # from_json gives null and does not complain
        try:
            value = parsed(raw)
        except ValueError as error:
            return {}, f"not JSON: {error}"
        misfits: Misfits = []
        try:
            if not isinstance(value, dict):
                return {}, f"not a JSON object but {_shown(value)}"
            return convert(value, "", misfits), "; ".join(misfits)
        except RecursionError:  # to write it takes more than to read it did
            return {}, "not JSON: it is nested too deep"

    return converted


def converter(kind: "DataType") -> Converter:
    """Raises DecodeOptionError for a type that JSON is not read as."""
    from pyspark.sql import types as t

    simple: dict[type[t.DataType], Converter] = {
        t.BooleanType: _checked("boolean", lambda value: isinstance(value, bool), bool),
        t.ByteType: _integer("tinyint", 8),
        t.ShortType: _integer("smallint", 16),
        t.IntegerType: _integer("int", 32),
        t.LongType: _integer("bigint", 64),
        t.FloatType: _float,
        t.DoubleType: _float,
        t.StringType: _text,
        t.BinaryType: _binary,
        t.DateType: _date,
        t.TimestampType: _timestamp,
        t.TimestampNTZType: _local_timestamp,
    }
    if isinstance(kind, t.DecimalType):
        return _decimal(kind.precision, kind.scale)
    if isinstance(kind, t.StructType):
        return _struct(kind)
    if isinstance(kind, t.ArrayType):
        return _array(converter(kind.elementType))
    if isinstance(kind, t.MapType) and isinstance(kind.keyType, t.StringType):
        return _map(converter(kind.valueType))
    if type(kind) not in simple:
        raise DecodeOptionError(f"valueSchema: JSON is not read as {kind.simpleString()}")
    return simple[type(kind)]


def _struct(schema: "StructType") -> Converter:
    fields = [(field.name, converter(field.dataType)) for field in schema]

    def convert(value: Any, path: str, misfits: Misfits) -> Any:  # noqa: ANN401
        if not isinstance(value, dict):
            return _misfit(value, path, "an object", misfits)
        out = {}
        for name, of_field in fields:
            found = value.get(name)
            inner = f"{path}.{name}" if path else name
            out[name] = None if found is None else of_field(found, inner, misfits)
        return out

    return convert


def _array(of_item: Converter) -> Converter:
    def convert(value: Any, path: str, misfits: Misfits) -> Any:  # noqa: ANN401
        if not isinstance(value, list):
            return _misfit(value, path, "an array", misfits)
        before = len(misfits)
        inner = f"{path}[]"
        out = [None if item is None else of_item(item, inner, misfits) for item in value]
        return out if len(misfits) == before else None

    return convert


def _map(of_value: Converter) -> Converter:
    def convert(value: Any, path: str, misfits: Misfits) -> Any:  # noqa: ANN401
        if not isinstance(value, dict):
            return _misfit(value, path, "an object", misfits)
        before = len(misfits)
        out = [
            (key, None if item is None else of_value(item, f"{path}.{key}", misfits))
            for key, item in value.items()
        ]
        return out if len(misfits) == before else None

    return convert


def _checked(name: str, fits: Callable[[Any], bool], made: Callable[[Any], Any]) -> Converter:
    def convert(value: Any, path: str, misfits: Misfits) -> Any:  # noqa: ANN401
        return made(value) if fits(value) else _misfit(value, path, name, misfits)

    return convert


def _integer(name: str, bits: int) -> Converter:
    limit = 1 << (bits - 1)
    return _checked(
        name,
        lambda value: type(value) is int and -limit <= value < limit,
        int,
    )


def _float(value: Any, path: str, misfits: Misfits) -> Any:  # noqa: ANN401
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if isinstance(value, str) and value in _NOT_NUMBERS:
        return _NOT_NUMBERS[value]
    return _misfit(value, path, "a number", misfits)


def _text(value: Any, path: str, misfits: Misfits) -> str:  # noqa: ANN401
    """Whatever is no string is given as the JSON that it is."""
    return value if isinstance(value, str) else as_json(value)


def as_json(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, _Number):
        return value.text
    if isinstance(value, dict):
        inner = (f"{json.dumps(key, ensure_ascii=False)}:{as_json(v)}" for key, v in value.items())
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(as_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _binary(value: Any, path: str, misfits: Misfits) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:  # not of its letters, or not of its length
            pass
    return _misfit(value, path, "base64", misfits)


def _decimal(precision: int, scale: int) -> Converter:
    step = Decimal(1).scaleb(-scale)
    limit = Decimal(10) ** (precision - scale)

    def convert(value: Any, path: str, misfits: Misfits) -> Any:  # noqa: ANN401
        text = value.text if isinstance(value, _Number) else value
        if isinstance(text, int | str) and not isinstance(text, bool):
            try:
                found = Decimal(text).quantize(step, ROUND_HALF_UP)
                if abs(found) < limit:
                    return found
            except InvalidOperation:
                pass
        return _misfit(value, path, f"decimal({precision},{scale})", misfits)

    return convert


def _date(value: Any, path: str, misfits: Misfits) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        try:
            return date.fromisoformat(value.strip()[:10])
        except ValueError:
            pass
    return _misfit(value, path, "a date such as 2026-01-31", misfits)


def _timestamp(value: Any, path: str, misfits: Misfits) -> Any:  # noqa: ANN401
    if type(value) is int:
        try:
            return _EPOCH + timedelta(seconds=value)
        except OverflowError:
            return _misfit(value, path, "a time", misfits)
    found = _moment(value)
    if found is None:
        return _misfit(value, path, "a time such as 2026-01-31T12:00:00Z", misfits)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def _local_timestamp(value: Any, path: str, misfits: Misfits) -> Any:  # noqa: ANN401
    found = _moment(value)
    if found is None or found.tzinfo is not None:
        return _misfit(value, path, "a time without zone such as 2026-01-31T12:00:00", misfits)
    return found


def _moment(value: Any) -> datetime | None:  # noqa: ANN401
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError:
        return None


def _misfit(value: Any, path: str, wanted: str, misfits: Misfits) -> None:  # noqa: ANN401
    misfits.append(f"{path} is {_shown(value)}, not {wanted}")


def _shown(value: Any) -> str:  # noqa: ANN401
    text = as_json(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
