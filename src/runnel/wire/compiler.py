"""One codec per message and version, compiled from the declaration when it is first asked for."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from runnel.ports import Readable
from runnel.types import FileSlice
from runnel.wire import hot
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
    read = hot.reads.get((schema.name, version))
    if read is None:
        source, namespace = read_source(schema, cls, version)
        exec(compile(source, f"<read {where}>", "exec"), namespace)
        read = namespace["read"]
    write_into = hot.writes.get((schema.name, version))
    if write_into is None:
        source, namespace = write_source(schema, version)
        exec(compile(source, f"<write {where}>", "exec"), namespace)
        write_into = namespace["write_into"]

    def write(message: M) -> bytearray:
        parts: list[Part] = []
        out: bytearray = write_into(bytearray(), message, parts)
        assert not parts, f"{where} holds a file slice: write it with write_into"
        return out

    return Codec(read, write, write_into)
