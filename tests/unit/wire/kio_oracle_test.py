"""Every message and version that `kio` has reads and writes as `kio` does.

kio has a class per version, with the fields of that version in Kafka's order, so fields are
compared by their place. It gives some numbers a meaning (times, error codes); these are taken back
to the number on the wire.
"""

import dataclasses
import datetime
import io
import random
from collections.abc import Iterator
from pkgutil import resolve_name
from types import UnionType
from typing import Any, Final, get_origin
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.serial._introspect import (
    EntityField,
    EntityTupleField,
    classify_field,
    get_schema_field_type,
)

from runnel.types import NO_TOPIC_ID
from runnel.wire.compiler import codec_for
from runnel.wire.schema import schema_of
from tests.unit.wire.recording import message_types, pairs

INSTANCES: Final = 3  # of each message and version
EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MILLISECOND: Final = datetime.timedelta(milliseconds=1)
NUMBERS: Final = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
}


def kio_types() -> Iterator[tuple[str, int, type[Any]]]:
    for versions in schema_name_map.values():
        for version, paths in versions.items():
            for path in paths.values():
                name = path.partition(":")[2]
                if name in message_types():
                    yield name, version, resolve_name(path)


def primitive(chance: random.Random, kind: str) -> Any:  # noqa: ANN401
    match kind:
        case "bool":
            return chance.random() < 0.5
        case "float64":
            return chance.uniform(-1e9, 1e9)
        case "error_code":
            return chance.choice(list(ErrorCode))
        case "timedelta_i32" | "timedelta_i64":
            return chance.randint(-(2**31), 2**31 - 1) * MILLISECOND
        case "datetime_i64":
            return EPOCH + chance.randint(0, 2**42) * MILLISECOND
        case "uuid":
            return UUID(bytes=chance.randbytes(16))
        case "string":
            return "".join(chance.choices("aZ0-.é漢🙂", k=chance.choice([0, 1, 7, 60])))
        case "bytes" | "records":
            return chance.randbytes(chance.choice([0, 1, 20, 126, 127, 300]))
        case _:
            low, high = NUMBERS[kind]
            return chance.choice([low, high, 0, chance.randint(low, high)])


def made(chance: random.Random, cls: type[Any]) -> Any:  # noqa: ANN401
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        found: Any = classify_field(field)

        def one(field: Any = field, found: Any = found) -> Any:  # noqa: ANN401
            inner: type[Any] = found.type_
            if isinstance(found, EntityField | EntityTupleField):
                return made(chance, inner)
            return primitive(chance, get_schema_field_type(field))

        if get_origin(field.type) is UnionType and chance.random() < 0.3:
            values[field.name] = None
        elif found.is_array:
            values[field.name] = tuple(one() for _ in range(chance.choice([0, 1, 3])))
        else:
            values[field.name] = one()
    return cls(**values)


def ours(value: Any, kind: Any) -> Any:  # noqa: ANN401
    """The value of kio as it is in our messages."""
    match value:
        case None if kind.name == "uuid":
            return NO_TOPIC_ID
        case None if kind.name == "int64":
            return -1
        case ErrorCode():
            return value.value
        case datetime.timedelta():
            return value // MILLISECOND
        case datetime.datetime():
            return (value - EPOCH) // MILLISECOND
        case UUID():
            return value.bytes
        case tuple():
            return [ours(each, kind.item) for each in value]
        case _:
            return value


def ensure_equal(theirs: Any, mine: Any, version: int, where: str) -> None:  # noqa: ANN401
    fields = [field for field in schema_of(type(mine)).fields if version in field.versions]
    for their_field, field in zip(dataclasses.fields(theirs), fields, strict=True):
        expected = ours(getattr(theirs, their_field.name), field.kind)
        held = getattr(mine, field.name)
        inside = f"{where}.{field.name}"
        if dataclasses.is_dataclass(expected):
            ensure_equal(expected, held, version, inside)
        elif isinstance(expected, list) and expected and dataclasses.is_dataclass(expected[0]):
            assert len(expected) == len(held), inside
            for each, other in zip(expected, held, strict=True):
                ensure_equal(each, other, version, inside)
        else:
            assert held == expected, inside


def test_every_pair_that_kio_has_agrees_with_it() -> None:
    known = set(pairs())
    agreed = set()
    for name, version, kio_type in kio_types():
        if (name, version) not in known:
            continue
        codec = codec_for(message_types()[name], version)
        write, read = entity_writer(kio_type), entity_reader(kio_type)
        chance = random.Random(f"{name} {version}")
        for number in range(INSTANCES):
            where = f"{name} v{version} #{number}"
            theirs = made(chance, kio_type)
            with io.BytesIO() as out:
                write(out, theirs)
                encoded = out.getvalue()
            mine, end = codec.read(memoryview(encoded), 0)
            assert end == len(encoded), where
            ensure_equal(theirs, mine, version, where)
            written = codec.write(mine)
            assert written == encoded, where
            assert read(bytes(written), 0) == (theirs, len(encoded)), where
        agreed.add((name, version))
    assert len(agreed) > 500, "kio has fewer messages than it had"
    print(f"{len(agreed)} (message, version) pairs agree with kio, {INSTANCES} instances each")
