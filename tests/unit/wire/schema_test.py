"""What a declaration makes: slots, defaults, one class for all versions."""

from collections.abc import Sequence
from typing import Any

import pytest

from runnel.types import FileSlice
from runnel.wire.compiler import Part, codec_for
from runnel.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from runnel.wire.messages.produce import PartitionProduceResponse, ProduceRequest
from runnel.wire.primitives import VersionError
from runnel.wire.schema import (
    INT16,
    INT32,
    STRING,
    UUID,
    Records,
    array_of,
    frozen_struct,
    message,
    nullable,
    schema_of,
    struct,
    struct_of,
    wire,
)


@frozen_struct
class Place:
    row: int = wire(INT32, default=-1)


@struct
class Row:
    names: list[str] = wire(array_of(STRING), default_factory=list)


@message(versions=(1, 4), flexible_since=3, api_key=7)
class Sample:
    name: str = wire(STRING, default="")
    hint: str | None = wire(nullable(STRING, since=2), default="", since=1)
    count: int = wire(INT16, default=5, since=2, until=3)
    ignored: int = wire(INT16, default=9, since=4, ignorable=True)
    rows: list[Row] | None = wire(nullable(array_of(Row)), default_factory=list, since=2)
    place: Place = wire(struct_of(Place), default=Place(), since=3, tag=0)
    row: Row = wire(struct_of(Row), default_factory=Row, since=3, tag=1)
    id: bytes = wire(UUID, default=bytes(16), since=4)


def test_a_wrong_type_is_an_error_to_the_type_checker() -> None:
    @struct
    class Wrong:  # mypy complains of an unused ignore if it finds no fault here
        acks: str = wire(INT16, default=0)  # type: ignore[assignment]

    Wrong(acks=1)  # type: ignore[arg-type]
    Wrong("1")  # type: ignore[call-arg]


def test_a_message_has_slots_and_defaults_of_its_own() -> None:
    one, other = Sample(), Sample()
    assert one == other
    assert one.rows is not other.rows
    assert one.row is not other.row
    assert one.place is other.place
    with pytest.raises(AttributeError):
        one.unknown = 1  # type: ignore[attr-defined]
    assert "count=5" in repr(one)
    one.count = 6
    assert one != other
    assert one.__eq__("another type") is NotImplemented


@pytest.mark.parametrize("cls", [PartitionData, FetchResponse, ProduceRequest, EpochEndOffset])
def test_fields_are_given_by_name_or_position_one_or_all(cls: type[Any]) -> None:
    """Where codecs are compiled, a call with names has a way of its own; it gives the same."""
    fields = schema_of(cls).fields
    default = cls()
    for number, field in enumerate(fields):
        mark = object()
        made = cls(**{field.name: mark})
        for other in fields:
            expected = mark if other is field else getattr(default, other.name)
            assert getattr(made, other.name) == expected
        before = [getattr(default, each.name) for each in fields[:number]]
        assert cls(*before, mark) == made
        assert cls(*before, **{field.name: mark}) == made
        not_interned = "".join(["", *field.name])
        assert cls(**{not_interned: mark}) == made
    marks = {field.name: object() for field in reversed(fields)}
    assert cls(**marks) == cls(*(marks[field.name] for field in fields))


def test_fields_that_do_not_exist_or_come_twice_are_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'acks'"):
        PartitionData(records=b"", acks=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="multiple values"):
        PartitionData(1, partition_index=1)  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        EpochEndOffset(1, 2, 3)  # type: ignore[call-arg]


def test_a_frozen_struct_never_changes() -> None:
    with pytest.raises(AttributeError):
        Sample().place.row = 3  # type: ignore[misc]
    assert hash(Place(row=2)) == hash(Place(row=2))
    assert EpochEndOffset() is not PartitionData().diverging_epoch
    assert EpochEndOffset() == PartitionData().diverging_epoch


def test_the_class_carries_its_versions() -> None:
    schema = schema_of(ProduceRequest)
    assert schema.api_key == 0
    assert schema.versions == range(3, 14)
    assert schema.latest_version == 13
    assert [schema.is_flexible(version) for version in (8, 9)] == [False, True]


