"""One codec per message and version, compiled from the declaration when it is first asked for."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from runnel.ports import Readable
from runnel.types import FileSlice
from runnel.wire.primitives import VersionError
from runnel.wire.reading import read_source
from runnel.wire.schema import schema_of
from runnel.wire.writing import write_source

M = TypeVar("M")
Part = bytearray | FileSlice


class Codec(NamedTuple, Generic[M]):
    """How one version of a message stands in bytes.

    `read(buffer, position)` gives the message and the position after it; it raises `WireError`,
    and nothing else, for bad bytes. The buffer is exactly the frame: its end is the limit.

    `write_into(out, message, parts)` appends to `out`, which may hold a size and a header already,
    and returns the bytearray that is open at the end. Each file slice is appended to `parts` after
    the bytes that precede it, so the reply is `parts` and then what was returned; without slices
    `parts` stays empty.
    """

    read: Callable[[Readable, int], tuple[M, int]]
    write: Callable[[M], bytearray]
    write_into: Callable[[bytearray, M, list[Part]], bytearray]


_codecs: dict[tuple[type[Any], int], Codec[Any]] = {}


def codec_for(cls: type[M], version: int) -> Codec[M]:
    """Raises VersionError if there is no such version of the message."""
    codec = _codecs.get((cls, version))
    if codec is None:
        codec = _codecs[cls, version] = _compile(cls, version)
    return codec


def _compile(cls: type[M], version: int) -> Codec[M]:
    schema = schema_of(cls)
    if version not in schema.versions:
        raise VersionError(f"{schema.name} has no version {version}")
    where = f"{schema.name} v{version}"
    source, reading = read_source(schema, cls, version)
    exec(compile(source, f"<read {where}>", "exec"), reading)
    source, writing = write_source(schema, version)
    exec(compile(source, f"<write {where}>", "exec"), writing)
    write_into: Callable[[bytearray, M, list[Part]], bytearray] = writing["write_into"]

    def write(message: M) -> bytearray:
        parts: list[Part] = []
        out = write_into(bytearray(), message, parts)
        assert not parts, f"{where} holds a file slice: write it with write_into"
        return out

    return Codec(reading["read"], write, write_into)
