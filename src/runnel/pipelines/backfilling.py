"""Records of a time range into a pipeline's table once more, without those that it has already.

A record is known by topic, partition and offset, which the table must have as columns. What the
stream has not come to yet is left to it. The work is cut into chunks that are noted before the
first is done; each is written under its number, so that a kill costs one chunk and no row.
"""

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runnel.pipelines import dead_letters, upkeep
from runnel.pipelines.home import Home
from runnel.pipelines.spec import Spec
from runnel.spark import steps
from runnel.spark.lake.kept_files import Kept
from runnel.spark.lake.lake_options import LakeOptions, TableError
from runnel.spark.lake.lake_table import open_table
from runnel.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

PLACE: Final = ("topic", "partition", "offset")
NOTE: Final = "plan.json"
CHUNK_RECORDS: Final = 500_000
Ranges = dict[str, dict[str, list[int]]]  # topic, partition: from, to (exclusive)


class BackfillError(ValueError):
    """It cannot be done; the message says why, and what to do."""


@dataclass(frozen=True)
class Plan:
    id: str
    asked: str
    chunks: list[Ranges]
    done: int = 0

    @property
    def records(self) -> int:
        return sum(_size(chunk) for chunk in self.chunks)

    @property
    def records_done(self) -> int:
        return sum(_size(chunk) for chunk in self.chunks[: self.done])


@dataclass(frozen=True)
class Chunk:
    number: int
    records: int
    written: int  # that are in the table now, or among its dead letters, and were not
    records_done: int


def check(spec: Spec) -> None:
    """Raises BackfillError where it cannot be done."""
    from runnel.pipelines.kinds.table import STATEFUL, way

    if not (spec.source.topics or spec.source.pattern):
        raise BackfillError(
            f"{spec.name} is of kind {spec.kind}, which reads no topic: there are no records to"
            f" read again"
        )
    if spec.kind != "table" or way(spec) == STATEFUL:
        raise BackfillError(
            f"{spec.name} is of kind {spec.kind} and not a table of single records: use 'runnel"
            f" pipeline reset {spec.name} --to TIME', which says what is read twice"
        )
    kept = open_table(upkeep.lake(spec)).kept()
    if kept is None:
        raise BackfillError(f"there is no table yet: 'runnel pipeline run {spec.name}' comes first")
    missing = [name for name in PLACE if name not in kept.schema.names]
    if missing:
        raise BackfillError(
            f"{kept.where} has no column {missing[0]}, and by topic, partition and offset it is"
            f" known which records are there; add them to transform.sql, and run the pipeline once"
        )


def planned(
    spec: Spec, home: Home, asked: str, from_ms: int, to_ms: int | None, chunk_records: int
) -> Plan:
    """What is left of one that was not finished, or a new one.

    `asked` has the times as they were written: `-7d` is another time whenever it is read, and the
    same command goes on. Raises BackfillError, SourceError.
    """
    file = home.folder / "backfill" / NOTE
    if file.exists():
        found = Plan(**json.loads(file.read_text()))
        if found.asked != asked:
            raise BackfillError(
                f"another backfill was begun and not finished ({found.asked}): do it first, or"
                f" delete {file}"
            )
        return found
    plan = Plan(uuid.uuid4().hex[:12], asked, _chunks(spec, home, from_ms, to_ms, chunk_records))
    _write(file, plan)
    return plan


def run(
    spec: Spec, home: Home, plan: Plan, spark: "SparkSession", tell: Callable[[str], None]
) -> Iterator[Chunk]:
    """Chunk after chunk, each told when it is in the table."""
    from runnel.pipelines.table_batches import TableBatches

    folder = home.folder / "backfill"
    batches = TableBatches(spec, spec.name, home.folder / "notes", tell)
    for number in range(plan.done, len(plan.chunks)):
        ranges = plan.chunks[number]
        rows = _read(spec, spark, ranges, batches.evolves)
        before = _tables(spec)
        known = _known(before, ranges)
        if known.num_rows:
            there = spark.createDataFrame(known)
            rows = rows.join(there, on=list(PLACE), how="left_anti")
        batches.write(rows, f"{spec.name}-backfill-{plan.id}", number)
        steps.reached("chunk written")
        plan = replace(plan, done=number + 1)
        _write(folder / NOTE, plan)
        written = _added(before, _tables(spec), known, ranges)
        yield Chunk(number, _size(ranges), written, plan.records_done)
    forget(home)


def forget(home: Home) -> None:
    """The plan is done."""
    (home.folder / "backfill" / NOTE).unlink(missing_ok=True)


def _write(file: Path, plan: Plan) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps(asdict(plan)))
    part.replace(file)


