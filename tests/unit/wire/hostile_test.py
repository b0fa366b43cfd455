"""Bad bytes give WireError and nothing else, before they cost memory or time.

Lengths are tried on small messages of every type (what must be refused, and what must not), then
on all messages, where any place may be a length: there the point is that nothing else is raised.
"""

import random
import time
import tracemalloc
from collections.abc import Collection
from struct import pack
from typing import Any, Final

import pytest

from runnel.errors import WireError
from runnel.ports import Readable
from runnel.wire.compiler import codec_for
from runnel.wire.messages.api_versions import ApiVersionsRequest
from runnel.wire.messages.fetch import FetchRequest
from runnel.wire.messages.metadata import MetadataRequest
from runnel.wire.messages.produce import ProduceRequest
from runnel.wire.primitives import (
    ELEMENTS_MAX,
    TAGGED_FIELDS_MAX,
    read_uvarint,
    skip_tagged_fields,
    write_uvarint,
)
from runnel.wire.schema import (
    BYTES,
    INT32,
    RECORDS,
    STRING,
    UUID,
    array_of,
    message,
    nullable,
    schema_of,
    struct,
    struct_of,
    wire,
)
from tests.unit.wire.recording import Instance, instances, message_types

INT32_MAX: Final = 2**31 - 1
CUTS: Final = 40  # of one instance
PLACES: Final = 40


@struct
class Element:
    number: int = wire(INT32, default=0)


@message(versions=(0, 1), flexible_since=1)
class Text:
    value: str = wire(STRING, default="")


@message(versions=(0, 1), flexible_since=1)
class NullableText:
    value: str | None = wire(nullable(STRING), default=None)


@message(versions=(0, 1), flexible_since=1)
class Binary:
    value: bytes = wire(BYTES, default=b"")


@message(versions=(0, 1), flexible_since=1)
class NullableBinary:
    value: bytes | None = wire(nullable(BYTES), default=None)


@message(versions=(0, 1), flexible_since=1)
class Batches:
    value: Readable = wire(RECORDS, default=b"")


@message(versions=(0, 1), flexible_since=1)
class NullableBatches:
    value: Readable | None = wire(nullable(RECORDS), default=None)


@message(versions=(0, 1), flexible_since=1)
class Numbers:
    value: list[int] = wire(array_of(INT32), default_factory=list)


@message(versions=(0, 1), flexible_since=1)
class NullableNumbers:
    value: list[int] | None = wire(nullable(array_of(INT32)), default=None)


@message(versions=(0, 1), flexible_since=1)
class Ids:
    value: list[bytes] = wire(array_of(UUID), default_factory=list)


@message(versions=(0, 1), flexible_since=1)
class Texts:
    value: list[str] = wire(array_of(STRING), default_factory=list)


@message(versions=(0, 1), flexible_since=1)
class Elements:
    value: list[Element] = wire(array_of(Element), default_factory=list)


@message(versions=(0, 1), flexible_since=1)
class Tagged:  # declared in another order than that of the tags, which is the order on the wire
    element: Element | None = wire(nullable(struct_of(Element)), default=None, since=1, tag=4)
    value: int = wire(INT32, default=0, since=1, tag=3)


SIZED: Final[list[type[Any]]] = [
    Text,
    NullableText,
    Binary,
    NullableBinary,
    Batches,
    NullableBatches,
    Numbers,
    NullableNumbers,
    Ids,
    Texts,
    Elements,
]


def uvarint(value: int) -> bytes:
    out = bytearray()
    write_uvarint(out, value)
    return bytes(out)


def prefix(cls: type[Any], length: int, version: int) -> bytes:
    if version == 1:
        return uvarint((length + 1) % 2**32)  # so that -2 is the largest number Kafka can send
    code = ">h" if cls in (Text, NullableText) else ">i"
    return pack(code, min(length, 2**15 - 1) if code == ">h" else length)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("cls", SIZED)
