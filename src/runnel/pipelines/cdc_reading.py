"""What tasks make of a batch of records: the last change of each key, and what is no change.

A change that does not fit the columns which are known is put aside before it is asked which change
of a key is the last: it must not hide a good one. Whatever is put aside is the record as it was.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from runnel.pipelines.changes import Change, latest
from runnel.pipelines.debezium import Reader, all_changes

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    Mapper = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

Place = tuple[str, int, int]  # topic, partition, offset
SAID: Final = (
    "change string, key string, op string, ts_ms bigint, position string, offset bigint,"
    " row string, topic string, partition int, timestamp timestamp, raw_key binary,"
    " raw_value binary, headers array<struct<key:string,value:binary>>, error string"
)


def reading(reader: Reader, known: "StructType") -> "Mapper":
    """One row for the last change of each key, for each bad record, each word."""

    def read(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        changes: list[Change] = []
        counts: dict[str, int] = {}
        for batch in batches:
            records = batch.select(["key", "value", "offset"]).to_pydict()
            triples = zip(records["key"], records["value"], records["offset"], strict=True)
            found, bad, left_out = all_changes(reader, triples)
            bad |= misfits(known, found)
            places = batch.select(["topic", "partition"]).to_pydict()
            topics, partitions = places["topic"], places["partition"]
            fitting = (
                change._replace(topic=topics[row], partition=partitions[row])
                for row, change in found.items()
                if row not in bad
            )
            changes = list(latest([*changes, *fitting]).values())
            for word, count in left_out.items():
                counts[word] = counts.get(word, 0) + count
            if bad:
                yield _as_said(_put_aside(batch, bad))
        rows: list[dict[str, Any]] = [
            {"change": "change", **change._asdict(), **change.order._asdict()} for change in changes
        ]
        rows += [{"change": word, "offset": count} for word, count in counts.items()]
        yield _as_said(rows)

    return read


def records_at(wrong: Mapping[Place, str]) -> "Mapper":
    """The records of these places as bad ones; few, and so they are read once more."""

    def read(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            places = batch.select(["topic", "partition", "offset"]).to_pydict()
            listed = zip(places["topic"], places["partition"], places["offset"], strict=True)
            bad = {row: wrong[place] for row, place in enumerate(listed) if place in wrong}
            yield _as_said(_put_aside(batch, bad))

    return read


def misfits(known: "StructType", changes: Mapping[int, Change]) -> dict[int, str]:
    """What does not fit in which change. Fields that are not known yet fit."""
    import pyarrow as pa

    from runnel.arrow.decoding_json import JsonDecoder

    if not changes or not known.fields:
        return {}
    rows = list(changes)
    values = pa.array([change.row.encode() for change in changes.values()], pa.binary())
    return {rows[at]: why for at, why in JsonDecoder(known).decode(values)[1].items()}


def _put_aside(batch: "pa.RecordBatch", bad: Mapping[int, str]) -> list[dict[str, Any]]:
    import pyarrow as pa

    taken = batch.take(pa.array(list(bad), pa.int64())).to_pylist()
    return [
        row
        | {"raw_key": row["key"], "raw_value": row["value"], "error": why}
        | {"key": None, "change": "bad"}
        for row, why in zip(taken, bad.values(), strict=True)
    ]


def _as_said(rows: "Iterable[dict[str, Any]]") -> "pa.RecordBatch":
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    from runnel.arrow.ddl import struct_type

    schema = to_arrow_schema(struct_type(SAID), timezone="UTC")
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)
