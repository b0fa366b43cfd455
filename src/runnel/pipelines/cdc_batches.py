"""A batch of changes into a table with one row per key.

Tasks read the records and keep the last change of each key (`cdc_reading`); the driver has one
change per key of the batch, gives it columns, and merges all of them by one commit.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runnel.arrow.decoders import BadRecordError
from runnel.pipelines import dead_letters, upkeep
from runnel.pipelines.cdc_reading import SAID, Place, reading, records_at
from runnel.pipelines.changes import UPSERT, Change, Order, latest
from runnel.pipelines.debezium import Reader
from runnel.pipelines.deleted_keys import DeletedKeys
from runnel.pipelines.evolving import Columns
from runnel.pipelines.spec import Spec
from runnel.pipelines.table_batches import QUERY_PROPERTY
from runnel.spark import steps
from runnel.spark.lake import table_schema
from runnel.spark.lake.lake_options import TableError
from runnel.spark.lake.lake_table import Query
from runnel.spark.lake.upserting import OFFSET, OP, POSITION, TS_MS, UpsertTable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from runnel.pipelines.cdc_reading import Mapper

KEYS_NOTE: Final = "keys.json"


class CdcBatches:
    """`of_stream` for each batch; one that is repeated changes nothing."""

    def __init__(self, spec: Spec, query_id: str, notes: Path, tell: Callable[[str], None]) -> None:
        self._spec = spec
        self._query_id = query_id
        self._tell = tell
        self._reader = Reader(spec.options.text("envelope"), spec.options.texts("keys"))
        self._marks = spec.options.text("deletes") == "mark"
        remember_ms = spec.options.whole("remember_deletes")
        self._deleted = DeletedKeys(notes, remember_ms)
        self._columns = Columns(spec, notes, None, tell, beside_record=False)
        self._grows = spec.options.flag("evolve") or not spec.decode.schema
        self._file = notes / KEYS_NOTE
        self._keys = spec.options.texts("keys") or self._remembered_keys()

    def of_stream(self, rows: "DataFrame", batch: int) -> None:
        checkpoint = rows.sparkSession.sparkContext.getLocalProperty(QUERY_PROPERTY) or ""
        self.write(rows, f"{self._query_id}@{checkpoint}", batch)

    def write(self, rows: "DataFrame", query: str, batch: int) -> None:
        bad = self.merge(rows, query, batch)
        steps.reached("rows merged")
        self._put_aside(rows, bad, query, batch)

    def merge(self, rows: "DataFrame", query: str, batch: int) -> "list[dict[str, Any]]":
        """The records that are no changes, with the reason."""
        said = _told(rows, reading(self._reader, self._columns.wanted))
        bad = [row for row in said if row["error"] is not None]
        self._tell_left_out(said)
        changes = latest(
            Change(
                row["key"],
                row["op"],
                Order(row["ts_ms"], row["position"], row["offset"]),
                row["row"],
                row["topic"],
                row["partition"],
            )
            for row in sorted(
                (row for row in said if row["change"] == "change"),
                key=lambda row: (row["partition"], row["offset"]),
            )
        )
        kept = [change for change in changes.values() if not self._deleted.is_older(change)]
        table, misfits = self._typed(kept)
        if misfits:
            wrong = {_place(kept[at]): why for at, why in misfits.items()}
            bad += _told(rows, records_at(wrong))
        if bad and self._spec.decode.bad_records == "fail":
            first = bad[0]
            raise BadRecordError(
                f"{first['topic']}-{first['partition']} at offset {first['offset']}:"
                f" {first['error']}; set decode.bad_records: dead_letter to put it aside"
            )
        if self._reader.envelope == "debezium" and not self._marks:
            self._deleted.note(kept)
            steps.reached("deletes noted")
        if table is not None:
            self._upserts().merge(table, Query(query, "batch"), batch)
        return bad

    def _upserts(self) -> UpsertTable:
        options = replace(upkeep.lake(self._spec), merge_schema=self._grows)
        return UpsertTable(options, self._keys, marks_deletes=self._marks)

    def _typed(self, changes: "Sequence[Change]") -> "tuple[pa.Table | None, dict[int, str]]":
        """Rows with columns, and what is wrong with which change."""
        import pyarrow as pa

        from runnel.arrow.decoding_json import JsonDecoder
        from runnel.arrow.inferring import inferred

        if not changes:
            return None, {}
        self._agree_on_keys(changes[0])
        wrong = self._wrong_keys(changes)
        values = pa.array([change.row.encode() for change in changes], pa.binary())
        if self._grows:
            upserts = [change.row.encode() for change in changes if change.op == UPSERT]
            self._columns.grow(inferred(pa.array(upserts, pa.binary())))
        wanted = self._columns.wanted
        missing = [key for key in self._keys if key not in wanted.names]
        if missing and not self._grows:
            raise TableError(
                f"decode.schema has no field {missing[0]}, which is the key's; add it, or name"
                f" other options.keys"
            )
        if missing:  # only deletes so far: of rows that the table never had
            return None, wrong
        arrays, misfits = JsonDecoder(wanted).decode(values)
        wrong |= misfits
        orders = list(zip(*(change.order for change in changes), strict=True))
        columns = dict(zip(wanted.names, arrays, strict=True))
        columns |= {
            OP: pa.array([change.op for change in changes], pa.string()),
            TS_MS: pa.array(orders[0], pa.int64()),
            POSITION: pa.array(orders[1], pa.string()),
            OFFSET: pa.array(orders[2], pa.int64()),
        }
        table = pa.table(columns)
        table = table.cast(table_schema.plain_schema(table.schema))
        kept = [at for at in range(len(changes)) if at not in wrong]
        return table.take(pa.array(kept, pa.int64())), wrong

    def _agree_on_keys(self, first: Change) -> None:
        if self._keys:
            return
        self._keys = tuple(json.loads(first.key))
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps(self._keys))
        part.replace(self._file)
        self._tell(f"the key of a row is {', '.join(self._keys)}")

    def _remembered_keys(self) -> tuple[str, ...]:
        try:
            return tuple(json.loads(self._file.read_text()))
        except FileNotFoundError:
            return ()

    def _wrong_keys(self, changes: "Sequence[Change]") -> dict[int, str]:
        wanted = set(self._keys)
        return {
            at: f"its key is {change.key}, not of {', '.join(self._keys)}"
            for at, change in enumerate(changes)
            if set(json.loads(change.key)) != wanted
        }

    def _tell_left_out(self, said: "Sequence[dict[str, Any]]") -> None:
        for word in ("truncate", "message"):
            count = sum(row["offset"] for row in said if row["change"] == word)
            if count:
                self._tell(f"left out: {count} records of {word}, which change no row here")

    def _put_aside(
        self, rows: "DataFrame", bad: "list[dict[str, Any]]", query: str, batch: int
    ) -> None:
        if not bad or self._spec.decode.bad_records != "dead_letter":
            return
        names = ("topic", "partition", "offset", "timestamp", "raw_key", "raw_value", "headers")
        records = [tuple(row[name] for name in (*names, "error")) for row in bad]
        schema = (
            "topic string, partition int, offset bigint, timestamp timestamp, key binary,"
            " _raw binary, headers array<struct<key:string,value:binary>>, _error string"
        )
        frame = rows.sparkSession.createDataFrame(records, schema)
        letters = dead_letters.rows_of(frame, batch)
        dead_letters.write(self._spec, letters, query, batch)
        self._tell(f"batch {batch}: {len(bad)} dead letters")


def _told(rows: "DataFrame", mapper: "Mapper") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.mapInArrow(mapper, SAID).toArrow().to_pylist()
    return found


def _place(change: Change) -> Place:
    return change.topic, change.partition, change.order.offset
