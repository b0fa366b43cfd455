"""Direct mode: tasks write a topic's records to the table's files themselves; Spark sees the files.

Records go from the decoder's buffers to Parquet within one Python process and never enter the JVM:
what crosses is a row per file. Spark still plans the batches, retries tasks and keeps the
checkpoint, and the sink commits the files as it does those that it wrote itself.

It is the reading side of `runnel-lake`: the options are those of `format("runnel")` together with
those of the table. `ingest` puts both sides together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from runnel.arrow.decoders import decoded_fields
from runnel.arrow.decoding import Decoding
from runnel.arrow.errors import OptionError
from runnel.arrow.ranges import COLUMNS, Range, Scan
from runnel.arrow.rows import spark_schema
from runnel.config.registry import suggestion
from runnel.spark.lake import dead_rows, lake_options, table_schema
from runnel.spark.lake.attempts import Attempt
from runnel.spark.lake.lake_options import LakeOptions, TableError
from runnel.spark.lake.lake_table import open_table
from runnel.spark.lake.lake_task import this_task
from runnel.spark.lake.part_files import Destination, PartFiles, WrittenFile, write_all
from runnel.spark.reads.batch import OffsetRange
from runnel.spark.reads.columns import all_columns, decoding_of
from runnel.spark.reads.offsets import OffsetDict
from runnel.spark.reads.options import SourceOptions, stream_options
from runnel.spark.reads.streaming import StreamReader
from runnel.spark.tasks import settle

if TYPE_CHECKING:
    import pyarrow as pa

FILES: Final = StructType(
    [
        StructField("attempt", StringType()),
        StructField("path", StringType()),
        StructField("size_bytes", LongType()),
        StructField("row_count", LongType()),
        StructField("partition_values", ArrayType(StringType())),
        StructField("stats", StringType()),
        StructField("schema", BinaryType()),
        StructField("is_dead", BooleanType()),
    ]
)
_BOTH_SIDES: Final = ("queryid",)
_COLUMNS: Final = "columns"


class DirectRange(InputPartition):
    """What one task takes in, and where it goes."""

    def __init__(self, piece: Range, to: Destination, dead: Destination | None) -> None:
        self.piece = piece
        self.to = to
        self.dead = dead  # where records go that cannot be read


class DirectReader(StreamReader):
    """Plans as any stream of topics does; its tasks write instead of handing records on."""

    def __init__(
        self, options: SourceOptions, scan: Scan, lake: LakeOptions, rows: StructType
    ) -> None:
        super().__init__(options, scan)
        self._lake = lake
        self._rows = rows  # of the table: the scan has more where bad records are put aside
        self._to: Destination | None = None
        self._dead: Destination | None = None

    def partitions(self, start: OffsetDict, end: OffsetDict) -> list[InputPartition]:
        if self._to is None:  # once: who changes the table meanwhile is found out by the commit
            self._to = open_table(self._lake).destination(table_schema.of_rows(self._rows))
            letters = lake_options.dead_letters(self._lake)
            if letters is not None:
                columns = table_schema.of_rows(dead_rows.schema())
                self._dead = open_table(letters).destination(columns)
        ranges = [p for p in super().partitions(start, end) if isinstance(p, OffsetRange)]
        return [DirectRange(found.piece, self._to, self._dead) for found in ranges]

    def read(self, partition: Any) -> "Iterator[pa.RecordBatch]":  # noqa: ANN401  # Spark's InputPartition
        from runnel.arrow import scan

        settle()
        task = this_task(self._lake.query_id)
        attempt = Attempt.new(task.query.name, task.batch)
        files = PartFiles(partition.to, attempt, task.query.checkpoint, task.number)
        batches = scan.read(self._scan, partition.piece)
        if partition.dead is None:
            written = write_all(files, batches)
            if written:
                yield _as_rows(attempt.id, written, partition.to.schema)
            return
        apart = dead_rows.Apart(tuple(self._rows.names), task.batch)
        written = write_all(files, apart.good(batches))
        if written:
            yield _as_rows(attempt.id, written, partition.to.schema)
        if apart.bad:
            letters = PartFiles(partition.dead, attempt, task.query.checkpoint, task.number)
            dead = write_all(letters, apart.bad)
            yield _as_rows(attempt.id, dead, partition.dead.schema, is_dead=True)


def direct_reader(options: Mapping[str, str]) -> DirectReader:
    """Raises OptionError of the source and TableError of the table."""
    of_table, of_source = _split(options)
    lake = lake_options.parse(of_table)
    source = stream_options(of_source)
    decode = decoding_of(source)
    rows = spark_schema(_columns(options, decode) or all_columns(source), decode)
    wanted = tuple(rows.names)
    if lake.dead_letter_table is not None:
        if decode is None:
            raise OptionError("deadLetterTable needs decode: without it nothing can be wrong")
        decode = replace(decode, bad_records="null", dead_letter_topic=None)
        decoded_fields(decode)  # refuses fields that are named as what is added here
    columns = wanted if lake.dead_letter_table is None else dead_rows.scanned(wanted)
    scan = Scan(
        client=source.client,
        columns=columns,
        read_committed=source.read_committed,
        fail_on_data_loss=source.fail_on_data_loss,
        poll_timeout_ms=source.poll_timeout_ms,
        read_mode=source.read_mode,
        path=source.path,
        decode=decode,
    )
    return DirectReader(source, scan, lake, rows)


def _split(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """`path` is the source's here: the data folder of a broker. The table is named by `table`."""
    of_table: dict[str, str] = {}
    of_source: dict[str, str] = {}
    for name, value in options.items():
        if name.lower() == _COLUMNS:
            continue
        if lake_options.is_known(name) and name.lower() != "path":
            of_table[name] = value
            if name.lower() not in _BOTH_SIDES:
                continue
        of_source[name] = value
    return of_table, of_source


