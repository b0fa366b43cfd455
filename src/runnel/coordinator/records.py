"""Journal records: a key and a value, each a version and a message, as Kafka's coordinators write.

key:    type (int16), message in version 0        the type says which messages these are
value:  version (int16), message in that version  no value at all deletes the key
"""

from collections.abc import Mapping
from struct import Struct
from struct import error as struct_error
from typing import Any, Final, NamedTuple

from runnel.errors import WireError
from runnel.ports import Readable
from runnel.wire.compiler import codec_for
from runnel.wire.primitives import VersionError
from runnel.wire.schema import schema_of

_INT16: Final = Struct(">h")
KEY_VERSION: Final = 0


class JournalRecord(NamedTuple):
    """Messages of `wire.messages.records`; a value of None is a tombstone."""

    key: Any
    value: Any | None
    value_version: int = 0


class Kind(NamedTuple):
    """What one type of record consists of."""

    key: type[Any]
    value: type[Any]


Kinds = Mapping[int, Kind]


def kinds_of(*pairs: tuple[type[Any], type[Any]]) -> Kinds:
    """By the number that stands first in a key."""
    found: dict[int, Kind] = {}
    for key, value in pairs:
        api_key = schema_of(key).api_key
        assert api_key is not None
        found[api_key] = Kind(key, value)
    return found


def encode_record(record: JournalRecord) -> tuple[bytes, bytes | None]:
    key_type = type(record.key)
    api_key = schema_of(key_type).api_key
    assert api_key is not None
    key = _INT16.pack(api_key) + codec_for(key_type, KEY_VERSION).write(record.key)
    if record.value is None:
        return key, None
    codec = codec_for(type(record.value), record.value_version)
    return key, _INT16.pack(record.value_version) + codec.write(record.value)


def decode_record(kinds: Kinds, key: Readable, value: Readable | None) -> JournalRecord | None:
    """None for a type that nobody here knows: a later release wrote it. Raises WireError."""
    try:
        (api_key,) = _INT16.unpack_from(key)
        kind = kinds.get(api_key)
        if kind is None:
            return None
        key_message, _ = codec_for(kind.key, KEY_VERSION).read(memoryview(key), _INT16.size)
        if value is None:
            return JournalRecord(key_message, None)
        (version,) = _INT16.unpack_from(value)
        codec = codec_for(kind.value, version)
    except struct_error as error:
        raise WireError(f"a journal record is cut short: {error}") from None
    except VersionError as error:
        raise WireError(f"a later release wrote a journal record: {error}") from None
    message, _ = codec.read(memoryview(value), _INT16.size)
    return JournalRecord(key_message, message, version)
