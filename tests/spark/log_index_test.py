"""`log-index`: what Spark indexes is found, once, however often it begins again."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from runnel.client.cluster import Cluster, addresses_of
from runnel.client.sending import Sender
from runnel.logs.filters import Filters
from runnel.logs.index import Index, Span
from runnel.logs.query import parse
from runnel.logs.search import search
from runnel.native.columns import Record
from runnel.pipelines.kind import Run, Stream
from runnel.pipelines.kinds.log_index import KIND
from runnel.pipelines.spec import read
from tests.spark.conftest import MakeTopic
from tests.support.process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = 3000


def fill(broker: BrokerProcess, topic: str, first: int, count: int) -> None:
    with Cluster(addresses_of(broker.bootstrap)) as cluster:
        sender = Sender(cluster, topic)
        for number in range(first, first + count):
            value = {"level": "info", "message": f"line {number} of {number % 7}"}
            sender.add(Record(None, json.dumps(value).encode(), 1000 + number), number % 2)
        sender.flush()


def run_once(spark: "SparkSession", text: str, folder: Path) -> Stream:
    run = Run(
        spec=read(text, folder / "logs.yml", {}),
        spark=spark,
        home=folder,
        query_id="logs",
        is_stopping=lambda: False,
        tell=print,
    )
    flow = KIND.build(run)
    assert isinstance(flow, Stream)
    writer = flow.writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return flow


def test_every_line_is_found_once(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic("logs", partitions=2)
    fill(broker, topic, 0, LINES)
    text = f"""
kind: log-index
from: {{topic: {topic}, bootstrap: "{broker.bootstrap}"}}
options: {{index: found, lines_per_batch: 1000}}
"""
    index = Index(tmp_path / "found", topic)
    run_once(spark, text, tmp_path)
    assert index.listed().lines == LINES
    assert index.listed().batches["logs"] >= 2  # of a thousand lines each
    fill(broker, topic, LINES, 500)
    shutil.rmtree(tmp_path / "checkpoint")  # from the beginning again, then
    flow = run_once(spark, text, tmp_path)
    listed = index.listed()
    assert listed.lines == LINES + 500
    assert [listed.covered(at) for at in (0, 1)] == [[Span(0, 1750)], [Span(0, 1750)]]
    found = search(Filters(parse('"of 3"')), index=index, source=None, limit=9999)
    numbers = sorted(int(hit.line.message.split(" ")[1]) for hit in found.hits)
    assert numbers == [number for number in range(LINES + 500) if number % 7 == 3]
    assert {path.name for path in index.folder.glob("*.seg")} == {
        info.file for info in listed.segments
    }
    assert flow.between is not None
    flow.between()
    assert index.listed().lines == LINES + 500
