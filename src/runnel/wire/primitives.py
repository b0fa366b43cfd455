"""The parts of a message that straight-line code calls: long varints, long texts, unknown tags.

Compiled codecs decode the common case in place (a length below 127, no tagged fields) and come
here for the rest. Every length is checked against what is left in the frame before it is used.
"""

import struct
from collections.abc import Callable
from typing import Final, Never

from runnel.errors import WireError
from runnel.ports import Readable

ELEMENTS_MAX: Final = 200_000  # array elements in one message, whatever their nesting
TAGGED_FIELDS_MAX: Final = 1024  # of one struct; Kafka's own messages have fewer than ten
STRING_MAX: Final = 0x7FFF
CLIENT_ID_BYTES_MAX: Final = 1024
_UVARINT_BITS: Final = 35  # five bytes of seven bits


class VersionError(ValueError):
    """A message holds a value, or is asked for a version, that the protocol cannot express."""


def refuse_null(_buffer: Readable, _position: int) -> Never:
    raise WireError("null where a value must be")


# SHORT_BYTES[n](buffer, position)[0] are the bytes after a compact length byte n: n - 1 of them.
# `struct` checks the bound and is the fastest way to take bytes out of a view.
SHORT_BYTES: Final[list[Callable[[Readable, int], tuple[bytes, ...]]]] = [
    refuse_null,
    *(struct.Struct(f"{size}s").unpack_from for size in range(127)),
]


def read_uvarint(buffer: Readable, position: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes, and the position after it."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift == _UVARINT_BITS:
            raise WireError("varint of more than five bytes")


def read_bytes(buffer: Readable, position: int, size: int) -> tuple[bytes, int]:
    """`size` bytes, copied. A negative size is a null, which the caller has not allowed."""
    end = position + size
    if size < 0 or end > len(buffer):
        raise WireError(f"{size} bytes wanted, {len(buffer) - position} left")
    return bytes(buffer[position:end]), end


def read_text(buffer: Readable, position: int, size: int) -> tuple[str, int]:
    if size > STRING_MAX:
        raise WireError(f"string of {size} bytes")
    raw, end = read_bytes(buffer, position, size)
    return raw.decode(), end


def skip_tags(buffer: Readable, position: int, count: int) -> int:
    """The position after `count` tagged fields that this code does not know."""
    for _ in range(ensure_tag_count(buffer, position, count)):
        _tag, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        position += size
        if position > len(buffer):
            raise WireError(f"tagged field of {size} bytes past the end")
    return position


def skip_tagged_fields(buffer: Readable, position: int) -> int:
    """The position after a whole section of tagged fields. Raises WireError."""
    try:
        count, position = read_uvarint(buffer, position)
        return skip_tags(buffer, position, count) if count else position
    except IndexError:
        raise WireError("tagged fields past the end") from None


def ensure_tag_count(buffer: Readable, position: int, count: int) -> int:
    """A tagged field takes two bytes at least, and no peer of ours sends a thousand."""
    if count > TAGGED_FIELDS_MAX or count * 2 > len(buffer) - position:
        raise WireError(f"{count} tagged fields in {len(buffer) - position} bytes")
    return count


def refuse_array(count: int, left: int) -> Never:
    if count < 0:
        raise WireError(f"array of {count} elements where null is not allowed")
    raise WireError(f"array of {count} elements in {left} bytes, or too many elements in all")


def refuse_size(size: int, left: int) -> Never:
    raise WireError(f"{size} bytes wanted, {left} left")


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def ensure_text(raw: bytes) -> bytes:
    """Kafka refuses longer strings, so they must not be sent."""
    if len(raw) > STRING_MAX:
        raise VersionError(f"string of {len(raw)} bytes; the protocol allows {STRING_MAX}")
    return raw
