"""Records of Debezium's connectors, and of plain keyed topics, as changes of rows.

An envelope is `{"before": ..., "after": ..., "source": ..., "op": "c"}`, alone or below `payload`
with its `schema` beside it. Where there is a schema it says what numbers stand for: days, times and
decimals become what they are. In a plain topic the value is the row, and no value is a delete.
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from runnel.arrow.json_values import without_halves
from runnel.pipelines.changes import DELETE, TOMBSTONE, UPSERT, Change, Order

ENVELOPES: Final = ("debezium", "plain")
KEY_COLUMN: Final = "key"
UPSERTS: Final = ("c", "u", "r")
_WIDTH: Final = 20  # digits of 64 bits
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_POSITIONS: Final = (
    ("lsn",),  # PostgreSQL
    ("file", "pos", "row"),  # MySQL, MariaDB
    ("change_lsn", "event_serial_no"),  # SQL Server
    ("commit_scn", "scn"),  # Oracle
    ("ord",),  # MongoDB
)


class BadChangeError(ValueError):
    """The record is no change; the message says why."""


@dataclass(frozen=True)
class Reader:
    """Of one pipeline; pickles."""

    envelope: str  # of ENVELOPES
    keys: tuple[str, ...] = ()  # columns; those of the record's key unless told

    def change(self, key: bytes | None, value: bytes | None, offset: int) -> Change | str:
        """A change, or the word for what is left out: `truncate`, `message`.

        Raises BadChangeError.
        """
        if self.envelope == "plain":
            return self._plain(key, value, offset)
        if value is None:
            return self._made(TOMBSTONE, key, {}, Order(0, "", offset))
        payload, fields = _unwrapped(_object(value, "value"))
        op = payload.get("op")
        if op == "t":
            return "truncate"
        if op == "m":
            return "message"
        if op != "d" and op not in UPSERTS:
            raise BadChangeError(f"not an envelope of Debezium: its op is {_shown(op)}")
        side = "before" if op == "d" else "after"
        row = payload.get(side)
        if row is None and op == "d":
            row = {}
        if not isinstance(row, dict):
            raise BadChangeError(f"op {op} has no {side}: it is {_shown(row)}")
        order = _order(payload, offset)
        return self._made(DELETE if op == "d" else UPSERT, key, _typed(row, fields, side), order)

    def _plain(self, key: bytes | None, value: bytes | None, offset: int) -> Change:
        order = Order(0, "", offset)
        if value is None:
            return self._made(DELETE, key, {}, order)
        row, fields = _unwrapped(_object(value, "value"))
        return self._made(UPSERT, key, _typed(row, fields, ""), order)

    def _made(self, op: str, key: bytes | None, row: dict[str, Any], order: Order) -> Change:
        found = self._key(key, row)
        whole = {**row, **found} if op == UPSERT else found
        return Change(_text(found, sort=True), op, order, _text(whole))

    def _key(self, key: bytes | None, row: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of the key and their values."""
        if self.keys and all(row.get(name) is not None for name in self.keys):
            return {name: row[name] for name in self.keys}
        if key is None:
            wanted = f"columns {', '.join(self.keys)}, nor" if self.keys else ""
            raise BadChangeError(f"it has no {wanted} key".replace("no  ", "no "))
        found = _key_fields(key)
        if isinstance(found, dict):
            names = self.keys or tuple(found)
            missing = [name for name in names if found.get(name) is None]
            if missing or not names:
                raise BadChangeError(f"its key has no {missing[0] if missing else 'columns'}")
            return {name: found[name] for name in names}
        if len(self.keys) > 1:
            raise BadChangeError(f"its key is {_shown(found)}, not {', '.join(self.keys)}")
        return {self.keys[0] if self.keys else KEY_COLUMN: found}


def all_changes(
    reader: Reader, records: "Iterable[tuple[bytes | None, bytes | None, int]]"
) -> "tuple[dict[int, Change], dict[int, str], dict[str, int]]":
    """Of keys, values and offsets: what which record changes, or is wrong; what was left out."""
    changes: dict[int, Change] = {}
    bad: dict[int, str] = {}
    left_out: dict[str, int] = {}
    for number, (key, value, offset) in enumerate(records):
        try:
            found = reader.change(key, value, offset)
        except BadChangeError as error:
            bad[number] = str(error)
            continue
        except RecursionError:
            bad[number] = "it is nested too deep"
            continue
        if isinstance(found, str):
            left_out[found] = left_out.get(found, 0) + 1
        else:
            changes[number] = found
    return changes, bad, left_out


