"""Pipelines as users run them: how old a table's rows are when they appear, how large its files.

Only Runnel has these; the connector's column stays empty.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from confluent_kafka import Producer

from bench.model import Measure
from bench.spark.model import RUNNEL, Cell, Stage
from runnel.bench.topics import make_topic
from runnel.client.raw import WireClient

FRESHNESS = "freshness of a table p95, 10 k records/s, every 2 s"
FILES = "files after compaction, furthest from 128 MB"
RATE_PER_S, TICK_S = 10_000, 0.02
FIRST_S = 10.0  # of a pipeline, which are no steady state
PATIENCE_S = 180.0
TARGET_BYTES = 128 << 20
SMALL_FILES = 60
PIPELINE = """\
name: fresh
from: {{topic: {topic}, bootstrap: "{bootstrap}"}}
decode: {{format: json, schema: "id BIGINT, user STRING, amount DOUBLE, note STRING"}}
to: {{table: lake/fresh, format: delta}}
every: 2 seconds
spark: {{cores: 2, memory: 1g}}
"""


def _freshness(stage: Stage, target: str) -> float | None:
    """Seconds from a record's own timestamp until the commit that shows it, of 95 % of them."""
    if target != RUNNEL:
        return None
    folder = stage.folder / f"fresh-{os.urandom(4).hex()}"
    (folder / "pipelines").mkdir(parents=True)
    with WireClient(stage.broker.address) as client:
        topic = make_topic(client, folder.name, 4)
        text = PIPELINE.format(topic=topic.name, bootstrap=stage.broker.bootstrap)
        (folder / "pipelines" / "fresh.yml").write_text(text)
        pipeline = _start(folder)
        try:
            sent = _send(stage, topic.name, folder / "lake" / "fresh", pipeline)
            ages_s = _wait_for(folder / "lake" / "fresh", sent, pipeline)
        finally:
            _end(pipeline)
        client.delete_topic(topic.name)
    shutil.rmtree(folder)
    ages_s.sort()
    return ages_s[int(len(ages_s) * 0.95)]


def _start(folder: Path) -> "subprocess.Popen[bytes]":
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "runnel", "pipeline", "run", "fresh"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def _end(pipeline: "subprocess.Popen[bytes]") -> None:
    pipeline.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        pipeline.wait(60)
    if pipeline.poll() is None:
        pipeline.kill()
        pipeline.wait()


def _send(stage: Stage, topic: str, table: Path, pipeline: "subprocess.Popen[bytes]") -> int:
    """At the rate from the first commit on, and for as long as is measured after it."""
    producer = Producer({"bootstrap.servers": stage.broker.bootstrap, "log_level": 0})
    wait = threading.Event()  # nobody sets it: it keeps the rate whatever sending takes
    producer.produce(topic, _record(0))
    producer.flush(30)
    give_up = time.monotonic() + PATIENCE_S
    while not any(table.glob("_delta_log/*.json")):
        assert pipeline.poll() is None, "the pipeline has ended"
        assert time.monotonic() < give_up, "the pipeline did not begin"
        wait.wait(0.1)
    started, sent = time.monotonic(), 1
    while (passed := time.monotonic() - started) < FIRST_S + stage.scale.freshness_s:
        while sent < passed * RATE_PER_S:
            producer.produce(topic, _record(sent), partition=sent % 4)
            sent += 1
        producer.poll(0)
        wait.wait(TICK_S)
    assert producer.flush(30) == 0
    reached = sent / (time.monotonic() - started)
    assert reached > 0.95 * RATE_PER_S, f"only {reached:,.0f} records/s were sent"
    return sent


def _record(number: int) -> bytes:
    user = f"user-{number % 5000}"
    return json.dumps({"id": number, "user": user, "amount": number / 7, "note": "x" * 30}).encode()


def _wait_for(table: Path, sent: int, pipeline: "subprocess.Popen[bytes]") -> list[float]:
    """The age of each record at its commit, once all are there; those of the first seconds not."""
    give_up = time.monotonic() + PATIENCE_S
    while (rows := _rows(table)) < sent:
        assert pipeline.poll() is None, "the pipeline has ended"
        assert time.monotonic() < give_up, f"only {rows:,} of {sent:,} rows are in the table"
        time.sleep(0.5)
    assert rows == sent, f"{rows:,} rows instead of {sent:,}"
    return _ages_s(table)


def _rows(table: Path) -> int:
    from deltalake import DeltaTable

    return DeltaTable(str(table)).count()


def _ages_s(table: Path) -> list[float]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    ages_s: list[float] = []
    for entry in sorted((table / "_delta_log").glob("*.json")):
        seen_ms = entry.stat().st_mtime_ns / 1e6
        for line in entry.read_text().splitlines():
            if (added := json.loads(line).get("add")) is None:
                continue
            stamps = pq.read_table(table / added["path"], columns=["timestamp"])["timestamp"]
            sent_ms = stamps.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
            ages_s += ((seen_ms - sent_ms.to_numpy()) / 1000).tolist()
    return ages_s[round(FIRST_S * RATE_PER_S) :]


def _files(stage: Stage, target: str) -> float | None:
    """Per cent. Small files of a gigabyte of records are compacted; the worst of the new ones."""
    if target != RUNNEL:
        return None
    import numpy as np
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    from runnel.spark.lake.lake_options import parse
    from runnel.spark.lake.maintenance import maintain

    table = stage.folder / f"files-{os.urandom(4).hex()}"
    chance = np.random.default_rng(1)
    rows = stage.scale.compacted_bytes // SMALL_FILES // 128
    for number in range(SMALL_FILES):
        values = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(120), rows, [None, pa.py_buffer(chance.bytes(rows * 120))]
        )
        offsets = pa.array(range(number * rows, (number + 1) * rows))
        batch = pa.table({"offset": offsets, "value": values.cast(pa.binary())})
        write_deltalake(str(table), batch, mode="append")
    options = parse(
        {"table": str(table), "tableFormat": "delta", "targetFileSize": str(TARGET_BYTES)}
    )
    maintain(options, expire_after_ms=None)
    after = DeltaTable(str(table))
    assert after.count() == SMALL_FILES * rows, "compaction lost rows"
    sizes = [int(size) for size in after.get_add_actions(flatten=True)["size_bytes"].to_pylist()]
    shutil.rmtree(table)
    assert 1 < len(sizes) < SMALL_FILES, f"{len(sizes)} files after compaction"
    return max(abs(size / TARGET_BYTES - 1) for size in sizes) * 100


PIPELINE_CELLS = (
    Cell(Measure(FRESHNESS, "s"), _freshness),
    Cell(Measure(FILES, "%"), _files),
)
