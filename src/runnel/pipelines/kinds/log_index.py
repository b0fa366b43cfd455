"""`log-index`: the search index of topics of logs, for `runnel logs search`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runnel.client.admin import EARLIEST, list_offsets
from runnel.client.cluster import ClientError, Cluster, RefusedError, addresses_of
from runnel.logs.arrow_segments import COLUMNS, segments_of
from runnel.logs.index import DEFAULT_FOLDER, Index
from runnel.logs.segment import SegmentInfo
from runnel.pipelines.kind import Flow, Kind, Option, Problem, Report, Run, Spec, Stream
from runnel.pipelines.reading import input_stream
from runnel.spark import steps

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

TEMPLATE = """\
# Keeps the search index of a topic of logs up to date: `runnel logs search TOPIC 'payment failed'`
# finds lines in it within a second, and what is newer in the topic itself.
name: NAME
kind: log-index

from:
  topic: NAME                      # or topics: [a, b], or pattern: ".*-logs"
  bootstrap: ${RUNNEL_BOOTSTRAP_SERVER:-localhost:9092}
  start: earliest
  on_data_loss: skip               # lines that have expired before they were indexed are gone

options:
  index: .runnel/logs              # a folder for each topic in it; all executors must reach it
  #lines_per_batch: 2000000

every: 1 minute                    # once; continuous
"""
MADE_SCHEMA = (
    "topic string, file string, partition int, start bigint, end bigint, lines bigint,"
    " size_bytes bigint, min_ms bigint, max_ms bigint"
)
OPTIONS = (
    Option("index", "text", "the folder that holds the indexes, one per topic", DEFAULT_FOLDER),
    Option(
        "lines_per_batch", "whole", "how many lines a batch takes at most", 2_000_000, least=1000
    ),
)


def check(spec: Spec) -> Iterator[Problem]:
    if not (spec.source.topics or spec.source.pattern):
        yield Problem("from", "from.topic is missing: which topic has the logs?")
    if spec.to.table or spec.to.topic:
        yield Problem("to", "log-index writes to the folder options.index: leave `to` out")
    if spec.decode.format:
        yield Problem("decode", "log-index reads JSON and text by itself: leave `decode` out")
    if spec.transform.sql or spec.transform.python:
        yield Problem(
            "transform", "log-index points to the records as they are: leave `transform` out"
        )


def build(run: Run) -> Flow:
    root = root_of(run.spec)
    root.mkdir(parents=True, exist_ok=True)
    cores = run.spark.sparkContext.defaultParallelism
    rows = input_stream(
        run,
        maxOffsetsPerTrigger=str(run.spec.options.whole("lines_per_batch")),
        minPartitions=str(cores),
    )
    batches = _Batches(run.spec, root, run.query_id)
    writer = rows.select(*COLUMNS).writeStream.foreachBatch(batches.index)
    return Stream(writer, between=batches.tidy)


def root_of(spec: Spec) -> Path:
    return spec.root / Path(spec.options.text("index")).expanduser()


class SegmentTask:
    """Called by `mapInArrow` in a task: rows to segments, of which it tells by MADE_SCHEMA."""

    def __init__(self, root: str) -> None:
        self._root = root

    def __call__(self, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        kinds = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}
        fields = [field.strip().split(" ") for field in MADE_SCHEMA.split(",")]
        schema = pa.schema([(name, kinds[kind]) for name, kind in fields])
        for made in segments_of(batches, Path(self._root)):
            steps.reached("segment written")
            row = {"topic": made.topic, **made.info._asdict()}
            yield pa.RecordBatch.from_pylist([row], schema=schema)


class _Batches:
    """What the driver does: Spark's tasks write segments, this puts them into the index."""

    def __init__(self, spec: Spec, root: Path, query_id: str) -> None:
        self._spec, self._root, self._query_id = spec, root, query_id
        self._topic_ids: dict[str, str] = {}

    def index(self, rows: "DataFrame", batch: int) -> None:
        """May be called again with the same rows, after a crash: what is there is left out."""
        made = rows.mapInArrow(SegmentTask(str(self._root)), MADE_SCHEMA).collect()
        steps.reached("all segments written")
        by_topic: dict[str, list[SegmentInfo]] = {}
        for topic, *info in made:
            by_topic.setdefault(topic, []).append(SegmentInfo(*info))
        for topic, infos in sorted(by_topic.items()):
            Index(self._root, topic).commit(
                infos, topic_id=self._topic_id(topic), batch=(self._query_id, batch)
            )
            steps.reached("index committed")

    def tidy(self) -> Report | None:
        """Small segments become large ones; what the topics have deleted goes."""
        merged = expired = 0
        for index in self._indexes():
            index.sweep()
            expired += index.expire(self._log_starts(index.topic))
            while count := index.merge():
                merged += count
        if not (merged or expired):
            return None
        text = f"{merged} segments merged, {expired:,} lines dropped that the topic has deleted"
        return Report(text=text, facts={"segments_merged": merged, "lines_dropped": expired})

    def _indexes(self) -> Sequence[Index]:
        found = [Index(self._root, path.name) for path in sorted(self._root.iterdir())]
        wanted = set(self._spec.source.topics) | set(self._topic_ids)
        return [index for index in found if index.exists and index.topic in wanted]

    def _topic_id(self, topic: str) -> str:
        """Empty where the topic has none, or is gone already."""
        if topic not in self._topic_ids:
            with self._cluster() as cluster:
                try:
                    found = cluster.topic(topic).topic_id
                except RefusedError:
                    return ""
            self._topic_ids[topic] = found.hex() if any(found) else ""
        return self._topic_ids[topic]

    def _log_starts(self, topic: str) -> dict[int, int]:
        try:
            with self._cluster() as cluster:
                partitions = [row.partition_index for row in cluster.topic(topic).partitions]
                return list_offsets(cluster, topic, dict.fromkeys(partitions, EARLIEST))
        except ClientError:
            return {}  # the next time; nothing is found that the topic has not

    def _cluster(self) -> Cluster:
        return Cluster(addresses_of(self._spec.source.bootstrap))


def explain(spec: Spec) -> Iterator[str]:
    yield f"index: {root_of(spec)}, a folder for each topic"
    yield "a line is known by its topic, partition and offset, and stands in the index once"


KIND = Kind(
    name="log-index",
    summary="the search index of topics of logs, for `runnel logs search`",
    template=TEMPLATE,
    check=check,
    build=build,
    options=OPTIONS,
    guarantee="each line exactly once",
    explain=explain,
)
