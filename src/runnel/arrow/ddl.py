"""Spark's schemas as people write them, read without a JVM: `id BIGINT, tags ARRAY<STRING>`.

PySpark asks the JVM to parse DDL, and the Python processes of a data source have none. JSON, as
`StructType.json()` gives it, is read too.
"""

import json
import re
from typing import TYPE_CHECKING, Final

from runnel.arrow.decoding import DecodeOptionError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

_TOKEN: Final = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|[A-Za-z0-9_]+|[<>(),:])")
_DEPTH_MAX: Final = 50


def struct_type(text: str) -> "StructType":
    """Raises DecodeOptionError, saying where the text cannot be read."""
    from pyspark.sql.types import StructType

    if text.lstrip().startswith("{"):
        try:
            return StructType.fromJson(json.loads(text))
        except (ValueError, KeyError, TypeError) as error:
            raise DecodeOptionError(f"valueSchema is no JSON of a Spark schema: {error}") from None
    found = _Parser(text).whole()
    if not found.fields:
        raise DecodeOptionError("valueSchema has no column: write 'id BIGINT, name STRING'")
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                raise DecodeOptionError(f"valueSchema: {text[position:].strip()[:20]!r} is not DDL")
            self._tokens.append(match[1])
            position = match.end()
        self._at = 0

    def whole(self) -> "StructType":
        first = self._peek().lower()
        if first == "struct" and self._peek(1) == "<":
            self._next()
            self._next()
            found = self._fields(0, ">")
            self._expect(">")
        else:
            found = self._fields(0, "")
        if self._at < len(self._tokens):
            raise self._wrong("the end")
        return found

    def _fields(self, depth: int, closing: str) -> "StructType":
        from pyspark.sql.types import StructType

        fields = []
        while self._peek() != closing:
            fields.append(self._field(depth))
            if self._peek() != ",":
                break
            self._next()
        return StructType(fields)

    def _field(self, depth: int) -> "StructField":
        from pyspark.sql.types import StructField

        name = self._name()
        if self._peek() == ":":
            self._next()
        kind = self._type(depth + 1)
        nullable = True
        if self._peek().lower() == "not":
            self._next()
            if self._next().lower() != "null":
                raise self._wrong("NULL")
            nullable = False
        if self._peek().lower() == "comment":
            self._next()
            self._next()
        return StructField(name, kind, nullable)

    def _type(self, depth: int) -> "DataType":
        from pyspark.sql import types as t

        if depth > _DEPTH_MAX:
            raise DecodeOptionError(f"valueSchema is nested more than {_DEPTH_MAX} deep")
        name = self._next().lower()
        if name in ("decimal", "dec", "numeric"):
            return self._decimal()
        if name == "array":
            self._expect("<")
            item = self._type(depth + 1)
            self._expect(">")
            return t.ArrayType(item)
        if name == "map":
            self._expect("<")
            key = self._type(depth + 1)
            self._expect(",")
            value = self._type(depth + 1)
            self._expect(">")
            return t.MapType(key, value)
        if name == "struct":
            self._expect("<")
            found = self._fields(depth, ">")
            self._expect(">")
            return found
        kinds: dict[str, type[t.DataType]] = {
            **dict.fromkeys(("boolean", "bool"), t.BooleanType),
            **dict.fromkeys(("tinyint", "byte"), t.ByteType),
            **dict.fromkeys(("smallint", "short"), t.ShortType),
            **dict.fromkeys(("int", "integer"), t.IntegerType),
            **dict.fromkeys(("bigint", "long"), t.LongType),
            **dict.fromkeys(("float", "real"), t.FloatType),
            "double": t.DoubleType,
            "string": t.StringType,
            "binary": t.BinaryType,
            "date": t.DateType,
            **dict.fromkeys(("timestamp", "timestamp_ltz"), t.TimestampType),
            "timestamp_ntz": t.TimestampNTZType,
        }
        if name not in kinds:
            self._at -= 1
            raise self._wrong("a type such as BIGINT, STRING, ARRAY<INT> or STRUCT<a: INT>")
        return kinds[name]()

    def _decimal(self) -> "DataType":
        from pyspark.sql.types import DecimalType

        if self._peek() != "(":
            return DecimalType(10, 0)
        self._next()
        precision, scale = self._number(), 0
        if self._peek() == ",":
            self._next()
            scale = self._number()
        self._expect(")")
        if not 0 < precision <= 38 or scale > precision:
            raise DecodeOptionError(f"valueSchema: DECIMAL({precision},{scale}) is not possible")
        return DecimalType(precision, scale)

    def _name(self) -> str:
        token = self._next()
        if token.startswith("`"):
            return token[1:-1].replace("``", "`")
        if not token.replace("_", "a").isalnum():
            self._at -= 1
            raise self._wrong("the name of a column")
        return token

    def _number(self) -> int:
        token = self._next()
        if not token.isdecimal():
            self._at -= 1
            raise self._wrong("a number")
        return int(token)

    def _expect(self, token: str) -> None:
        if self._next() != token:
            self._at -= 1
            raise self._wrong(f"{token!r}")

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _wrong(self, wanted: str) -> DecodeOptionError:
        found = self._peek() or "the end"
        return DecodeOptionError(f"valueSchema={self._text}: {wanted} is wanted, {found} is there")
