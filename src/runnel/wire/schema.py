"""Messages are declared once for all versions, with Kafka's names, defaults and version ranges.

A declaration is data: `compiler.codec_for` turns it into code for one version. At run time a
message is a slotted class whose `__init__` takes its fields by position, each with a default, so
that compiled code builds it in one call; to the type checker it is a keyword-only dataclass, and
`acks: str = wire(INT16)` is an error. The standard library's dataclass is not used: importing it
and making hundreds of classes with it would take most of the time a broker has to start.

Rules: a version range is half-open, a `range`. Outside its versions a field reads as its default.
A UUID is its 16 raw bytes. Record bytes that were read are a view, borrowed from the frame.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast, dataclass_transform

from runnel.ports import Readable
from runnel.types import FileSlice
from runnel.wire import hot

T = TypeVar("T")
M = TypeVar("M")

Records = Readable | FileSlice
ALWAYS: Final = 2**15 - 1  # an int16 on the wire; no message has so many versions
NEVER: Final = range(0)


class Kind(Generic[T]):
    """A type on the wire; `T` is what it is in Python.

    `code` is the `struct` code of a type of fixed size, else empty. `item` is the element of an
    array, or the class of a struct.
    """

    __slots__ = ("code", "item", "name", "nullable")

    def __init__(
        self, name: str, code: str = "", item: object = None, nullable: range = NEVER
    ) -> None:
        self.name = name
        self.code = code
        self.item: Any = item
        self.nullable = nullable

    def __repr__(self) -> str:
        return f"Kind({self.name!r}, {self.item!r})" if self.item else f"Kind({self.name!r})"


BOOL: Final[Kind[bool]] = Kind("bool", "?")
INT8: Final[Kind[int]] = Kind("int8", "b")
INT16: Final[Kind[int]] = Kind("int16", "h")
INT32: Final[Kind[int]] = Kind("int32", "i")
INT64: Final[Kind[int]] = Kind("int64", "q")
UINT16: Final[Kind[int]] = Kind("uint16", "H")
UINT32: Final[Kind[int]] = Kind("uint32", "I")
FLOAT64: Final[Kind[float]] = Kind("float64", "d")
UUID: Final[Kind[bytes]] = Kind("uuid", "16s")
STRING: Final[Kind[str]] = Kind("string")
BYTES: Final[Kind[bytes]] = Kind("bytes")
RECORDS: Final[Kind[Readable]] = Kind("records")  # of a request
RESPONSE_RECORDS: Final[Kind[Records]] = Kind("records")  # may stay in their file until sent


def nullable(kind: Kind[T], *, since: int = 0, until: int = ALWAYS) -> Kind[T | None]:
    """The same type, where None is allowed from version `since` to version `until`, inclusive."""
    return Kind(kind.name, kind.code, kind.item, range(since, until + 1))


def array_of(item: Kind[T] | type[T]) -> Kind[list[T]]:
    return Kind("array", item=item if isinstance(item, Kind) else struct_of(item))


def struct_of(item: type[M]) -> Kind[M]:
    return Kind("struct", item=item)


class Field(NamedTuple):
    name: str
    kind: Kind[Any]
    versions: range
    tag: int  # its number among the tagged fields, or -1
    default: Any  # the shared value, or `FRESH`
    default_factory: Callable[[], Any] | None
    ignorable: bool  # a value that a version cannot carry is dropped, not refused
    flexible: bool  # False: encoded the old way even in flexible versions


class Schema(NamedTuple):
    """What a class declares. `__wire__` of the class holds it."""

    name: str
    fields: tuple[Field, ...]
    api_key: int | None = None  # also the number that starts a coordinator's key
    versions: range = NEVER
    flexible_since: int = ALWAYS

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible_since

    @property
    def latest_version(self) -> int:
        return self.versions[-1]


class _Fresh:
    """Stands for a default that is made anew for each message."""

    def __repr__(self) -> str:
        return "FRESH"


FRESH: Final[Any] = _Fresh()


def wire(
    kind: Kind[T],
    *,
    default: T = FRESH,
    default_factory: Callable[[], T] | None = None,
    since: int = 0,
    until: int = ALWAYS,
    tag: int = -1,
    ignorable: bool = False,
    flexible: bool = True,
) -> T:
    """Declare a field, present from version `since` to version `until`, inclusive."""
    versions = range(since, until + 1)
    return cast(T, Field("", kind, versions, tag, default, default_factory, ignorable, flexible))


@dataclass_transform(kw_only_default=True, field_specifiers=(wire,))
def message(
    *, versions: tuple[int, int], flexible_since: int | None = None, api_key: int | None = None
) -> Callable[[type[M]], type[M]]:
    """Declare a message: the root of what is read or written. `versions` are first and last."""
    first, last = versions
    flexible = ALWAYS if flexible_since is None else flexible_since

    def declare(cls: type[M]) -> type[M]:
        schema = Schema(cls.__name__, _fields(cls), api_key, range(first, last + 1), flexible)
        return _slotted(cls, schema, frozen=False)

    return declare


@dataclass_transform(kw_only_default=True, field_specifiers=(wire,))
def struct(cls: type[M]) -> type[M]:
    """Declare a part of a message; it follows the versions of the message it stands in."""
    return _slotted(cls, Schema(cls.__name__, _fields(cls)), frozen=False)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(wire,))
def frozen_struct(cls: type[M]) -> type[M]:
    """A struct that never changes, so that one instance can be the default of every message."""
    return _slotted(cls, Schema(cls.__name__, _fields(cls)), frozen=True)


def schema_of(cls: type[Any]) -> Schema:
    schema: Schema = cls.__wire__
    return schema


def _fields(cls: type[Any]) -> tuple[Field, ...]:
    return tuple(
        value._replace(name=name) for name, value in vars(cls).items() if isinstance(value, Field)
    )


def _slotted(cls: type[M], schema: Schema, *, frozen: bool) -> type[M]:
    names = tuple(field.name for field in schema.fields)
    body = {name: value for name, value in vars(cls).items() if name not in names}
    for name in ("__dict__", "__weakref__"):
        body.pop(name, None)
    values = attrgetter(*names) if names else lambda _message: ()
    body |= {
        "__slots__": names,
        "__wire__": schema,
        "__init__": _initializer(schema.fields, frozen=frozen),
        "__eq__": lambda self, other: (
            values(self) == values(other) if type(self) is type(other) else NotImplemented
        ),
        "__hash__": (lambda self: hash(values(self))) if frozen else None,
        "__repr__": lambda self: (
            f"{schema.name}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"
        ),
    }
    if frozen:
        body["__setattr__"] = _refuse_change
    base = hot.bases.get((cls.__module__, cls.__name__))
    if base is None:
        return cast(type[M], type(cls.__name__, cls.__bases__, body))
    del body["__init__"]
    made = type(cls.__name__, (base,), body | {"__slots__": ()})
    hot.adopt(made, {field.name: field.default for field in schema.fields})
    return cast(type[M], made)


def _refuse_change(self: object, name: str, _value: object) -> None:
    raise AttributeError(f"{type(self).__name__} is shared and never changes: {name}")


def _initializer(fields: tuple[Field, ...], *, frozen: bool) -> Callable[..., None]:
    namespace: dict[str, Any] = {"FRESH": FRESH, "set_slot": object.__setattr__}
    parameters, lines = ["self"], ["    pass"]
    for field in fields:
        name, value = field.name, field.name
        namespace[f"default_{name}"] = field.default
        parameters.append(f"{name}=default_{name}")
        if field.default_factory is not None:
            namespace[f"make_{name}"] = field.default_factory
            value = f"make_{name}() if {name} is FRESH else {name}"
        lines.append(
            f"    set_slot(self, {name!r}, {value})" if frozen else f"    self.{name} = {value}"
        )
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines), namespace)
    initializer: Callable[..., None] = namespace["__init__"]
    return initializer
