"""Readers of the data source without Spark: planned here, read here, as Spark would do it."""

import json
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql.datasource import CaseInsensitiveDict, DataSourceReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

from runnel.arrow.ranges import Range
from runnel.spark.reads.batch import OffsetRange
from runnel.spark.reads.source import RunnelDataSource
from runnel.spark.reads.streaming import StreamReader

Offset = dict[str, dict[str, Any]]


def source(bootstrap: str, options: Mapping[str, object]) -> RunnelDataSource:
    given = {"kafka.bootstrap.servers": bootstrap, **options}
    return RunnelDataSource(CaseInsensitiveDict({key: str(text) for key, text in given.items()}))


def batch_reader(
    bootstrap: str, options: Mapping[str, object], schema: StructType | None = None
) -> DataSourceReader:
    made = source(bootstrap, options)
    return made.reader(schema or made.schema())


def batch_rows(
    bootstrap: str, options: Mapping[str, object], schema: StructType | None = None
) -> list[dict[str, Any]]:
    """Each range read by a pickled copy, as by a task."""
    reader = batch_reader(bootstrap, options, schema)
    return rows_of(reader, list(reader.partitions()))


def pieces(partitions: Iterable[InputPartition]) -> list[Range]:
    """The ranges that tasks would read."""
    found = list(partitions)
    return [each.piece for each in found if isinstance(each, OffsetRange)]


def rows_of(reader: Any, partitions: list[InputPartition]) -> list[dict[str, Any]]:  # noqa: ANN401  # of batch or stream
    task = pickle.loads(pickle.dumps(reader))  # our own
    return [
        row
        for partition in pickle.loads(pickle.dumps(partitions))
        for batch in task.read(partition)
        for row in batch.to_pylist()
    ]


class Query:
    """Calls a stream reader in the order in which Spark does; offsets go through JSON."""

    def __init__(self, bootstrap: str, options: Mapping[str, object]) -> None:
        made = source(bootstrap, options)
        reader = made.streamReader(made.schema())
        assert isinstance(reader, StreamReader)
        self.reader = reader
        self.start: str | None = None  # end of the last batch, as in the checkpoint
        self.planned: tuple[str, str] | None = None

    def plan(self, limit: ReadLimit | None = None) -> bool:
        """Whether there is a next batch; it is then in the log of offsets."""
        start = self.start or json.dumps(self.reader.initialOffset())
        wanted = limit or self.reader.getDefaultReadLimit()
        end = json.dumps(self.reader.latestOffset(json.loads(start), wanted))
        self.planned = None if end == start else (start, end)
        return self.planned is not None

    def run(self) -> list[dict[str, Any]]:
        """The rows of the planned batch, whose start is asked for again if it is the first."""
        assert self.planned is not None
        start, end = self.planned
        if self.start is None:
            start = json.dumps(self.reader.initialOffset())
        bounds = json.loads(start), json.loads(end)
        found = rows_of(self.reader, self.reader.partitions(*bounds))
        self.start = end
        return found

    def batch(self, limit: ReadLimit | None = None) -> list[dict[str, Any]] | None:
        """None if there is nothing to read."""
        return self.run() if self.plan(limit) else None

    def everything(self) -> list[dict[str, Any]]:
        return self.batch(ReadAllAvailable()) or []

    def stop(self) -> None:
        self.reader.stop()