@pytest.mark.parametrize("version", [0, 5, -1])
def test_a_version_that_does_not_exist_is_refused(version: int) -> None:
    with pytest.raises(VersionError):
        codec_for(Sample, version)


def test_a_codec_is_compiled_once() -> None:
    assert codec_for(Sample, 3) is codec_for(Sample, 3)


@pytest.mark.parametrize(
    ("version", "value"),
    [
        (1, Sample(count=6)),
        (1, Sample(rows=[Row()])),
        (1, Sample(rows=None)),
        (1, Sample(hint=None)),
        (2, Sample(place=Place(row=1))),
        (2, Sample(row=Row(names=["a"]))),
        (3, Sample(id=bytes(15) + b"1")),
        (4, Sample(count=6)),
        (4, Sample(name="x" * 32768)),
    ],
)
def test_a_value_that_the_version_cannot_carry_is_refused(version: int, value: Sample) -> None:
    with pytest.raises(VersionError):
        codec_for(Sample, version).write(value)


def test_an_ignorable_value_is_dropped() -> None:
    assert codec_for(Sample, 3).write(Sample(ignored=1)) == codec_for(Sample, 3).write(Sample())
    assert codec_for(Sample, 4).write(Sample(ignored=1)) != codec_for(Sample, 4).write(Sample())


def test_fields_of_other_versions_read_as_their_default() -> None:
    codec = codec_for(Sample, 1)
    read, _ = codec.read(codec.write(Sample(name="n", hint="h", ignored=2)), 0)
    assert read == Sample(name="n", hint="h")


def test_the_bytes_of_a_uuid_are_sixteen() -> None:
    with pytest.raises(AssertionError):
        codec_for(Sample, 4).write(Sample(id=b"short"))


def test_reading_starts_at_a_position_and_ends_where_the_message_does() -> None:
    codec = codec_for(Sample, 4)
    value = Sample(name="näme", rows=[Row(names=["a", "b" * 300])], place=Place(row=3))
    encoded = codec.write(value)
    for buffer in (bytes(encoded), encoded, memoryview(encoded)):
        assert codec.read(b"xyz" + buffer + b"more", 3) == (value, 3 + len(encoded))


class Region:
    """Stands for a file: what is asked for is its own position."""

    path = ""

    def read_at(self, position: int, size: int) -> bytes:
        return bytes((position + index) & 0xFF for index in range(size))


@pytest.mark.parametrize("version", schema_of(FetchResponse).versions)
def test_slices_stay_in_their_files(version: int) -> None:
    file = Region()
    slices = [FileSlice(file, position, size) for position, size in [(3, 200), (900, 5), (7, 0)]]  # type: ignore[arg-type]  # only read_at is needed

    def response(records: Sequence[Records]) -> FetchResponse:
        partitions = [
            PartitionData(partition_index=index, records=each) for index, each in enumerate(records)
        ]
        partitions.insert(1, PartitionData(partition_index=9))
        return FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])

    codec = codec_for(FetchResponse, version)
    expected = codec.write(response([each.read() for each in slices]))
    parts: list[Part] = []
    header = bytearray(b"size and header")
    last = codec.write_into(header, response(slices), parts)
    assert parts[0] is header
    assert [each for each in parts if isinstance(each, FileSlice)] == slices[:2]
    whole = b"".join(part.read() if isinstance(part, FileSlice) else part for part in parts) + last
    assert whole == b"size and header" + expected


def test_a_message_without_slices_is_one_bytearray() -> None:
    parts: list[Part] = []
    out = bytearray(8)
    response = FetchResponse(
        responses=[FetchableTopicResponse(partitions=[PartitionData(records=b"batch")])]
    )
    assert codec_for(FetchResponse, 12).write_into(out, response, parts) is out
    assert parts == []


def test_records_are_borrowed_from_the_frame() -> None:
    codec = codec_for(FetchResponse, 12)
    frame = codec.write(
        FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=b"ab")])])
    )
    read, _ = codec.read(frame, 0)
    records = read.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    frame[frame.index(b"ab")] = ord("z")
    assert bytes(records) == b"zb"


def test_a_default_tagged_struct_is_not_sent() -> None:
    response = PartitionProduceResponse()
    assert response.current_leader is PartitionProduceResponse().current_leader