def test_hostile_lengths(cls: type[Any], version: int) -> None:
    codec = codec_for(cls, version)
    rest = bytes(60)
    for length in (-2, len(rest) + 1, INT32_MAX, INT32_MAX - 1):
        with pytest.raises(WireError):
            codec.read(prefix(cls, length, version) + rest, 0)
    if schema_of(cls).fields[0].kind.name == "array":  # by its count, not at its first element
        with pytest.raises(WireError, match="array of 61 elements in 60 bytes"):
            codec.read(prefix(cls, 61, version) + rest, 0)
    null = prefix(cls, -1, version) + rest
    if cls.__name__.startswith("Nullable"):
        assert codec.read(null, 0)[0].value is None
    else:
        with pytest.raises(WireError):
            codec.read(null, 0)
    empty, _ = codec.read(prefix(cls, 0, version) + rest, 0)
    assert empty.value is not None and len(empty.value) == 0


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("cls", [Text, Texts])
@pytest.mark.parametrize("size", [1, 200])
def test_invalid_utf_8_is_refused(cls: type[Any], version: int, size: int) -> None:
    codec = codec_for(cls, version)
    valid = codec.write(cls(value="a" * size if cls is Text else ["a" * size]))
    with pytest.raises(WireError, match="utf-8"):
        codec.read(valid.replace(b"a", b"\xff"), 0)


def test_a_string_is_no_longer_than_kafka_allows() -> None:
    codec = codec_for(Text, 1)
    longest = codec.write(Text(value="a" * 32767))
    assert codec.read(longest, 0)[1] == len(longest)
    with pytest.raises(WireError):
        codec.read(uvarint(32769) + bytes(40_000), 0)


def test_a_varint_is_no_longer_than_five_bytes() -> None:
    assert read_uvarint(b"\xff\xff\xff\xff\x0f", 0) == (2**32 - 1, 5)
    with pytest.raises(WireError):
        read_uvarint(b"\x80\x80\x80\x80\x80\x00", 0)


def test_tagged_fields_are_checked() -> None:
    codec = codec_for(Tagged, 1)
    encoded = codec.write(Tagged(value=5, element=Element(number=6)))
    assert encoded == b"\2" + b"\3\4\0\0\0\5" + b"\4\6\1\0\0\0\6\0"
    assert codec.read(encoded, 0)[0] == Tagged(value=5, element=Element(number=6))
    unordered = b"\3" + b"\4\6\1\0\0\0\6\0" + b"\x09\1x" + b"\3\4\0\0\0\5"  # Kafka takes it too
    assert codec.read(unordered, 0)[0] == Tagged(value=5, element=Element(number=6))
    for bad in (
        b"\1" + b"\3\5\0\0\0\5\0",  # longer than its value
        b"\1" + b"\3\3\0\0\0\5",  # shorter than its value
        b"\1" + b"\3\4\0\0\0",  # past the end
        b"\1" + b"\x09\4\0\0\0",  # unknown, and past the end
        b"\2" + b"\x09\0",  # one of two
    ):
        with pytest.raises(WireError):
            codec.read(bad, 0)


def test_skipping_tagged_fields_stays_within_the_frame() -> None:
    section = b"\2" + b"\3\4abcd" + b"\xff\x01\0"
    assert skip_tagged_fields(b"x" + section + b"y", 1) == 1 + len(section)
    assert skip_tagged_fields(b"\0", 0) == 1
    for cut in range(len(section)):
        with pytest.raises(WireError):
            skip_tagged_fields(section[:cut], 0)
    with pytest.raises(WireError):
        skip_tagged_fields(uvarint(20_000_000) + bytes(100), 0)


