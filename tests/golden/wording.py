"""Messages in words, field by field, with everything that two brokers choose freely made equal."""

import base64
from collections.abc import Collection, Iterator
from typing import Any, Final

from runnel.errors import ErrorCode
from runnel.native.records import decode
from runnel.ports import Readable
from runnel.wire.schema import Kind, schema_of

MEMBER_FIELDS: Final = frozenset({"member_id", "leader", "member_ids"})
PRODUCER_FIELDS: Final = frozenset(
    {
        "producer_id",
        "v3_and_below_producer_id",
        "next_producer_id",
        "previous_producer_id",
        "producer_id_filters",
    }
)
PLACES: Final = frozenset({"host", "port", "client_host", "rack"})
TIMES_MS: Final = range(1_600_000_000_000, 3_000_000_000_000)
TRANSACTIONAL: Final = 0x10
UNKNOWN: Final = "<?>"  # an id that has no name yet, while structs are sorted


class Wording:
    """Owned by one dialogue: it remembers which id was given which name."""

    def __init__(self, unequal: Collection[str] = ()) -> None:
        self._unequal = unequal
        self._names: dict[tuple[str, object], str] = {}
        self._counts: dict[str, int] = {}
        self._is_sorting = False

    def name_topic(self, topic_id: bytes, name: str) -> None:
        self._names["topic id", topic_id] = f"<id of {name}>"

    def request(self, message: object, version: int) -> list[str]:
        return list(self._struct(message, version, chosen_here=True))

    def response(self, message: object, version: int) -> list[str]:
        return list(self._struct(message, version, chosen_here=False))

    def _struct(self, message: object, version: int, *, chosen_here: bool) -> Iterator[str]:
        for field in schema_of(type(message)).fields:
            if version in field.versions:
                value = getattr(message, field.name)
                yield from self._field(field.name, field.kind, value, version, chosen_here)

    def _field(
        self, name: str, kind: Kind[Any], value: Any, version: int, chosen_here: bool  # noqa: ANN401  # by its kind
    ) -> Iterator[str]:  # fmt: skip
        if name in self._unequal:
            yield f"{name}: <not compared>"
        elif value is None:
            yield f"{name}: none"
        elif kind.name == "struct":
            yield f"{name}:"
            yield from _indented(self._struct(value, version, chosen_here=chosen_here))
        elif kind.name == "records":
            yield f"{name}:"
            yield from _indented(self._records(value, chosen_here))
        elif kind.name == "array" and kind.item.name == "struct" and value:
            yield f"{name}:"
            for item in value if chosen_here else self._sorted(value, version):
                lines = self._struct(item, version, chosen_here=chosen_here)
                yield from _listed(lines)
        elif kind.name == "array":
            items = [self._scalar(name, kind.item, item, chosen_here) for item in value]
            yield f"{name}: [{', '.join(items if chosen_here else sorted(items))}]"
        else:
            yield f"{name}: {self._scalar(name, kind, value, chosen_here)}"

    def _sorted(self, items: list[Any], version: int) -> list[Any]:
        was_sorting, self._is_sorting = self._is_sorting, True
        in_order = sorted(items, key=lambda item: self.response(item, version))
        self._is_sorting = was_sorting
        return in_order

    def _scalar(self, name: str, kind: Kind[Any], value: Any, chosen_here: bool) -> str:  # noqa: ANN401  # by its kind
        if name in PLACES:
            return f"<{name}>"
        if name in MEMBER_FIELDS and isinstance(value, str):
            return self._id("member", value, chosen_here) if value else "''"
        if name in PRODUCER_FIELDS:
            return self._id("producer", value, chosen_here) if value >= 0 else str(value)
        if kind.name == "uuid":
            return self._id("topic id", bytes(value), chosen_here) if any(value) else "zero"
        if name.endswith("error_code"):
            return f"{value} {ErrorCode(value).name}"
        if isinstance(value, str):
            return repr(self._renamed(value))
        if isinstance(value, int) and value in TIMES_MS:
            return "<time>"
        if isinstance(value, bytes | bytearray | memoryview):
            return repr(bytes(value))
        return str(value)

    def _id(self, sort: str, value: object, chosen_here: bool) -> str:
        """Ids of the client are told as they are, the broker's in the order of their coming."""
        known = self._names.get((sort, value))
        if known is not None:
            return known
        if self._is_sorting:
            return UNKNOWN
        if chosen_here:
            known = repr(value)
        else:
            self._counts[sort] = self._counts.get(sort, 0) + 1
            known = f"<{sort} {self._counts[sort]}>"
        self._names[sort, value] = known
        return known

    def _renamed(self, text: str) -> str:
        """Ids inside of a sentence."""
        for (_, value), name in self._names.items():
            if isinstance(value, str) and name.startswith("<"):
                text = text.replace(value, name)
            elif isinstance(value, bytes):
                text = text.replace(base64.urlsafe_b64encode(value).decode().rstrip("="), name)
        return text

    def _records(self, data: Readable, chosen_here: bool) -> Iterator[str]:
        columns = decode(data, max_records=100_000, max_bytes=1 << 24, control=True)
        rows = list(columns.rows())
        for batch in columns.batches:
            header = batch.header
            producer = self._scalar("producer_id", _INT, header.producer_id, chosen_here)
            what = "transactional" if header.attributes & TRANSACTIONAL else "plain"
            if batch.control is not None:
                what = f"control {batch.control.name}"
            yield (
                f"- {what}, base offset {header.base_offset}, producer {producer}"
                f" epoch {header.producer_epoch} sequence {header.base_sequence}"
            )
            for row in rows[batch.first_row : batch.first_row + batch.row_count]:
                yield f"  {row.offset}: {row.key!r} = {row.value!r}"


_INT: Final[Kind[int]] = Kind("int64", "q")


def _indented(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {line}"


def _listed(lines: Iterator[str]) -> Iterator[str]:
    """One item: a dash before its first line."""
    first = next(lines, "{}")
    yield f"  - {first}"
    for line in lines:
        yield f"    {line}"


def first_difference(expected: str, found: str) -> str:
    """Where two dialogues part, with what was said before, for the message of a failed test."""
    ours, theirs = found.splitlines(), expected.splitlines()
    at = next(
        (row for row, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b),
        min(len(ours), len(theirs)),
    )
    heads = [row for row in range(at) if theirs[row][:1].strip()]
    since = heads[-2] if len(heads) > 1 else 0
    said = "\n".join(f"    {line}" for line in theirs[since:at])
    return (
        f"line {at + 1} differs\n{said}\n"
        f"  Kafka:  {theirs[at] if at < len(theirs) else '(the end)'}\n"
        f"  Runnel: {ours[at] if at < len(ours) else '(the end)'}"
    )
