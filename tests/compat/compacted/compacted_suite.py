"""A log that Runnel compacted, read by Kafka; compacted further by Kafka, and read by Runnel.

Run as `python -m tests.compat.compacted.compacted_suite`. The log has every codec, tombstones,
committed and aborted transactions and producers of which only an empty batch is left. Kafka's
DumpLogSegments must find nothing but gaps in it; a Kafka 4.3 broker that gets the files as those of
a topic of its own must serve the same committed records at the same offsets, compact them on with
what is written to it, and leave a folder in which Runnel finds the same last values.
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from runnel.config.topic import LogConfig
from runnel.inspect.folders import look_into
from runnel.inspect.verifying import Finding, Verifier
from runnel.native.compression import Compression
from runnel.storage.files import OsDisk
from tests.compat.checks import PATIENCE_S, Checks
from tests.compat.dump.dumped import dump
from tests.support.compacting import committed, headers, latest
from tests.support.kafka_tools import KafkaBroker, KafkaToolError
from tests.support.stores import FOLDER
from tests.support.writing import World

CONFIG = LogConfig(
    segment_bytes=1 << 20, index_interval_bytes=256, cleanup_policy=frozenset({"compact"})
)
NAME = "topic-0"
KEYS, ROUNDS = 100, 30
CLEANER = {
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.bytes": str(1 << 20),
    "log.retention.ms": "-1",
}
GAP = "gap in segment"


class Suite:
    """Works in the current folder: Runnel's data in `data`, Kafka's in `kafka`."""

    def __init__(self) -> None:
        self.world = World(CONFIG, OsDisk())
        self.world.clock.wall = int(time.time() * 1000) - 3_600_000
        self.kafka = KafkaBroker(Path.cwd() / "kafka", settings=CLEANER)
        self.read: list[tuple[int, bytes | None, bytes | None]] = []

    def runnel_compacts(self) -> None:
        world = self.world
        codecs = list(Compression)
        sequence = 0
        for number in range(ROUNDS):
            pairs = [(f"key{n}", f"{number} {n} " * 20) for n in range(number % 7, KEYS, 3)]
            world.put(*pairs, codec=codecs[number % 5])
            world.put((f"gone{number}", None), (f"key{number}", None))
            world.put(("own", str(number)), producer_id=10, sequence=number)
            for producer_id, commit in ((20, True), (21, False)):
                world.put(
                    (f"txn{number % 4}", f"{number} {commit}"), (f"key{number}", "txn"),
                    producer_id=producer_id, sequence=sequence, transactional=True,
                )  # fmt: skip
                world.end(producer_id, commit=commit)
            sequence += 2
            world.clock.advance(1_000)
            if number % 10 == 9:
                world.clean()
        world.put(("own", "another's"))
        world.clean()
        world.put(("active", "1"))
        world.store.close_clean(1, {})
        found = headers(world.log)
        assert any(h.record_count == 0 for h in found), "no empty batch is left"
        assert len(found) < ROUNDS * 5

    def the_tool_finds_gaps_alone(self) -> None:
        folder = Path(FOLDER) / NAME
        logs = dump(sorted(folder.glob("*.log")), "--deep-iteration", "--print-data-log")
        complaints = [
            line
            for line in logs.complaints
            if not line.startswith(GAP) and "endTxnMarker" not in line
        ]
        assert not complaints, complaints[:3]
        offsets = [record.offset for log in logs.files.values() for record in log.records]
        assert {seen.offset for seen in committed(self.world.log)} <= set(offsets)
        rest = [path for path in sorted(folder.iterdir()) if path.suffix.endswith("index")]
        complaints = [
            line
            for line in dump(rest).complaints + dump(rest, "--index-sanity-check").complaints
            if not line.startswith("version: 0 producerId: 21 ")  # an aborted transaction
            and not line.endswith(".index is empty.")  # of the active segment
        ]
        assert not complaints, complaints[:3]

    def runnel_verifies_it(self) -> None:
        disk = OsDisk(read_only=True)
        found = look_into(disk, str(Path(FOLDER) / NAME))
        findings: list[Finding] = []
        Verifier(disk, findings.append, deep=True).verify(found, found.partitions)
        assert not findings, findings[:3]

    def kafka_serves_the_same(self) -> None:
        with self.kafka:
            admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
            new = NewTopic("topic", 1, 1, config={"cleanup.policy": "compact"})
            admin.create_topics([new])["topic"].result(PATIENCE_S)
        target = self.kafka.data_dir / NAME
        for path in target.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for path in (Path(FOLDER) / NAME).iterdir():
            if path.name != "partition.metadata":
                shutil.copy(path, target)
        with self.kafka:
            self.read = _consume(self.kafka.bootstrap)
        assert self.read == [(s.offset, s.key, s.value) for s in committed(self.world.log)]

    def kafka_compacts_on(self) -> None:
        segment = sorted((self.kafka.data_dir / NAME).glob("*.log"))[0]
        before = segment.stat().st_mtime_ns, segment.stat().st_size
        with self.kafka:
            producer = Producer({"bootstrap.servers": self.kafka.bootstrap})
            for number in range(3_000):
                producer.produce("topic", b"%d" % number * 200, b"key%d" % (number % 50))
                producer.poll(0)
            assert producer.flush(PATIENCE_S) == 0
            deadline = time.monotonic() + 60
            while (segment.stat().st_mtime_ns, segment.stat().st_size) == before:
                assert time.monotonic() < deadline, "Kafka did not compact"
                time.sleep(0.5)
            self.read = _consume(self.kafka.bootstrap)

    def runnel_opens_what_kafka_left(self) -> None:
        shutil.rmtree(Path(FOLDER))
        shutil.copytree(self.kafka.data_dir, Path(FOLDER))
        for name in ("meta.properties", "bootstrap.checkpoint"):
            (Path(FOLDER) / name).unlink(missing_ok=True)
        shutil.rmtree(Path(FOLDER) / "__cluster_metadata-0")
        self.world.open()
        values: dict[bytes, bytes] = {}
        for _, key, value in self.read:
            assert key is not None
            values.pop(key, None)
            if value is not None:
                values[key] = value
        assert {key: value for key, (_, value, _) in latest(self.world.log).items()} == values
        assert self.world.log.first_dirty_offset > 0, "Kafka's checkpoint is read"
        self.world.clean()
        assert {key: value for key, (_, value, _) in latest(self.world.log).items()} == values


def _consume(bootstrap: str) -> list[tuple[int, bytes | None, bytes | None]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "check.crcs": True,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition("topic", 0, 0)])
    found: list[tuple[int, bytes | None, bytes | None]] = []
    while True:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "nothing came"
        if (error := message.error()) is not None:
            assert error.name() == "_PARTITION_EOF", error
            break
        offset, key, value = message.offset(), message.key(), message.value()
        assert offset is not None
        found.append((offset, _raw(key), _raw(value)))
    consumer.close()
    return found


def _raw(content: bytes | str | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def main() -> None:
    checks = Checks((KafkaException, KafkaToolError))
    home = Path.cwd()
    sys.path.insert(0, str(home))
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        suite = Suite()
        checks.check("Runnel compacts a log of every kind", suite.runnel_compacts)
        checks.check("DumpLogSegments finds nothing but gaps", suite.the_tool_finds_gaps_alone)
        checks.check("runnel storage verify finds nothing", suite.runnel_verifies_it)
        checks.check("a Kafka broker serves the same records", suite.kafka_serves_the_same)
        checks.check("Kafka compacts it on", suite.kafka_compacts_on)
        checks.check("Runnel opens what Kafka compacted", suite.runnel_opens_what_kafka_left)
        os.chdir(home)
    checks.end()


if __name__ == "__main__":
    main()
