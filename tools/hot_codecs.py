"""Writes the Cython source of the codecs that every produce, fetch, commit and heartbeat uses.

The same declarations and the same emitters as at run time (`wire/reading.py`, `wire/writing.py`):
what changes here is how a run of fixed-size values, a text or a view is taken from bytes, which in
C is a load and a swap instead of a call. `setup.py` asks for the text when it builds a wheel;
without a compiler the codecs are made of the same declarations in Python, at first use.

What is the same for all of them is `hot_preamble.pyx`, the messages themselves `hot_classes.py`.
"""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runnel.wire.apis import ApiKey, request_type, response_type
from runnel.wire.primitives import CLIENT_ID_BYTES_MAX, ELEMENTS_MAX, STRING_MAX
from runnel.wire.reading import Reader
from runnel.wire.schema import Field, Kind, schema_of
from runnel.wire.writing import Writer
from tools.hot_classes import adoption, base, c_name, classes_of, default

HOT_APIS = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.OFFSET_COMMIT,
    ApiKey.HEARTBEAT,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
)
FUNCTION = "__FUNCTION__"

PREAMBLE = Path(__file__).with_name("hot_preamble.pyx")


def source() -> str:
    """The whole text of `runnel/wire/_hot.pyx`."""
    preamble = PREAMBLE.read_text().replace("$STRING_MAX", str(STRING_MAX))
    text = [preamble.replace("$CLIENT_ID_MAX", str(CLIENT_ID_BYTES_MAX))]
    classes = {cls: None for api in HOT_APIS for cls in classes_of(api)}
    names = {field.name: None for cls in classes for field in schema_of(cls).fields}
    text += [f'cdef str name_{name} = "{name}"' for name in names]  # as interned as a caller's
    text += [base(cls) for cls in classes]
    text += [adoption(classes)]
    for api in HOT_APIS:
        text += _functions("reads", request_type(api), CReader.function)
        text += _functions("writes", response_type(api), CWriter.function)
    return "\n".join(text)


def _functions(kept_in: str, cls: type[Any], emit: Callable[[type[Any], int], str]) -> list[str]:
    """One function for all versions that look the same."""
    versions: dict[str, list[int]] = {}
    for version in schema_of(cls).versions:
        versions.setdefault(emit(cls, version), []).append(version)
    text = []
    for function, same in versions.items():
        name = f"{kept_in}_{cls.__name__}_{same[0]}"
        text.append(function.replace(FUNCTION, name))
        text += [f"{kept_in}[{cls.__name__!r}, {version}] = {name}" for version in same]
    return text


class CReader(Reader):
    """Reads with a pointer into the frame; bounds are checked once for a run of values."""

    @classmethod
    def function(cls, message: type[Any], version: int) -> str:
        schema = schema_of(message)
        reader = cls(version, schema.is_flexible(version), {})
        with reader.block(""), reader.block(""), reader.block(""):
            made = reader.struct(message)
            reader.line(f"return {made}, position")
        numbers = ", ".join(["limit", "end", "budget", "_", *reader.numbers])
        return f"""
def {FUNCTION}(object buffer, Py_ssize_t position):
    cdef Py_ssize_t {numbers}
    cdef Py_buffer held
    cdef const uint8_t *data
    if type(buffer) is not memoryview: buffer = memoryview(buffer)
    PyObject_GetBuffer(buffer, &held, PyBUF_SIMPLE)
    try:
        data, limit, budget = <const uint8_t *>held.buf, held.len, {ELEMENTS_MAX}
        try:{reader.text()}
        except BAD_BYTES as error:
            raise WireError(f"{schema.name}, byte {{position}}: {{error}}") from error
    finally:
        PyBuffer_Release(&held)
"""

    def default(self, field: Field) -> str:
        return default(field)

    def flush(self) -> None:
        if not self._run:
            return
        size = struct.calcsize(">" + "".join(code for _, code in self._run))
        self.line(f"if limit - position < {size}: refuse_size({size}, limit - position)")
        at = 0
        for variable, code in self._run:
            place = f"data + position + {at}"
            read = f"get_{code}({place})"
            if code == "16s":
                read = f"PyBytes_FromStringAndSize(<const char *>{place}, 16)"
            self.line(f"{variable} = {read}")
            at += struct.calcsize(">" + code)
        self.line(f"position += {size}")
        self._run = []

    def make(self, cls: type[Any], arguments: list[str], _kept: int) -> str:
        return f"make_{c_name(cls)}({', '.join(arguments)})"

    def content(self, kind: Kind[Any], variable: str, size: str, flexible: bool) -> None:
        if kind.name == "records":
            self.records(variable, size, flexible)
            return
        self._size(size, flexible)
        if kind.name == "string":
            self.line(f"{variable} = text(data + position, {size}, limit - position)")
            self.line(f"position += {size}")
        else:
            self.line(f"{variable}, position = read_bytes(buffer, position, {size})")

    def records(self, variable: str, size: str, flexible: bool) -> None:
        self._size(size, flexible)
        self.line(f"end = position + {size}")
        self.line(f"if end > limit or {size} < 0: refuse_size({size}, limit - position)")
        self.line(f"{variable} = buffer[position:end]; position = end")

    def _size(self, size: str, flexible: bool) -> None:
        if not flexible:
            return
        with self.block(f"if {size} > 127:"):
            with self.block("if position < limit and data[position] < 128:"):
                self.line(f"{size} += (<Py_ssize_t>data[position] << 7) - 128; position += 1")
            with self.block("else:"):
                self.line(f"{size}, position = read_uvarint(buffer, position - 1)")
        self.line(f"{size} -= 1")


class CWriter(Writer):
    """Writes into the bytearray's own memory; what a run takes is known before."""

    def __init__(self, name: str, version: int, flexible: bool) -> None:
        super().__init__(name, version, flexible, {})
        self.typed: list[str] = []

    @classmethod
    def function(cls, message: type[Any], version: int) -> str:
        schema = schema_of(message)
        writer = cls(schema.name, version, schema.is_flexible(version))
        with writer.block(""):
            writer.fields(schema, "message")
            writer.flush()
            writer.line("return out")
        declared = [f"    cdef Py_ssize_t {number}" for number in writer.numbers] + writer.typed
        head = f"def {FUNCTION}(bytearray out, {c_name(message)} message, list parts):"
        place = "    cdef uint8_t *at"
        text = writer.text().replace(f"{schema.name} v{version}", schema.name)
        return "\n".join([head, place, *declared]) + text

    def holder(self, stem: str, cls: object) -> str:
        name = self.fresh(stem)
        if isinstance(cls, type):
            self.typed.append(f"    cdef {c_name(cls)} {name}")
        return name

    def line_of_run(self) -> None:
        if not self._run:
            return
        size = struct.calcsize(">" + "".join(code for _, code in self._run))
        self.line(f"at = grown(out, {size})")
        offset = 0
        for expression, code in self._run:
            if code == "16s":
                self.line(f"memcpy(at + {offset}, <const char *><bytes>{expression}, 16)")
            elif code == "x":
                self.line(f"at[{offset}] = 0")
            else:
                self.line(f"put_{code}(at + {offset}, {expression})")
            offset += struct.calcsize(">" + code)

    def default(self, field: Field) -> str:
        return default(field)


if __name__ == "__main__":
    print(source())
