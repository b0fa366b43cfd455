"""Writes the Cython source of the codecs that every produce, fetch, commit and heartbeat uses.

The same declarations and the same emitters as at run time (`wire/reading.py`, `wire/writing.py`):
what changes here is how a run of fixed-size values, a text or a view is taken from bytes, which in
C is a load and a swap instead of a call. `setup.py` asks for the text when it builds a wheel;
without a compiler the codecs are made of the same declarations in Python, at first use.

For each message class a C struct with its fields is declared, from which the Python class then
inherits (`wire/schema.py`), so that a message is made without a call of Python code. A handler that
names the fields it gives makes one by `quick_...`, which compares names by their address: Python's
own way through a dictionary and `__init__` takes five times as long.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from runnel.wire.apis import ApiKey, request_type, response_type
from runnel.wire.primitives import ELEMENTS_MAX, STRING_MAX
from runnel.wire.reading import Reader
from runnel.wire.schema import Field, Kind, schema_of
from runnel.wire.writing import Writer

HOT_APIS = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.OFFSET_COMMIT,
    ApiKey.HEARTBEAT,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
)
FUNCTION = "__FUNCTION__"

PREAMBLE = f'''# cython: language_level=3, boundscheck=False, wraparound=False, binding=False
# cython: c_line_in_traceback=False
"""Written by tools/hot_codecs.py for a build; never edited by hand, never committed."""

from struct import error as struct_error, pack, unpack_from

from cpython.buffer cimport Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from runnel.errors import WireError
from runnel.wire.primitives import (
    VersionError, ensure_tag_count, ensure_text, read_bytes, read_uvarint, refuse_array,
    refuse_null, refuse_size, skip_tags,
)
cdef extern from *:
    """
    static inline uint16_t swap16(uint16_t v) {{ return __builtin_bswap16(v); }}
    static inline uint32_t swap32(uint32_t v) {{ return __builtin_bswap32(v); }}
    static inline uint64_t swap64(uint64_t v) {{ return __builtin_bswap64(v); }}
    static PyObject *bare(PyTypeObject *type, PyObject *nothing) {{
        return type->tp_new(type, nothing, NULL);
    }}
    typedef PyObject *(*maker)(PyObject *, PyObject **, size_t, PyObject *);
    static void make_quickly(PyObject *type, maker make) {{
        ((PyTypeObject *)type)->tp_vectorcall = (vectorcallfunc)make;
    }}
    """
    ctypedef object (*maker)(object, PyObject **, size_t, PyObject *)
    void make_quickly(object, maker)
    Py_ssize_t PyVectorcall_NARGS(size_t)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *)
    PyObject *PyTuple_GET_ITEM(PyObject *, Py_ssize_t)
    uint16_t swap16(uint16_t)
    uint32_t swap32(uint32_t)
    uint64_t swap64(uint64_t)
    object bare(PyTypeObject *, object)

ABSENT = object()
READABLE = (bytes, bytearray, memoryview)
BAD_BYTES = (WireError, struct_error, IndexError, UnicodeDecodeError)
cdef tuple NOTHING = ()
reads = {{}}
writes = {{}}


cdef object slowly(object cls, PyObject **given, size_t flagged_count, PyObject *names):
    """As if there were no quick way: by position, by a name that is not interned, or wrongly."""
    cdef Py_ssize_t count = PyVectorcall_NARGS(flagged_count), index
    positional = tuple([<object>given[index] for index in range(count)])
    named = {{}}
    if names is not NULL:
        for index in range(PyTuple_GET_SIZE(names)):
            named[<object>PyTuple_GET_ITEM(names, index)] = <object>given[count + index]
    return type.__call__(cls, *positional, **named)


cdef inline int8_t get_b(const uint8_t *p): return <int8_t>p[0]
cdef inline uint8_t get_B(const uint8_t *p): return p[0]
cdef inline int16_t get_h(const uint8_t *p):
    cdef uint16_t v
    memcpy(&v, p, 2)
    return <int16_t>swap16(v)
cdef inline int32_t get_i(const uint8_t *p):
    cdef uint32_t v
    memcpy(&v, p, 4)
    return <int32_t>swap32(v)
cdef inline int64_t get_q(const uint8_t *p):
    cdef uint64_t v
    memcpy(&v, p, 8)
    return <int64_t>swap64(v)

cdef inline uint8_t *grown(bytearray out, Py_ssize_t more) except NULL:
    cdef Py_ssize_t size = PyByteArray_GET_SIZE(out)
    PyByteArray_Resize(out, size + more)
    return <uint8_t *>PyByteArray_AS_STRING(out) + size
cdef int write_uvarint(bytearray out, uint64_t value) except -1:
    cdef uint8_t encoded[10]
    cdef int size = 0
    while value > 0x7F:
        encoded[size] = <uint8_t>(value & 0x7F | 0x80); size += 1
        value >>= 7
    encoded[size] = <uint8_t>value; size += 1
    memcpy(grown(out, size), encoded, size)
    return 0
cdef inline void put_b(uint8_t *p, int8_t v): p[0] = <uint8_t>v
cdef inline void put_B(uint8_t *p, uint8_t v): p[0] = v
cdef inline void put_h(uint8_t *p, int16_t v):
    cdef uint16_t swapped = swap16(<uint16_t>v)
    memcpy(p, &swapped, 2)
cdef inline void put_i(uint8_t *p, int32_t v):
    cdef uint32_t swapped = swap32(<uint32_t>v)
    memcpy(p, &swapped, 4)
cdef inline void put_q(uint8_t *p, int64_t v):
    cdef uint64_t swapped = swap64(<uint64_t>v)
    memcpy(p, &swapped, 8)

cdef str text(const uint8_t *data, Py_ssize_t size, Py_ssize_t left):
    if size < 0:
        refuse_null(None, 0)
    if size > {STRING_MAX}:
        raise WireError(f"string of {{size}} bytes")
    if size > left:
        refuse_size(size, left)
    return PyUnicode_DecodeUTF8(<const char *>data, size, NULL)

def text_at(object buffer, Py_ssize_t start, Py_ssize_t size):
    cdef Py_buffer held
    PyObject_GetBuffer(buffer, &held, PyBUF_SIMPLE)
    try:
        return text(<const uint8_t *>held.buf + start, size, held.len - start)
    finally:
        PyBuffer_Release(&held)
'''


def source() -> str:
    """The whole text of `runnel/wire/_hot.pyx`."""
    text = [PREAMBLE]
    classes = {cls: None for api in HOT_APIS for cls in _classes_of(api)}
    names = {field.name: None for cls in classes for field in schema_of(cls).fields}
    text += [f'cdef str name_{name} = "{name}"' for name in names]  # as interned as a caller's
    text += [_base(cls) for cls in classes]
    text += [_adoption(classes)]
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


def _classes_of(api: ApiKey) -> Iterator[type[Any]]:
    for cls in (request_type(api), response_type(api)):
        yield from _parts_of(cls)


def _parts_of(cls: type[Any]) -> Iterator[type[Any]]:
    for field in schema_of(cls).fields:
        item = field.kind.item
        if isinstance(item, Kind):
            item = item.item
        if item is not None:
            yield from _parts_of(item)
    yield cls


def _is_frozen(cls: type[Any]) -> bool:
    return cls.__hash__ is not None


def _c_name(cls: type[Any]) -> str:
    return f"C_{cls.__module__.rpartition('.')[2]}_{cls.__name__}"


def _base(cls: type[Any]) -> str:
    """A C struct with the fields; `__init__` as the Python class would have it."""
    fields = schema_of(cls).fields
    name, visible = _c_name(cls), "readonly" if _is_frozen(cls) else "public"
    lines = [
        *(f"cdef object {_shared(field)} = None" for field in fields if _is_shared(field)),
        f"cdef class {name}:",
        *(f"    cdef {visible} object {field.name}" for field in fields),
        f"    def __init__(self, {', '.join(f'{f.name}={_parameter(f)}' for f in fields)}):",
    ]
    for field in fields:
        value = field.name
        if field.default_factory is not None:
            assert field.default_factory is list, f"{name}.{field.name}"
            value = f"[] if {value} is ABSENT else {value}"
        elif _is_shared(field):
            value = f"{_shared(field)} if {value} is ABSENT else {value}"
        lines.append(f"        self.{field.name} = {value}")
    lines += [
        f"cdef PyTypeObject *type_of_{name} = NULL",
        f"cdef inline {name} make_{name}({', '.join(f'object {f.name}' for f in fields)}):",
        f"    cdef {name} made = <{name}>bare(type_of_{name}, NOTHING)",
        *(f"    made.{field.name} = {field.name}" for field in fields),
        "    return made",
        *_quick_maker(name, fields),
    ]
    return "\n".join(lines) + "\n"


def _quick_maker(name: str, fields: tuple[Field, ...]) -> Iterator[str]:
    """What the class itself is when it is called: see `slowly` for what it does not do."""
    signature = "object cls, PyObject **given, size_t flagged_count, PyObject *names"
    yield f"cdef object quick_{name}({signature}):"
    yield f"    cdef {name} made"
    yield "    cdef PyObject *field"
    yield "    cdef Py_ssize_t index"
    yield "    cdef uint64_t stated = 0"
    yield "    if PyVectorcall_NARGS(flagged_count):"
    yield "        return slowly(cls, given, flagged_count, names)"
    yield f"    made = <{name}>bare(type_of_{name}, NOTHING)"
    yield "    if names is not NULL:"
    yield "        for index in range(PyTuple_GET_SIZE(names)):"
    yield "            field = PyTuple_GET_ITEM(names, index)"
    assert len(fields) < 64, name
    for number, field in enumerate(fields):
        yield f"            {'elif' if number else 'if'} field == <PyObject *>name_{field.name}:"
        yield f"                made.{field.name} = <object>given[index]; stated |= {1 << number}"
    yield "            else: return slowly(cls, given, flagged_count, names)"
    for number, field in enumerate(fields):
        if _default(field) != "None":  # which is what a bare one has
            yield f"    if not stated & {1 << number}: made.{field.name} = {_default(field)}"
    yield "    return made"


def _is_shared(field: Field) -> bool:
    """Its default is an object of the declaration, known when the class is adopted."""
    return field.default_factory is None and field.kind.name == "struct" and bool(field.default)


def _shared(field: Field) -> str:
    return f"default_{_c_name(field.kind.item)}_of_{field.name}"


def _default(field: Field) -> str:
    if _is_shared(field):
        return _shared(field)
    return repr(field.default) if field.default_factory is None else "[]"


def _parameter(field: Field) -> str:
    return "ABSENT" if field.default_factory or _is_shared(field) else repr(field.default)


def _adoption(classes: Iterable[type[Any]]) -> str:
    """What `wire/schema.py` asks: which bases there are, and to take note of the real class."""
    bases = [f"    ({cls.__module__!r}, {cls.__name__!r}): {_c_name(cls)}," for cls in classes]
    stated: list[str] = []  # `global` may not stand between an `if` and its `elif`
    branches: list[str] = []
    for cls in classes:
        name = _c_name(cls)
        shared = [field for field in schema_of(cls).fields if _is_shared(field)]
        stated.append(f"    global {', '.join([f'type_of_{name}', *map(_shared, shared)])}")
        branches += [
            f"    {'elif' if branches else 'if'} issubclass(made, {name}):",
            f"        Py_INCREF(made); type_of_{name} = <PyTypeObject *>made",
            f"        make_quickly(made, quick_{name})",
            *(f"        {_shared(field)} = defaults[{field.name!r}]" for field in shared),
        ]
    head = "def adopt(made, defaults):"
    return "\n".join(["bases = {", *bases, "}", "", head, *stated, *branches]) + "\n"


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
        return _default(field)

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
        return f"make_{_c_name(cls)}({', '.join(arguments)})"

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
        head = f"def {FUNCTION}(bytearray out, {_c_name(message)} message, list parts):"
        place = "    cdef uint8_t *at"
        text = writer.text().replace(f"{schema.name} v{version}", schema.name)
        return "\n".join([head, place, *declared]) + text

    def holder(self, stem: str, cls: object) -> str:
        name = self.fresh(stem)
        if isinstance(cls, type):
            self.typed.append(f"    cdef {_c_name(cls)} {name}")
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
        return _default(field)


if __name__ == "__main__":
    print(source())