HUGE: Final = 2 * 20_000_000  # bytes that follow, so that it is not the end that refuses
BOMBS: Final[dict[str, tuple[type[Any], int, bytes, int]]] = {
    "tags": (ApiVersionsRequest, 3, b"\2a\2b" + uvarint(20_000_000), HUGE),
    "many tags": (ApiVersionsRequest, 3, b"\2a\2b" + uvarint(TAGGED_FIELDS_MAX + 1), HUGE),
    "tags beyond": (ApiVersionsRequest, 3, b"\2a\2b" + uvarint(INT32_MAX), 2),
    "flexible array": (MetadataRequest, 9, uvarint(INT32_MAX), HUGE),
    "array": (MetadataRequest, 8, pack(">i", INT32_MAX), HUGE),
    "budget": (Texts, 1, uvarint(ELEMENTS_MAX + 2), HUGE),
    "plain budget": (Numbers, 0, pack(">i", ELEMENTS_MAX + 1), HUGE),
    "records": (
        ProduceRequest,
        9,
        b"\0" + pack(">hi", 1, 1) + b"\2\2a\2" + bytes(4) + uvarint(INT32_MAX),
        100,
    ),
    "bytes": (Binary, 1, uvarint(INT32_MAX), 100),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_before_they_cost_anything(name: str) -> None:
    """A count that promises more than there is, or more than anyone sends."""
    cls, version, head, rest_size = BOMBS[name]
    frame = head + bytes(rest_size)
    codec = codec_for(cls, version)
    view = memoryview(frame)
    tracemalloc.start()
    try:
        started = time.process_time()
        with pytest.raises(WireError):
            codec.read(view, 0)
        elapsed = time.process_time() - started
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000, "allocated before it looked"
    assert elapsed < 0.1


def test_the_budget_counts_nested_arrays() -> None:
    """Each topic is small and each array fits its frame; only their sum is too large."""
    partitions = 4_000
    topic = bytes(16) + uvarint(partitions + 1) + bytes(partitions * 33) + b"\0"
    topics = ELEMENTS_MAX // partitions + 1
    fixed = pack(">iiiibii", *[0] * 7)
    frame = fixed + uvarint(topics + 1) + topic * topics
    with pytest.raises(WireError, match="too many elements"):
        codec_for(FetchRequest, 13).read(memoryview(frame), 0)


def one_of_each() -> Collection[Instance]:
    """A random instance of every message and version."""
    return {
        (each.message, each.version): each for each in instances() if each.kind == "random"
    }.values()


def places(size: int, most: int, chance: random.Random) -> list[int]:
    return list(range(size)) if size <= most else sorted(chance.sample(range(size), most))


def test_every_truncation_is_refused() -> None:
    tried = 0
    chance = random.Random(1)
    for each in instances():
        if each.kind != "random":
            continue
        codec = codec_for(message_types()[each.message], each.version)
        for encoded in (each.encoded, each.with_unknown_tags or b""):
            view = memoryview(encoded)
            for cut in places(len(encoded), CUTS, chance):
                with pytest.raises(WireError):
                    codec.read(view[:cut], 0)
                tried += 1
    print(f"{tried} truncations refused")
    assert tried > 50_000


def test_hostile_bytes_anywhere_raise_nothing_else() -> None:
    """Numbers of every width in any place: what is a length among them becomes a hostile one."""
    chance = random.Random(2)
    hostile = [pack(">h", n) for n in (-2, -1, 0, 2**15 - 1)]
    hostile += [pack(">i", n) for n in (-2, -1, 0, INT32_MAX)]
    hostile += [uvarint(n) for n in (0, 1, 127, 128, INT32_MAX, 2**32 - 1)] + [b"\xff" * 6]
    refused = taken = 0
    for each in one_of_each():
        codec = codec_for(message_types()[each.message], each.version)
        for place in places(len(each.encoded), PLACES, chance):
            for value in hostile:
                frame = each.encoded[:place] + value + each.encoded[place + len(value) :]
                try:
                    _, end = codec.read(frame, 0)
                except WireError:
                    refused += 1
                else:
                    assert end <= len(frame)
                    taken += 1
    print(f"{refused} hostile frames refused, {taken} read as something else")
    assert refused > taken > 0
