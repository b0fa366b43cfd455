"""Rows as they are read, made into rows as SQL shows them: bytes as text, Avro as columns.

The order of columns is one for scans: DuckDB takes the first for `count(*)`, and `partition` is one
that costs nothing. Views put them into the order that people see.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

ORDER: Final = (
    "partition",
    "topic",
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
)
READ_AS: Final = {"timestamp_type": "timestampType"}
TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")


class Fields(Protocol):
    """Who makes columns of values; those that are bad are null in all of them."""

    @property
    def schema(self) -> "pa.Schema": ...

    def decode(self, values: "pa.Array", names: Sequence[str]) -> "list[pa.Array]": ...


class Presenter:
    """Of one topic: what each column is, and how it comes of what is read."""

    def __init__(
        self,
        *,
        key_is_text: bool,
        value_is_text: bool,
        fields: Fields | None = None,
        value_from: int = 0,
        taking: Sequence[str] | None = None,
        tell: Callable[[str], None],
    ) -> None:
        """`value_from` is where the value begins, after what a registry's clients put before it."""
        import pyarrow as pa

        self._texts = {"key": key_is_text, "value": value_is_text}
        self._fields, self._value_from, self._tell = fields, value_from, tell
        own = () if fields is None else tuple(fields.schema.names)
        names = (*ORDER, *own) if taking is None else tuple(taking)
        self.schema = pa.schema([self._field(name) for name in names])
        self._decoded = [name for name in names if name in own]
        direct = [READ_AS.get(name, name) for name in names if name not in own]
        more = ["value"] if self._decoded and "value" not in direct else []
        self.taken = (*direct, *more)

    def taking(self, names: Sequence[str]) -> "Presenter":
        """The same with these columns only."""
        return Presenter(
            key_is_text=self._texts["key"],
            value_is_text=self._texts["value"],
            fields=self._fields,
            value_from=self._value_from,
            taking=names,
            tell=self._tell,
        )

    def shown(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        import pyarrow as pa

        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if self._decoded and self._fields is not None:
            made = self._fields.decode(columns["value"], self._decoded)
            columns |= dict(zip(self._decoded, made, strict=True))
        arrays = [self._shown(field.name, columns) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _shown(self, name: str, columns: "dict[str, pa.Array]") -> "pa.Array":
        import pyarrow as pa

        column = columns[READ_AS.get(name, name)]
        if name == "timestamp_type":
            return pa.array(TIMESTAMP_TYPES).take(column)
        if name == "value" and self._value_from:
            column = _cut(column, self._value_from)
        if self._texts.get(name):
            return self._text(name, column)
        return column

    def _text(self, name: str, column: "pa.Array") -> "pa.Array":
        import pyarrow as pa

        text = column.view(pa.string())
        try:
            text.validate(full=True)
        except pa.ArrowInvalid:
            self._tell(f"a {name} is not UTF-8: its other bytes are shown as \\xNN")
            return pa.array([_escaped(raw) for raw in column.to_pylist()], pa.string())
        return text

    def _field(self, name: str) -> "pa.Field":
        import pyarrow as pa

        if self._fields is not None and name in self._fields.schema.names:
            return self._fields.schema.field(name)
        if name in self._texts:
            return pa.field(name, pa.string() if self._texts[name] else pa.binary())
        header = pa.struct([("key", pa.string()), ("value", pa.binary())])
        kinds = {
            "partition": pa.int32(),
            "topic": pa.string(),
            "offset": pa.int64(),
            "timestamp": pa.timestamp("us", tz="UTC"),
            "timestamp_type": pa.string(),
            "headers": pa.list_(pa.field("element", header)),
        }
        return pa.field(name, kinds[name])


def _escaped(raw: bytes | None) -> str | None:
    """As DuckDB writes bytes: what is text as it is, the others as \\xNN."""
    if raw is None:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02X}" for byte in raw)


def _cut(column: "pa.Array", first: int) -> "pa.Array":
    import pyarrow.compute as pc

    return pc.binary_slice(column, first)