def _chunks(
    spec: Spec, home: Home, from_ms: int, to_ms: int | None, chunk_records: int
) -> list[Ranges]:
    from runnel.pipelines.checkpoint import reached

    position = reached(home.checkpoint).offsets
    if not position:
        raise BackfillError(
            f"{spec.name} has not run yet, so it is not known what the stream will read itself:"
            f" 'runnel pipeline run {spec.name} --once' comes first"
        )
    ranges = _ranges(spec, from_ms, to_ms)
    left = {
        at: (first, min(end, position.get(at, first)))
        for at, (first, end) in ranges.items()
        if first < min(end, position.get(at, first))
    }
    share = max(1, chunk_records // max(1, len(left)))
    chunks: list[Ranges] = []
    while left:
        chunk: Ranges = {}
        for at, (first, end) in list(left.items()):
            stop = min(end, first + share)
            chunk.setdefault(at.topic, {})[str(at.index)] = [first, stop]
            if stop == end:
                del left[at]
            else:
                left[at] = (stop, end)
        chunks.append(chunk)
    return chunks


def _ranges(spec: Spec, from_ms: int, to_ms: int | None) -> dict[TopicPartition, tuple[int, int]]:
    from runnel.pipelines.reading import source_options
    from runnel.pipelines.spec import Decode
    from runnel.spark.reads.assignment import assignment
    from runnel.spark.reads.logs import open_logs
    from runnel.spark.reads.options import stream_options
    from runnel.spark.reads.resolving import resolve

    def options_at(ms: int) -> Any:  # noqa: ANN401  # SourceOptions
        source = replace(spec.source, start=f"@{ms}")
        asked = replace(spec, source=source, decode=Decode())  # no value is looked at
        return stream_options(source_options(asked, spec.name))

    options = options_at(from_ms)
    logs = open_logs(options)
    try:
        assigned = assignment(logs, options.subscription, must_exist=True)
        firsts = resolve(logs, options.start, assigned)
        earliest = logs.earliest(assigned.partitions)
        ends = (
            logs.latest(assigned.partitions)
            if to_ms is None
            else resolve(logs, options_at(to_ms).start, assigned)
        )
    finally:
        logs.close()
    return {at: (max(firsts[at], earliest[at]), ends[at]) for at in assigned.partitions}


def _read(spec: Spec, spark: "SparkSession", ranges: Ranges, evolves: bool) -> "DataFrame":
    from runnel.pipelines.reading import source_options
    from runnel.pipelines.spec import Decode

    asked = dead_letters.without_source_dlq(spec)
    asked = replace(asked, decode=Decode()) if evolves else asked
    options = source_options(asked, spec.name)
    for name in (*_STREAM_ONLY, "subscribe", "subscribePattern", "startingTimestamp"):
        options = {key: value for key, value in options.items() if key.lower() != name.lower()}
    options["assign"] = json.dumps({t: [int(p) for p in parts] for t, parts in ranges.items()})
    for at, name in ((0, "startingOffsets"), (1, "endingOffsets")):
        places = {t: {p: r[at] for p, r in parts.items()} for t, parts in ranges.items()}
        options[name] = json.dumps(places)
    if spec.decode.bad_records == "dead_letter":
        options["includeHeaders"] = "true"
    return spark.read.format("runnel").options(**options).load()


_STREAM_ONLY: Final = (
    "queryId",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "commitGroup",
    "topicIds",
    "partition.metadata.cache.ttl.ms",
    "startingOffsetsByTimestampStrategy",
    "startingOffsetsByTimestamp",
)


def _tables(spec: Spec) -> list[Kept]:
    """The table, and that of its dead letters if there is one."""
    tables: list[LakeOptions] = list(upkeep.tables(spec))
    found = [kept for table in tables if (kept := open_table(table).kept())]
    if not found:
        raise TableError(f"the table of {spec.name} is gone; run the pipeline to make it anew")
    return found


def _known(tables: list[Kept], ranges: Ranges) -> "pa.Table":
    """Places in these ranges of records that are in the tables."""
    import pyarrow as pa

    return _once(pa.concat_tables([_places(kept, ranges) for kept in tables]))


def _added(before: list[Kept], now: list[Kept], known: "pa.Table", ranges: Ranges) -> int:
    """How many records came: a transform may leave some out, and make several rows of one."""
    import pyarrow as pa

    old = {file.path for kept in before for file in kept.files}
    new = [
        replace(kept, files=tuple(file for file in kept.files if file.path not in old))
        for kept in now
    ]
    both = _once(pa.concat_tables([known, _known(new, ranges)]))
    return len(both) - len(known)


def _once(places: "pa.Table") -> "pa.Table":
    return places.group_by(list(PLACE), use_threads=False).aggregate([]).select(list(PLACE))


def _places(kept: Kept, ranges: Ranges) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    from runnel.spark.lake.kept_files import value_of

    schema = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
    wanted = None
    for topic, parts in ranges.items():
        for partition, (first, end) in parts.items():
            one = (
                (ds.field("topic") == topic)
                & (ds.field("partition") == int(partition))
                & (ds.field("offset") >= first)
                & (ds.field("offset") < end)
            )
            wanted = one if wanted is None else wanted | one
    found = []
    for file in kept.files:
        texts = dict(zip(kept.partition_by, file.values, strict=True))
        expression = None
        for name in PLACE:
            if name in texts and not kept.in_files:
                one = ds.field(name) == value_of(texts[name], kept.schema.field(name).type)
                expression = one if expression is None else expression & one
        format_ = ds.ParquetFileFormat()
        piece = format_.make_fragment(file.path, LocalFileSystem(), expression)
        data = ds.FileSystemDataset([piece], kept.schema, format_)
        found.append(data.to_table(columns=list(PLACE), filter=wanted).cast(schema))
    return pa.concat_tables(found) if found else schema.empty_table()


def _size(ranges: Ranges) -> int:
    return sum(end - first for parts in ranges.values() for first, end in parts.values())
