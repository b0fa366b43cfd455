"""Pipelines through the runner and Spark, in the session of these tests."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from runnel.pipelines import kinds, moving, status
from runnel.pipelines.failures import DATA_LOSS, PipelineError
from runnel.pipelines.home import Home
from runnel.pipelines.kind import Flow, Kind, Report, Run, Stream
from runnel.pipelines.measuring import Batch
from runnel.pipelines.runner import Runner
from runnel.pipelines.spec import Spec, every_of, read
from runnel.pipelines.status import Status
from tests.spark.conftest import PATIENCE_S, MakeTopic
from tests.support import tables
from tests.support.process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = """\
name: {name}
from: {{topic: {topic}, bootstrap: "{bootstrap}"}}
decode: {{format: json, schema: "id BIGINT, amount DOUBLE", bad_records: skip}}
transform: {{python: "transforms.py:doubled"}}
to: {{table: lake, format: delta}}
"""
TRANSFORM = """\
from pyspark.sql import functions as F


def doubled(rows):
    return rows.select("id", (F.col("amount") * 2).alias("twice"), "offset")
"""


pytestmark = pytest.mark.timeout(600)  # each starts several queries, on a machine that may be busy


class Silent:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def ready(self) -> None:
        pass

    def changed(self, status: Status, batch: Batch | None) -> None:
        pass

    def line(self, text: str) -> None:
        self.lines.append(text)


class Stage:
    def __init__(self, folder: Path, broker: BrokerProcess, topic: str) -> None:
        self.home = Home(folder / "state")
        self.topic = topic
        self.sent = 0
        self.table = folder / "lake"
        self.watch = Silent()
        (folder / "transforms.py").write_text(TRANSFORM)
        text = FILE.format(name=f"p-{topic}", topic=topic, bootstrap=broker.bootstrap)
        self.spec = read(text, folder / "orders.yml", {})

    def send(self, producer: Producer, count: int) -> None:
        for number in range(self.sent, self.sent + count):
            value = json.dumps({"id": number, "amount": number / 4})
            producer.produce(self.topic, "oops" if number % 100 == 7 else value)
        assert producer.flush(PATIENCE_S) == 0
        self.sent += count

    def run(self, spec: Spec | None = None) -> Status:
        spec = spec or self.spec
        return Runner(spec, kinds.find(spec.kind), self.home, self.watch).run()

    def wanted(self) -> list[tuple[int, float]]:
        return [(number, number / 2) for number in range(self.sent) if number % 100 != 7]

    def found(self) -> list[tuple[int, float]]:
        return sorted((row["id"], row["twice"]) for row in tables.rows("delta", self.table))


@pytest.fixture
def stage(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> Stage:
    return Stage(tmp_path, broker, make_topic("orders", partitions=1))


def test_it_goes_on_where_it_stopped_and_begins_elsewhere_when_reset(
    stage: Stage, producer: Producer
) -> None:
    stage.send(producer, 300)
    done = stage.run()
    assert (done.state, done.rows, done.lag) == ("finished", 300, 0)
    stage.send(producer, 50)
    done = stage.run()
    assert (done.batch, done.rows) == (1, 50)
    assert stage.found() == stage.wanted()

    (move,) = moving.plan(stage.spec, stage.home, json.dumps({stage.topic: {"0": 340}}))
    assert (move.now, move.to, move.twice, move.skipped) == (350, 340, 10, 0)
    moving.apply(stage.home, [move])
    assert stage.run().rows == 10
    assert stage.found() == sorted(stage.wanted() + stage.wanted()[-10:])


def test_expired_offsets_stop_it_and_the_range_is_named(
    stage: Stage, producer: Producer, broker: BrokerProcess
) -> None:
    stage.send(producer, 20)
    stage.run()
    stage.send(producer, 20)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for deleted in admin.delete_records([TopicPartition(stage.topic, 0, 33)]).values():
        deleted.result(PATIENCE_S)
    with pytest.raises(PipelineError) as failed:
        stage.run()
    assert failed.value.failure.sort == DATA_LOSS
    assert f"before they were read: offsets 20 to 32 of {stage.topic}-0." in str(failed.value)
    assert "from.on_data_loss: skip" in str(failed.value)

    source = replace(stage.spec.source, on_data_loss="skip")
    assert stage.run(replace(stage.spec, source=source)).rows == 7
    assert stage.found() == [row for row in stage.wanted() if row[0] < 20 or row[0] >= 33]


def test_it_runs_on_makes_way_for_upkeep_and_stops_after_its_batch(
    stage: Stage, producer: Producer, spark: "SparkSession"
) -> None:
    """In one query, which is only stopped for the work between batches, and in another thread."""
    upkeep: list[int] = []
    table = kinds.find("table")

    def build(run: Run) -> Flow:
        flow = table.build(run)
        assert isinstance(flow, Stream)
        return replace(flow, between=lambda: tidied(upkeep, stage), between_every_ms=1500)

    spec = replace(stage.spec, every=every_of("200 ms"))
    kind = Kind("table", "for tests", "", table.check, build)
    runner = Runner(spec, kind, stage.home, stage.watch)
    thread = threading.Thread(target=runner.run)
    thread.start()
    try:
        for _ in range(2):
            stage.send(producer, 100)
            until(partial(is_tidied, runner, upkeep, stage), thread)
        now = status.read(stage.home)
        assert now is not None and now.is_active and now.rows == 200 and now.lag == 0
    finally:
        runner.stop()
        thread.join(PATIENCE_S)
    assert runner.status.state == "stopped"
    assert stage.found() == stage.wanted()
    assert spark.range(3).count() == 3, "a session that was there before is left running"


def tidied(upkeep: list[int], stage: Stage) -> Report:
    upkeep.append(len(stage.found()) if stage.table.exists() else 0)
    return Report(text="tidied up")


def is_tidied(runner: Runner, upkeep: list[int], stage: Stage) -> bool:
    """All that was sent has been counted by the runner, and seen by the work between batches."""
    return runner.status.rows == stage.sent and upkeep[-1:] == [len(stage.wanted())]


def until(holds: Callable[[], bool], thread: threading.Thread) -> None:
    deadline = time.monotonic() + 4 * PATIENCE_S
    while not holds():
        assert thread.is_alive() and time.monotonic() < deadline
        time.sleep(0.05)
