"""Dead letters looked at, tried again and thrown away.

To try again is to decode and transform as the pipeline does now. What passes goes to the table
under a number of its own and then leaves the dead letters; which ones those are is noted before,
so that a kill in between neither loses a record nor writes it twice.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runnel.pipelines import dead_letters, upkeep
from runnel.pipelines.spec import Spec
from runnel.spark import steps
from runnel.spark.lake.kept_files import Kept, read_all
from runnel.spark.lake.lake_options import TableError
from runnel.spark.lake.lake_table import Query, open_table
from runnel.spark.lake.overwriting import overwrite

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

NOTE: Final = "dlq-replay.json"
LETTERS_MAX: Final = 1_000_000
PLACE: Final = ("topic", "partition", "offset")

Place = tuple[str, int, int]


class Replayed(NamedTuple):
    passed: int
    failed: int
    reasons: dict[str, int]  # of what does not pass


def kept(spec: Spec) -> Kept | None:
    """The table of dead letters; None where there is none yet. Raises TableError."""
    topic = dead_letters.to_topic(spec)
    if topic:
        raise TableError(
            f"dead letters of {spec.name} are in the topic {topic}: look at them with 'runnel"
            f" consume {topic}', send them back with runnel.client.replay"
        )
    found = open_table(dead_letters.lake(spec)).kept()
    if found is not None:
        size_bytes = sum(file.size_bytes for file in found.files)
        if size_bytes > 4 << 30:
            raise TableError(
                f"{found.where} has {size_bytes / 1e9:.1f} GB, too much to hold in memory; read it"
                f" with Spark, and see why so much does not fit"
            )
    return found


def letters(spec: Spec) -> "list[dict[str, Any]]":
    """All of them, oldest first."""
    found = kept(spec)
    rows: list[dict[str, Any]] = [] if found is None else read_all(found).to_pylist()
    return sorted(rows, key=lambda row: (row["failed_at"], row["topic"], row["offset"]))


def reasons(rows: "Sequence[dict[str, Any]]") -> Counter[str]:
    """How many for each, with numbers and quotations left out: those differ in each record."""
    return Counter(reason(row["error"]) for row in rows)


def reason(error: str | None) -> str:
    import re

    text = re.sub(r"'[^']*'|\"[^\"]*\"", "...", error or "?")
    return re.sub(r"\d+", "N", text)[:120]


def purge(spec: Spec, before_ms: int | None, containing: str | None) -> int:
    """Those that failed before, and whose reason has that text; how many went."""
    if kept(spec) is None:
        return 0

    def stay(rows: "pa.Table") -> "pa.Table":
        import pyarrow as pa

        flags = [
            (before_ms is not None and row["failed_at"].timestamp() * 1000 >= before_ms)
            or (containing is not None and containing not in (row["error"] or ""))
            for row in rows.select(["failed_at", "error"]).to_pylist()
        ]
        return rows.filter(pa.array(flags, pa.bool_()))

    return overwrite(dead_letters.lake(spec), stay)


def replay(spec: Spec, spark: "SparkSession", notes: Path, tell: Callable[[str], None]) -> Replayed:
    """Try all again. Raises TableError, and whatever the transform does."""
    query = Query(f"{spec.name}-dlq-replay", "batch")
    finish(spec, notes, query)
    found = kept(spec)
    if found is None:
        return Replayed(0, 0, {})
    table = read_all(found)
    if table.num_rows > LETTERS_MAX:
        raise TableError(
            f"{table.num_rows} dead letters are more than {LETTERS_MAX}: purge those that nobody"
            f" needs, with 'runnel pipeline dlq purge {spec.name} --reason TEXT'"
        )
    if table.num_rows == 0:
        return Replayed(0, 0, {})
    number = open_table(upkeep.lake(spec)).last_batch(query) + 1
    columns = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
    records = spark.createDataFrame(table.select(columns)).dropDuplicates(list(PLACE))
    records = records.selectExpr(*columns, "0 as timestampType")
    if spec.kind == "cdc":
        return _changes(spec, records, notes, query, number, tell)
    from runnel.pipelines.table_batches import TableBatches

    batches = TableBatches(spec, spec.name, notes, tell)
    read = batches.read(batches.raw(records)).persist()
    try:
        bad = read.where("_error is not null").select(*PLACE, "_error").collect()
        failed = {(row[0], row[1], row[2]) for row in bad}
        passed = _places(table) - failed
        if passed:
            _note(notes, number, passed)
            batches.to_table(read.where("_error is null"), query.name, number)
            steps.reached("replayed")
            finish(spec, notes, query)
        return Replayed(len(passed), len(failed), dict(Counter(reason(row[3]) for row in bad)))
    finally:
        read.unpersist()


def _changes(
    spec: Spec,
    records: Any,  # noqa: ANN401  # a DataFrame
    notes: Path,
    query: Query,
    number: int,
    tell: Callable[[str], None],
) -> Replayed:
    """Of rows that are merged: to merge one twice changes nothing, so no note is needed."""
    from dataclasses import replace

    from runnel.pipelines.cdc_batches import CdcBatches

    json_spec = replace(spec, decode=replace(spec.decode, format="json"))
    batches = CdcBatches(json_spec, spec.name, notes, tell)
    all_places = {(row[0], row[1], row[2]) for row in records.select(*PLACE).collect()}
    bad = batches.merge(records, query.name, number)
    failed = {(row["topic"], row["partition"], row["offset"]) for row in bad}
    passed = all_places - failed
    remove(spec, passed)
    why = dict(Counter(reason(row["error"]) for row in bad))
    return Replayed(len(passed), len(failed), why)


def finish(spec: Spec, notes: Path, query: Query) -> None:
    """What a replay that was killed had noted: if its rows are in the table, the letters go."""
    file = notes / NOTE
    try:
        plan = json.loads(file.read_text())
    except FileNotFoundError:
        return
    if open_table(upkeep.lake(spec)).last_batch(query) >= plan["number"]:
        remove(spec, {(topic, partition, offset) for topic, partition, offset in plan["places"]})
    file.unlink()


def remove(spec: Spec, places: set[Place]) -> int:
    def others(rows: "pa.Table") -> "pa.Table":
        import pyarrow as pa

        listed = zip(*(rows[name].to_pylist() for name in PLACE), strict=True)
        return rows.filter(pa.array([place not in places for place in listed], pa.bool_()))

    return overwrite(dead_letters.lake(spec), others) if places else 0


def _note(notes: Path, number: int, places: set[Place]) -> None:
    part = notes / f"{NOTE}.part"
    part.write_text(json.dumps({"number": number, "places": sorted(places)}))
    part.replace(notes / NOTE)


def _places(table: "pa.Table") -> set[Place]:
    return set(zip(*(table[name].to_pylist() for name in PLACE), strict=True))
