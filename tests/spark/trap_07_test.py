"""Trap 7: a writer is not told its batch. The number is among the properties of its task."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from runnel.spark.tasks import Task, this_task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


class Told(WriterCommitMessage):
    def __init__(self, task: Task, rows: int) -> None:
        self.task = task
        self.rows = rows


class Teller(DataSourceStreamArrowWriter):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Told:
        return Told(this_task(), sum(batch.num_rows for batch in iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        told = [message.task for message in messages if isinstance(message, Told) and message.rows]
        (self._folder / str(batchId)).write_text(json.dumps([task._asdict() for task in told]))


class TellingSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "telling"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        return Teller(Path(self.options["folder"]))


def test_trap_07_a_task_finds_its_batch(spark: "SparkSession", tmp_path: Path) -> None:
    folder = tmp_path / "told"
    folder.mkdir()
    spark.dataSource.register(TellingSource)
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    query = (
        rows.writeStream.format("telling")
        .option("folder", str(folder))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        while query.isActive and len(list(folder.iterdir())) < 3:
            query.awaitTermination(1)
    finally:
        query.stop()
    metadata = json.loads((tmp_path / "checkpoint" / "metadata").read_text())
    for batch in range(3):
        told = json.loads((folder / str(batch)).read_text())
        assert told
        assert {task["batch_id"] for task in told} == {batch}
        assert {task["query"] for task in told} == {metadata["id"]}
        assert len({task["attempt"] for task in told}) == len(told)
