"""docs/from-kafka.md, from its first command to its last, with a real Kafka beside Runnel.

`python -m tests.compat.migration.migration_suite runnel`. Three commands of Kafka's distribution
are done by what the tests have of it: MirrorMaker runs as a Java class, Kafka is stopped by its
process id, and `config/server.properties` is the file that it was started with.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.compat.checks import PATIENCE_S, Checks
from tests.support.blocks import Block, blocks_of
from tests.support.examples import Example, agrees, commands_of
from tests.support.kafka_tools import QUIET, ROOT, KafkaBroker, KafkaToolError, class_path
from tests.support.process import PACKAGES, BrokerError, BrokerProcess
from tests.support.search_path import search_path

PAGE = ROOT / "docs/from-kafka.md"
POM = ROOT / "tests/compat/migration/pom.xml"
KAFKA, RUNNEL = "localhost:9092", "localhost:9093"  # as the page has them
MIRROR = "bin/connect-mirror-maker.sh mm2.properties &"
STOP_KAFKA = "bin/kafka-server-stop.sh"
SERVE = "runnel serve --config config/server.properties"
MIRRORED_TIMEOUT_S = 90.0
ORDERS = [("table 4", "tea"), ("table 7", "cake"), ("table 4", "more tea")] * 2
VISITORS = ["Ada", "Grace", "Edsger", "Barbara"]
PRICES = [("tea", "3.50"), ("cake", "4.20")]


def prepare(bootstrap: str) -> None:
    """What the page finds in Kafka: three topics, one of them compacted, and a group."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topics = [
        NewTopic("orders", 2, 1),
        NewTopic("visits", 1, 1),
        NewTopic("prices", 1, 1, config={"cleanup.policy": "compact"}),
    ]
    for made in admin.create_topics(topics).values():
        made.result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for topic, rows in (("orders", ORDERS), ("prices", PRICES)):
        for key, value in rows:
            producer.produce(topic, value, key, headers={"waiter": "Ada"})
    for visitor in VISITORS:
        producer.produce("visits", visitor)
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "door", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["visits"])
    read = 0
    while read < len(VISITORS):
        read += len(consumer.consume(len(VISITORS) - read, timeout=PATIENCE_S))
    consumer.commit(asynchronous=False)
    consumer.close()


class Walk:
    """Goes through the page; what it has started ends with it."""

    def __init__(self, folder: Path, ending: ExitStack) -> None:
        self._work_dir = folder / "work"
        self._ending = ending
        self._mirroring = ending.enter_context(ExitStack())
        self._kafka = KafkaBroker(folder / "kafka-data")
        self._runnel = BrokerProcess(folder / "data")
        self._patience_s = 0.0  # MirrorMaker takes its time; nothing else may
        for broker in (self._kafka, self._runnel):
            ending.enter_context(broker)
        prepare(self._kafka.bootstrap)
        config = self._work_dir / "config"
        config.mkdir(parents=True)
        shutil.copy(folder / "kafka-data.kafka/server.properties", config)
        self._environment = {
            **os.environ,
            "PATH": search_path(folder / "bin"),
            "PYTHONPATH": str(PACKAGES),
            "RUNNEL_BOOTSTRAP_SERVER": self._kafka.bootstrap,  # Runnel's, later: the same port
        }

    def follow(self, block: Block) -> None:
        if block.title is not None:
            (self._work_dir / block.title).write_text(self._with_addresses(block.body))
            return
        for example in commands_of(block.body, block.line):
            self._do(example)

    def _do(self, example: Example) -> None:
        if example.command == MIRROR:
            self._mirroring.enter_context(_mirror_maker(self._work_dir))
            self._patience_s = MIRRORED_TIMEOUT_S
        elif example.command == STOP_KAFKA:
            self._mirroring.close()  # as the page says: first MirrorMaker, then Kafka
            self._kafka.stop()
            self._patience_s = 0.0
        elif example.command == SERVE:
            ready = self._ending.enter_context(_served(self._work_dir, self._environment))
            assert agrees(example.output, self._as_shown(ready)), ready
        else:
            self._run(example)

    def _run(self, example: Example) -> None:
        deadline = time.monotonic() + self._patience_s
        while True:
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", self._with_addresses(example.command)],
                cwd=self._work_dir,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
            )
            out, err = self._as_shown(done.stdout), self._as_shown(done.stderr)
            shown = example.output
            if done.returncode == 0 and (agrees(shown, out) or agrees(shown, out + err)):
                return
            assert time.monotonic() < deadline, (
                f"line {example.line}: {example.command}: {done.returncode}: {out}{err}"
            )
            time.sleep(0.5)

    def _with_addresses(self, text: str) -> str:
        return text.replace(KAFKA, self._kafka.bootstrap).replace(RUNNEL, self._runnel.bootstrap)

    def _as_shown(self, text: str) -> str:
        return text.replace(self._kafka.bootstrap, KAFKA).replace(self._runnel.bootstrap, RUNNEL)


@contextmanager
def _mirror_maker(work_dir: Path) -> Iterator[None]:
    main_class = "org.apache.kafka.connect.mirror.MirrorMaker"
    command = ["java", "-Xmx512m", QUIET, "-cp", class_path(POM), main_class, "mm2.properties"]
    with _running(command, work_dir, {**os.environ}):
        yield


@contextmanager
def _served(work_dir: Path, environment: dict[str, str]) -> Iterator[str]:
    """The page's own command; yields the line that says where it is ready."""
    with _running(["bash", "-c", f"exec {SERVE}"], work_dir, environment) as output:
        deadline = time.monotonic() + PATIENCE_S
        while "is ready" not in (log := output.read_text()):
            assert time.monotonic() < deadline, log
            time.sleep(0.02)
        yield next(line for line in log.splitlines() if "is ready" in line)


@contextmanager
def _running(command: list[str], work_dir: Path, environment: dict[str, str]) -> Iterator[Path]:
    output = work_dir / f"{Path(command[0]).name}.output"
    with output.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=work_dir, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield output
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    checks = Checks((KafkaException, KafkaToolError, BrokerError, subprocess.TimeoutExpired))
    blocks = [block for block in blocks_of(PAGE) if not block.is_shown_only]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ending:
        walk = Walk(Path(folder), ending)
        for block in blocks:
            checks.check(f"{PAGE.name}:{block.line}", partial(walk.follow, block))
    checks.end()


if __name__ == "__main__":
    main()
