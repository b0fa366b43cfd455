"""What a topic looks like in SQL: told by the user, by a registry, or by some of its records.

Nothing is looked at but the first and the last records of a few partitions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from runnel.arrow.ranges import Range
from runnel.arrow.registry import MAGIC, PREFIX_BYTES, RegistryError, latest_of
from runnel.query.avro_fields import AvroFields
from runnel.query.errors import FailedError, QueryError
from runnel.query.json_shape import Column, json_columns
from runnel.query.presenting import Presenter
from runnel.query.topic_reading import TopicReader

SAMPLED_PARTITIONS: Final = 8
SAMPLED_ENDS: Final = 2  # of so many of these the last records, too, which take a whole batch
SAMPLED_OFFSETS: Final = 256
SAMPLED_BYTES_MAX: Final = 16 << 20  # of values; the rest is not looked at


@dataclass(frozen=True)
class Shape:
    presenter: Presenter
    columns: Sequence[Column] = ()  # of values that are JSON objects
    note: str = ""


@dataclass(frozen=True)
class _Sample:
    keys: list[bytes]
    values: list[bytes]

    @property
    def are_framed(self) -> bool:
        return bool(self.values) and all(
            len(value) > PREFIX_BYTES and value[0] == MAGIC for value in self.values
        )


def shape_of(
    reader: TopicReader,
    declared: Sequence[Column],
    registry: str | None,
    tell: Callable[[str], None],
) -> Shape:
    """Raises QueryError, SourceError, ReadError."""
    sample = _sample(reader)
    key_is_text = _are_text(sample.keys)
    if registry is not None and sample.are_framed:
        return _registered(reader.topic, registry, sample, key_is_text, tell)
    values, first, is_text = sample.values, 0, _are_text(sample.values)
    if sample.are_framed:
        without = [value[PREFIX_BYTES:] for value in values]
        if _are_text(without) and json_columns(without):
            values, first, is_text = without, PREFIX_BYTES, True
    presenter = Presenter(
        key_is_text=key_is_text,
        value_is_text=is_text or bool(declared),
        value_from=first,
        tell=tell,
    )
    if declared:
        return Shape(presenter, declared)
    note = ""
    if sample.are_framed and not first:
        note = (
            f"values of {reader.topic} begin as those of a schema registry do: name it with"
            " --registry to see their columns"
        )
    found = json_columns(values) if is_text else None
    if found:
        note = (
            f"the columns of {reader.topic} are told from {len(values):,} of its records;"
            " a schema says others, and schema raw has the topic as it is"
        )
    return Shape(presenter, found or (), note)


def _registered(
    topic: str,
    registry: str,
    sample: _Sample,
    key_is_text: bool,
    tell: Callable[[str], None],
) -> Shape:
    try:
        kind, text = latest_of(registry, f"{topic}-value")
    except RegistryError as error:
        raise FailedError(f"--registry: {error}") from None
    if kind == "AVRO":
        fields = AvroFields(text, registry)
        presenter = Presenter(
            key_is_text=key_is_text, value_is_text=False, fields=fields, tell=tell
        )
        return Shape(presenter)
    if kind != "JSON":
        raise QueryError(
            f"--registry: values of {topic} are {kind}, which is not read; ask for raw.{topic}"
            " without --registry to see their bytes"
        )
    presenter = Presenter(
        key_is_text=key_is_text, value_is_text=True, value_from=PREFIX_BYTES, tell=tell
    )
    columns = json_columns([value[PREFIX_BYTES:] for value in sample.values])
    return Shape(presenter, columns or ())


def _sample(reader: TopicReader) -> _Sample:
    pieces = [
        part
        for number, piece in enumerate(reader.ends().whole(reader.topic)[:SAMPLED_PARTITIONS])
        for part in _edges(piece)[: 2 if number < SAMPLED_ENDS else 1]
    ]
    keys: list[bytes] = []
    values: list[bytes] = []
    size = 0
    for batch in reader.sample(pieces):
        keys += (raw for raw in batch.column("key").to_pylist() if raw is not None)
        for raw in batch.column("value").to_pylist():
            if raw is not None:
                values.append(raw)
                size += len(raw)
        if size > SAMPLED_BYTES_MAX:
            break
    return _Sample(keys, values)


def _edges(piece: Range) -> list[Range]:
    middle = min(piece.start + SAMPLED_OFFSETS, piece.end)
    last = max(middle, piece.end - SAMPLED_OFFSETS)
    parts = [piece._replace(end=middle), piece._replace(start=last)]
    return [part for part in parts if part.start < part.end]


def _are_text(values: Iterable[bytes]) -> bool:
    try:
        for value in values:
            value.decode()
    except UnicodeDecodeError:
        return False
    return True