def _columns(options: Mapping[str, str], decode: Decoding | None) -> tuple[str, ...]:
    """As asked for; `value` stands for all that decoding makes of it."""
    known = {*spark_schema(COLUMNS, decode).names, "value"}
    given = {name.lower(): value for name, value in options.items()}.get(_COLUMNS, "")
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    for name in names:
        if name not in known:
            hint = suggestion(name, known) or f"; there are {', '.join(sorted(known))}"
            raise OptionError(f"columns={given}: there is no column {name}{hint}")
    if len(set(names)) != len(names):
        raise OptionError(f"columns={given}: name each column once")
    return names


def _as_rows(
    attempt: str, files: list[WrittenFile], schema: bytes, *, is_dead: bool = False
) -> "pa.RecordBatch":
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    columns = list(zip(*files, strict=True))
    paths, sizes, rows, values, stats = (list(column) for column in columns)
    data = [[attempt] * len(files), paths, sizes, rows, [list(v) for v in values], stats]
    return pa.record_batch(
        [*data, [schema] * len(files), [is_dead] * len(files)],
        schema=to_arrow_schema(FILES, timezone="UTC"),
    )


class Told(NamedTuple):
    """What `_as_rows` made: the attempts, their files, and the schema of those."""

    attempts: tuple[str, ...] = ()
    files: tuple[WrittenFile, ...] = ()
    schema: bytes | None = None


def from_rows(batches: "Iterator[pa.RecordBatch]") -> tuple[Told, Told]:
    """Of the table, and of its dead letters."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    alive = _told([row for row in rows if not row["is_dead"]])
    return alive, _told([row for row in rows if row["is_dead"]])


def _told(rows: list[dict[str, Any]]) -> Told:
    files = tuple(
        WrittenFile(
            row["path"],
            row["size_bytes"],
            row["row_count"],
            tuple(row["partition_values"]),
            row["stats"],
        )
        for row in rows
    )
    attempts = tuple(dict.fromkeys(row["attempt"] for row in rows))
    return Told(attempts, files, rows[-1]["schema"] if rows else None)


def check_files(schema: StructType) -> None:
    if [f.name for f in schema.fields] != [f.name for f in FILES.fields]:
        raise TableError(
            "mode=direct takes what the direct source gives, unchanged; use runnel.spark.ingest,"
            " or leave out mode to write rows that were transformed"
        )