def _object(raw: bytes, what: str) -> dict[str, Any]:
    try:
        found = without_halves(json.loads(raw), raw)
    except (ValueError, RecursionError) as error:
        raise BadChangeError(f"its {what} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadChangeError(f"its {what} is not a JSON object but {_shown(found)}")
    return found


def _unwrapped(value: dict[str, Any]) -> "tuple[dict[str, Any], Sequence[Any]]":
    """The payload, and the fields of its schema if there is one."""
    if value.keys() == {"schema", "payload"}:
        payload, schema = value["payload"], value["schema"]
        if not isinstance(payload, dict):
            raise BadChangeError(f"its payload is not an object but {_shown(payload)}")
        fields = schema.get("fields") if isinstance(schema, dict) else None
        return payload, fields if isinstance(fields, list) else ()
    return value, ()


def _key_fields(key: bytes) -> Any:  # noqa: ANN401  # an object, or one value
    try:
        found = without_halves(json.loads(key), key)
    except (ValueError, RecursionError):
        return key.decode(errors="replace")
    if isinstance(found, dict):
        payload = found.get("payload") if found.keys() == {"schema", "payload"} else found
        if not isinstance(payload, dict):
            return payload
        return _typed(payload, _unwrapped(found)[1], "")
    return found


def _order(payload: Mapping[str, Any], offset: int) -> Order:
    source = payload.get("source")
    source = source if isinstance(source, dict) else {}
    ts_ms = source.get("ts_ms")
    if not isinstance(ts_ms, int):
        ts_ms = payload.get("ts_ms")
    for names in _POSITIONS:
        if source.get(names[0]) is not None:
            parts = [_sortable(source.get(name)) for name in names]
            return Order(ts_ms if isinstance(ts_ms, int) else 0, "/".join(parts), offset)
    return Order(ts_ms if isinstance(ts_ms, int) else 0, "", offset)


def _sortable(value: Any) -> str:  # noqa: ANN401  # a number or a text
    text = "" if value is None else str(value)
    return text.zfill(_WIDTH) if text.isdecimal() else text


def _typed(row: dict[str, Any], fields: Any, side: str) -> dict[str, Any]:  # noqa: ANN401
    """The row with its numbers as what the schema says they are."""
    if side:
        inner = (f.get("fields") for f in _objects(fields) if f.get("field") == side)
        fields = next(inner, None)
    names = {str(field.get("field")): field for field in _objects(fields)}
    if not any(str(field.get("name")) in _MEANINGS for field in names.values()):
        return row
    return {name: _meant(value, names.get(name)) for name, value in row.items()}


def _objects(found: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Of a list; nothing where a schema has something else there."""
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _meant(value: Any, field: Mapping[str, Any] | None) -> Any:  # noqa: ANN401
    convert = _MEANINGS.get(str(field.get("name"))) if field else None
    if convert is None or value is None or field is None:
        return value
    try:
        return convert(value, field)
    except (ValueError, TypeError, ArithmeticError, KeyError) as error:
        raise BadChangeError(f"{field.get('field')} is no {field.get('name')}: {error}") from None


def _since(unit: str) -> Callable[[Any, Mapping[str, Any]], str]:
    def convert(value: Any, _: Mapping[str, Any]) -> str:  # noqa: ANN401
        return (_EPOCH + timedelta(**{unit: value})).isoformat()

    return convert


def _days(value: Any, _: Mapping[str, Any]) -> str:  # noqa: ANN401
    return (date(1970, 1, 1) + timedelta(days=value)).isoformat()


def _nanoseconds(value: Any, _: Mapping[str, Any]) -> str:  # noqa: ANN401
    return (_EPOCH + timedelta(microseconds=value // 1000)).isoformat()


def _decimal(value: Any, field: Mapping[str, Any]) -> str:  # noqa: ANN401
    unscaled = int.from_bytes(base64.b64decode(value, validate=True), "big", signed=True)
    return str(Decimal(unscaled).scaleb(-int(field["parameters"]["scale"])))


_MEANINGS: Final[Mapping[str, Callable[[Any, Mapping[str, Any]], str]]] = {
    "io.debezium.time.Date": _days,
    "org.apache.kafka.connect.data.Date": _days,
    "io.debezium.time.Timestamp": _since("milliseconds"),
    "org.apache.kafka.connect.data.Timestamp": _since("milliseconds"),
    "io.debezium.time.MicroTimestamp": _since("microseconds"),
    "io.debezium.time.NanoTimestamp": _nanoseconds,
    "org.apache.kafka.connect.data.Decimal": _decimal,
}


def _text(value: Mapping[str, Any], *, sort: bool = False) -> str:
    return json.dumps(value, sort_keys=sort, separators=(",", ":"), ensure_ascii=False)


def _shown(value: Any) -> str:  # noqa: ANN401
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
