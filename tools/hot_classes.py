"""The C struct behind each message of a hot API: its fields, and the ways to make one.

A Python class inherits from it (`wire/schema.py`), so that a message is made without a call of
Python code: by a codec with `make_...`, and by a handler, which names the fields it gives, with
`quick_...`. That compares names by their address; Python's own way through a dictionary and
`__init__` takes five times as long (ADR 50). So does `get_...`, which a handler that is compiled
asks for each field.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from runnel.wire.apis import ApiKey, request_type, response_type
from runnel.wire.schema import Field, Kind, schema_of


def classes_of(api: ApiKey) -> Iterator[type[Any]]:
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


def c_name(cls: type[Any]) -> str:
    return f"C_{cls.__module__.rpartition('.')[2]}_{cls.__name__}"


def base(cls: type[Any]) -> str:
    """A C struct with the fields; `__init__` as the Python class would have it."""
    fields = schema_of(cls).fields
    name, visible = c_name(cls), "readonly" if _is_frozen(cls) else "public"
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
        *_quick_getter(name, fields),
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
        if default(field) != "None":  # which is what a bare one has
            yield f"    if not stated & {1 << number}: made.{field.name} = {default(field)}"
    yield "    return made"


def _quick_getter(name: str, fields: tuple[Field, ...]) -> Iterator[str]:
    """How the class is asked for an attribute: nearly always it is a field."""
    yield f"cdef object get_{name}(object asked, PyObject *name):"
    yield f"    cdef {name} message = <{name}>asked"
    for number, field in enumerate(fields):
        yield f"    {'elif' if number else 'if'} name == <PyObject *>name_{field.name}:"
        yield f"        return message.{field.name}"
    yield "    return PyObject_GenericGetAttr(asked, name)"


def _is_shared(field: Field) -> bool:
    """Its default is an object of the declaration, known when the class is adopted."""
    return field.default_factory is None and field.kind.name == "struct" and bool(field.default)


def _shared(field: Field) -> str:
    return f"default_{c_name(field.kind.item)}_of_{field.name}"


def default(field: Field) -> str:
    if _is_shared(field):
        return _shared(field)
    return repr(field.default) if field.default_factory is None else "[]"


def _parameter(field: Field) -> str:
    return "ABSENT" if field.default_factory or _is_shared(field) else repr(field.default)


def adoption(classes: Iterable[type[Any]]) -> str:
    """What `wire/schema.py` asks: which bases there are, and to take note of the real class."""
    bases = [f"    ({cls.__module__!r}, {cls.__name__!r}): {c_name(cls)}," for cls in classes]
    stated: list[str] = []  # `global` may not stand between an `if` and its `elif`
    branches: list[str] = []
    for cls in classes:
        name = c_name(cls)
        shared = [field for field in schema_of(cls).fields if _is_shared(field)]
        stated.append(f"    global {', '.join([f'type_of_{name}', *map(_shared, shared)])}")
        branches += [
            f"    {'elif' if branches else 'if'} issubclass(made, {name}):",
            f"        Py_INCREF(made); type_of_{name} = <PyTypeObject *>made",
            f"        be_quick(made, quick_{name}, get_{name})",
            *(f"        {_shared(field)} = defaults[{field.name!r}]" for field in shared),
        ]
    head = "def adopt(made, defaults):"
    return "\n".join(["bases = {", *bases, "}", "", head, *stated, *branches]) + "\n"
