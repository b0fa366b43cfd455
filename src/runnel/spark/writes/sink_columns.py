"""Rows of a write, as Arrow has them, to the buffers that the encoder takes; topic by topic."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from runnel.arrow.errors import SinkError
from runnel.native.columns import ArrowBinary, ArrowHeaders

if TYPE_CHECKING:
    import pyarrow as pa

NULL_TOPIC = "null topic present in the data. Use the topic option for setting a default topic."


class Rows(NamedTuple):
    """All for one topic. The columns live as long as `held` does."""

    topic: str
    row_count: int
    size_bytes: int  # of keys and values, about
    keys: ArrowBinary | None
    values: ArrowBinary
    headers: ArrowHeaders | None
    partitions: "pa.Array | None"
    held: object


def by_topic(batch: "pa.RecordBatch", topic: str | None, *, headers: bool) -> Iterator[Rows]:
    """The rows of each topic in their order. Raises SinkError for a row without one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if batch.num_rows == 0:
        return
    if topic is not None:
        yield _rows(batch, topic, headers)
        return
    column = batch.column("topic")
    if column.null_count:
        raise SinkError(NULL_TOPIC)
    names = pc.unique(column)
    for name in names.to_pylist():
        part = batch if len(names) == 1 else batch.filter(pc.equal(column, pa.scalar(name)))
        yield _rows(part, name, headers)


def _rows(batch: "pa.RecordBatch", topic: str, headers: bool) -> Rows:
    names = batch.schema.names
    keys = _binary(batch.column("key")) if "key" in names else None
    values = _binary(batch.column("value"))
    lists = _headers(batch.column("headers")) if headers and "headers" in names else None
    return Rows(
        topic,
        batch.num_rows,
        batch.nbytes,
        None if keys is None else keys[0],
        values[0],
        None if lists is None else lists[0],
        batch.column("partition") if "partition" in names else None,
        (batch, keys, values, lists),
    )


def _binary(array: "pa.Array") -> "tuple[ArrowBinary, pa.Array]":
    import pyarrow as pa

    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        narrow = array
    else:  # large ones, and views
        narrow = array.cast(pa.binary())
    validity, offsets, data = narrow.buffers()
    return ArrowBinary(validity, offsets, data, narrow.offset), narrow


def _headers(array: "pa.Array") -> "tuple[ArrowHeaders, object]":
    import pyarrow as pa

    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    structs = array.values
    names, values = _binary(structs.field(0)), _binary(structs.field(1))
    if structs.null_count or names[1].null_count:
        raise SinkError(
            "null header present in the data; a header has a key, though its value may be null"
        )
    validity, offsets = array.buffers()[:2]
    found = ArrowHeaders(validity, offsets, array.offset, names[0], values[0])
    return found, (array, names, values)
