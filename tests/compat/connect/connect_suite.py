"""Kafka Connect, standalone: a file goes to a topic, and from there to another file.

`python -m tests.compat.connect.connect_suite HOST:PORT`. The worker is stopped and started again
while there is more to copy: the source's place is in a file of the worker's, the sink's in the
offsets of its group.
"""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.compat.checks import PATIENCE_S, RUN, Checks
from tests.support.kafka_tools import ROOT, class_path, free_port

POM = ROOT / "tests/compat/connect/pom.xml"
WORKER = "org.apache.kafka.connect.cli.ConnectStandalone"
COPY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
TOPIC, SINK = f"connect-lines-{RUN}", f"sink-{RUN}"
# Kafka's file source counts characters and skips bytes, so these are ASCII.
LINES = [f"{index}: the quick brown fox" for index in range(500)]


class Suite:
    def __init__(self, bootstrap: str, folder: Path) -> None:
        self._bootstrap = bootstrap
        self._folder = folder
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._source, self._copy = folder / "source.txt", folder / "copy.txt"
        self._source.touch()
        self._properties = [
            self._write("worker", self._worker()),
            self._write("source", self._connector("Source", self._source, topic=TOPIC)),
            self._write("sink", self._connector("Sink", self._copy, topics=TOPIC)),
        ]

    def _worker(self) -> dict[str, str]:
        text = "org.apache.kafka.connect.storage.StringConverter"
        return {
            "bootstrap.servers": self._bootstrap,
            "key.converter": text,
            "value.converter": text,
            "offset.storage.file.filename": str(self._folder / "offsets"),
            "offset.flush.interval.ms": "500",
            "listeners": f"http://127.0.0.1:{free_port()}",
            "plugin.discovery": "service_load",
        }

    def _connector(self, kind: str, file: Path, **more: str) -> dict[str, str]:
        return {
            "name": SINK if kind == "Sink" else f"source-{RUN}",
            "connector.class": f"org.apache.kafka.connect.file.FileStream{kind}Connector",
            "tasks.max": "1",
            "file": str(file),
            **more,
        }

    def _write(self, name: str, settings: Mapping[str, str]) -> str:
        path = self._folder / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return str(path)

    @contextmanager
    def worker(self) -> Iterator[None]:
        """Ended as an operator does, so that what it has done is committed."""
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        jars = class_path(POM)
        with (self._folder / "output.txt").open("ab") as output:
            process = subprocess.Popen(
                ["java", "-Xmx384m", quiet, "-cp", jars, WORKER, *self._properties],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise

    def append(self, lines: list[str]) -> None:
        with self._source.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def copied(self) -> list[str]:
        return self._copy.read_text().splitlines() if self._copy.exists() else []

    def until_copied(self, wanted: list[str]) -> None:
        deadline = time.monotonic() + COPY_TIMEOUT_S
        while len(self.copied()) < len(wanted):
            output = (self._folder / "output.txt").read_text()[-300:]
            assert time.monotonic() < deadline, f"{len(self.copied())} lines copied: {output}"
            time.sleep(0.1)
        assert self.copied() == wanted, "the copy differs"

    def make_topic(self) -> None:
        self._admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(PATIENCE_S)

    def copies_a_file(self) -> None:
        self.append(LINES[:300])
        with self.worker():
            self.until_copied(LINES[:300])
            self.append(LINES[300:400])
            self.until_copied(LINES[:400])

    def goes_on(self) -> None:
        self.append(LINES[400:])
        with self.worker():
            self.until_copied(LINES)
            time.sleep(1.0)
            assert self.copied() == LINES, "something was copied twice"

    def topic_has_lines(self) -> None:
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "unused"})
        consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
        messages = consumer.consume(len(LINES) + 1, timeout=5)
        consumer.close()
        values = [(message.value() or b"").decode() for message in messages]
        assert values == LINES, f"{len(values)} lines in the topic"

    def group_is_at_the_end(self) -> None:
        group = f"connect-{SINK}"
        asked = ConsumerGroupTopicPartitions(group)
        found = self._admin.list_consumer_group_offsets([asked])[group].result(PATIENCE_S)
        offsets = [(row.topic, row.partition, row.offset) for row in found.topic_partitions]
        assert offsets == [(TOPIC, 0, len(LINES))], offsets


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    checks = Checks((KafkaException, subprocess.TimeoutExpired))
    try:
        suite = Suite(sys.argv[1], folder)
        suite.make_topic()
        checks.check("a file source and a file sink copy a growing file", suite.copies_a_file)
        checks.check("a new worker goes on where the last one stopped", suite.goes_on)
        checks.check("the topic has every line once", suite.topic_has_lines)
        checks.check("the sink's group has committed the end", suite.group_is_at_the_end)
    finally:
        shutil.rmtree(folder)
    checks.end()


if __name__ == "__main__":
    main()
