"""A batch of records into a table, row by row: decoded, transformed, partitioned, and written once.

Used where the rows of a batch depend on that batch alone: by the stream, and by whatever reads
records again, such as a backfill or the replay of dead letters.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runnel.arrow.decoders import pinned
from runnel.arrow.decoding import Decoding
from runnel.pipelines import dead_letters, partitioning
from runnel.pipelines.evolving import Columns
from runnel.pipelines.spec import Spec
from runnel.pipelines.transforming import transformed
from runnel.pipelines.value_columns import as_declared, typed
from runnel.pipelines.writing import table_options
from runnel.spark import steps
from runnel.spark.lake import lake_options
from runnel.spark.lake.lake_options import LakeOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY_PROPERTY: Final = "sql.streaming.queryId"
COUNTED: Final = 100
_ERROR, _RAW = "_error", "_raw"


class TableBatches:
    """`write` for each batch; may be called again with the same batch, which then counts once."""

    def __init__(self, spec: Spec, query_id: str, notes: Path, tell: Callable[[str], None]) -> None:
        self._spec = spec
        self._query_id = query_id
        self._tell = tell
        self._partitions = partitioning.partitions(spec.to.partition_by)
        self.evolves = bool(spec.decode.format) and spec.options.flag("evolve")
        self._columns: Columns | None = None
        self._notes = notes
        self._counted: dict[int, tuple[int, int]] = {}

    def of_stream(self, rows: "DataFrame", batch: int) -> None:
        """For `foreachBatch`. The checkpoint is in the name: another one counts batches anew."""
        checkpoint = rows.sparkSession.sparkContext.getLocalProperty(QUERY_PROPERTY) or ""
        self.write(rows, f"{self._query_id}@{checkpoint}", batch)

    def write(self, rows: "DataFrame", query: str, batch: int) -> int:
        """Records as the source gives them; how many of them are dead letters."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        read = self.read(rows)
        if _ERROR not in read.columns:
            self.to_table(read, query, batch)
            return 0
        seen = Observation()
        keeps_all = self._spec.decode.bad_records == "null"
        is_bad = F.col(_ERROR).isNotNull()
        counts = F.count(F.lit(1)).alias("rows"), F.count_if(is_bad).alias("bad")
        observed = read.observe(seen, *counts)
        self.to_table(observed if keeps_all else observed.where(~is_bad), query, batch)
        rows_read, bad = int(seen.get["rows"]), int(seen.get["bad"])
        self._counted[batch % COUNTED] = (batch, rows_read)
        steps.reached("rows written")
        if bad and self._spec.decode.bad_records == "dead_letter":
            letters = dead_letters.rows_of(read.where(is_bad), batch)
            dead_letters.write(self._spec, letters, query, batch)
            self._tell(f"batch {batch}: {bad} dead letters")
        return bad

    def rows_of(self, batch: int) -> int | None:
        """How many records a batch had, as long as it is one of the last."""
        number, count = self._counted.get(batch % COUNTED, (None, 0))
        return count if number == batch else None

    def raw(self, records: "DataFrame") -> "DataFrame":
        """Records whose values are still bytes, as the source would give them."""
        decode = self._spec.decode
        if self.evolves or not decode.format:
            return records
        declared = Decoding(
            decode.format,
            decode.schema,
            bad_records="null",
            nested=decode.nested,
            registry=decode.registry or None,
            subject=decode.subject or None,
        )
        return as_declared(records, pinned(declared, self._spec.source.topics))

    def read(self, rows: "DataFrame") -> "DataFrame":
        """With columns for what values hold, and `_error` for what is wrong with them."""
        if not self.evolves:
            return rows
        if self._columns is None:
            table = None if _has_transform(self._spec) else self._table()
            self._columns = Columns(self._spec, self._notes, table, self._tell)
        decode, wanted = self._columns.for_batch(rows)
        return typed(rows, decode, wanted)

    def to_table(self, rows: "DataFrame", query: str, batch: int) -> None:
        """Rows as `read` gives them; those that are wrong are left out by now, or all are kept."""
        if self._spec.decode.bad_records != "null":
            rows = rows.drop(_ERROR, _RAW)
        if self._spec.source.options.get("includeHeaders", "false").lower() != "true":
            rows = rows.drop("headers")
        made = partitioning.with_columns(transformed(self._spec, rows), self._partitions)
        once = {"queryId": query, "batchId": str(batch)}
        made.write.format("runnel-lake").options(**self.options(), **once).mode("append").save()

    def options(self) -> dict[str, str]:
        """Of the writer."""
        found = table_options(self._spec) | dict(self._spec.to.options)
        if self._partitions:
            found["partitionBy"] = ",".join(each.name for each in self._partitions)
        if self.evolves:
            found["mergeSchema"] = "true"
        return found

    def _table(self) -> LakeOptions:
        return lake_options.parse(self.options())


def _has_transform(spec: Spec) -> bool:
    return bool(spec.transform.sql or spec.transform.python)
