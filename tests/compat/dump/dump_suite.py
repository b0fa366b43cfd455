"""Kafka's own DumpLogSegments over a data folder that a broker wrote, without a complaint.

Run as `python -m tests.compat.dump.dump_suite runnel`, or with `kafka`, which proves the suite
itself. One topic per compression and one of each thing that makes a broker write batches anew,
all with several segments and idempotent producers; then the tool reads logs, indexes, time
indexes and producer snapshots, after a clean stop and again after a kill and a restart. Faults
are planted at the end: an oracle that accepts them would prove nothing.
"""

import base64
import random
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from runnel.inspect.dumping import dump_file
from runnel.inspect.folders import FolderFiles, PartitionFiles, chosen, look_into
from runnel.inspect.verifying import Checked, Finding, Verifier
from runnel.storage.files import OsDisk
from tests.compat.checks import COMPRESSIONS, FIRST_TIMESTAMP_MS, PATIENCE_S, Checks
from tests.compat.dump.dumped import Dumped, DumpedFile, dump
from tests.support.kafka_tools import KafkaBroker, KafkaToolError
from tests.support.process import BrokerError, BrokerProcess

COUNT = 2_500
SEGMENT_BYTES = 1024 * 1024  # the least that Kafka allows
INDEXES = ("*.index", "*.timeindex")
LOG_OPTIONS = ("--deep-iteration", "--print-data-log")
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # which files, with which options
    "logs": (("*.log",), LOG_OPTIONS),
    "indexes and snapshots": ((*INDEXES, "*.txnindex", "*.snapshot"), ()),
    "index verification": (INDEXES, ("--verify-index-only",)),
    "index sanity": (INDEXES, ("--index-sanity-check",)),
}
CODEC_IN_BROKER = "zstd"
_DISK = OsDisk(read_only=True)


class Topic(NamedTuple):
    name: str
    compression: str  # of the producer
    codec: str  # that the log must show
    config: dict[str, str]


TOPICS = [
    *(Topic(f"dump-{codec}", codec, codec, {}) for codec in COMPRESSIONS),
    Topic("dump-append-time", "gzip", "gzip", {"message.timestamp.type": "LogAppendTime"}),
    Topic("dump-recompressed", "none", CODEC_IN_BROKER, {"compression.type": CODEC_IN_BROKER}),
]


class Suite:
    """Owns one data folder, written by `broker`, what was produced into it and its dumps."""

    def __init__(self, broker: BrokerProcess | KafkaBroker) -> None:
        self._broker = broker
        self._values = _make_values()
        self._copies = 1  # how many times every topic was filled
        self._dumps: dict[str, Dumped] = {}

    def writes(self) -> None:
        with self._broker:
            admin = AdminClient({"bootstrap.servers": self._broker.bootstrap})
            for topic in TOPICS:
                config = {"segment.bytes": str(SEGMENT_BYTES), **topic.config}
                new = NewTopic(topic.name, 1, 1, config=config)
                admin.create_topics([new])[topic.name].result(PATIENCE_S)
            self._fill()

    def writes_and_crashes(self) -> None:
        """A second producer, then a kill, a recovery and a clean stop."""
        with self._broker:
            self._fill()
            self._copies = 2
            self._broker.kill()
        with self._broker:
            pass

    def tool_is_content(self, kind: str) -> None:
        """Dump all files of one kind at once: most of the time goes into starting Java."""
        patterns, options = KINDS[kind]
        folders = [self._folder(topic) for topic in TOPICS]
        paths = [path for folder in folders for way in patterns for path in folder.glob(way)]
        self._dumps[kind] = dump(sorted(paths), *options)
        complaints = self._dumps[kind].complaints
        assert not complaints, f"{len(complaints)} complaints: {complaints[:3]}"
        assert self._dumps[kind].files, "no files"

    def logs_hold_what_was_sent(self, topic: Topic) -> None:
        logs = self._dumped("logs", topic, ".log")
        assert len(logs) > 1, "a single segment: the roll was not tested"
        records = [record for log in logs for record in log.records]
        assert [record.offset for record in records] == list(range(COUNT * self._copies))
        for index, record in enumerate(records):
            expected = index % COUNT
            assert record.key == f"key {expected}", record
            assert record.value == self._values[expected], record
            assert record.header_keys == "index,null", record
            if "message.timestamp.type" not in topic.config:
                assert record.timestamp_ms == FIRST_TIMESTAMP_MS + expected, record
        codecs = {batch.codec for log in logs for batch in log.batches}
        assert codecs == {topic.codec}, f"the log has {codecs}, not {topic.codec}"

    def indexes_are_there(self, topic: Topic) -> None:
        """That the entries are right is said by the tool; here, that there are any."""
        log_count = len(self._dumped("logs", topic, ".log"))
        for suffix in (".index", ".timeindex"):
            files = self._dumped("indexes and snapshots", topic, suffix)
            assert len(files) == log_count, f"{log_count} logs, {len(files)} {suffix}"
            assert all(file.index_entry_count for file in files[:-1]), f"an empty {suffix}"
            assert all(file.sane for file in self._dumped("index sanity", topic, suffix)), suffix

    def snapshots_agree(self, topic: Topic) -> None:
        """The newest snapshot knows the last sequence of every producer in the log."""
        wanted = {
            batch.producer_id: batch.last_sequence
            for log in self._dumped("logs", topic, ".log")
            for batch in log.batches
        }
        assert len(wanted) == self._copies, f"producers in the log: {wanted}"
        newest = self._dumped("indexes and snapshots", topic, ".snapshot")[-1]
        assert newest.last_sequences == wanted, f"{newest.last_sequences}, log has {wanted}"
        assert int(newest.path.stem) == COUNT * self._copies, newest.path.name

    def runnel_sees_the_same(self) -> None:
        """`runnel storage` counts and prints what Kafka's tool does, and finds nothing wrong."""
        found = look_into(_DISK, str(self._broker.data_dir))
        for topic in TOPICS:
            files = chosen(found, topic.name)
            logs = self._dumped("logs", topic, ".log")
            theirs = [(b.base_offset, b.last_offset, b.codec) for log in logs for b in log.batches]
            theirs_records = [(r.offset, r.key, r.value) for log in logs for r in log.records]
            rows = [
                row
                for partition in files
                for segment in partition.segments
                for row in dump_file(_DISK, segment.path(), deep=True)
            ]
            batches = [row for row in rows if row["kind"] == "batch"]
            assert all(row["valid"] for row in batches), topic.name
            ours = [(row["base_offset"], row["last_offset"], row["codec"]) for row in batches]
            assert ours == theirs, topic.name
            ours_records = [
                (row["offset"], row["key"], row["value"]) for row in rows if row["kind"] == "record"
            ]
            assert ours_records == theirs_records, topic.name
            findings, checked = _verified(found, files)
            assert not findings, findings[:3]
            assert checked.batches == len(theirs), topic.name
            assert checked.records == len(theirs_records), topic.name

    def planted_faults_are_noticed(self) -> None:
        source = self._folder(TOPICS[0])
        with tempfile.TemporaryDirectory() as scratch:
            for pattern, position in (("*.log", 5_000), ("*.index", 6), ("*.timeindex", 10)):
                copy = Path(scratch) / source.name / pattern[2:]
                shutil.copytree(source, copy)
                path = sorted(copy.glob(pattern))[0]
                broken = bytearray(path.read_bytes())
                broken[position] ^= 0xFF
                path.write_bytes(broken)
                assert dump([path], *LOG_OPTIONS).complaints, f"nothing said about {pattern}"
                renamed = copy.rename(copy.parent / "copy-0")  # what the folder of a partition is
                found = look_into(_DISK, str(renamed))
                findings, _ = _verified(found, found.partitions)
                assert findings, f"runnel storage verify says nothing about {pattern}"
                shutil.rmtree(renamed)

    def _fill(self) -> None:
        """An idempotent producer sends COUNT records to every topic; all must be acknowledged."""
        for topic in TOPICS:
            producer = Producer(
                {
                    "bootstrap.servers": self._broker.bootstrap,
                    "enable.idempotence": True,
                    "compression.type": topic.compression,
                    "batch.size": 16_384,
                    "linger.ms": 20,
                    "message.timeout.ms": int(PATIENCE_S * 1_000),
                }
            )
            failures: list[str] = []

            def delivered(error: KafkaError | None, _: object, into: list[str] = failures) -> None:
                if error is not None:
                    into.append(str(error))

            for index, value in enumerate(self._values):
                producer.produce(
                    topic.name,
                    value.encode(),
                    f"key {index}".encode(),
                    timestamp=FIRST_TIMESTAMP_MS + index,
                    headers=[("index", str(index).encode()), ("null", None)],
                    on_delivery=delivered,
                )
                producer.poll(0)
            left = producer.flush(PATIENCE_S)
            assert not left and not failures, f"{topic.name}: {left} left, {failures[:1]}"

    def _folder(self, topic: Topic) -> Path:
        return self._broker.data_dir / f"{topic.name}-0"

    def _dumped(self, kind: str, topic: Topic, suffix: str) -> list[DumpedFile]:
        """The files of one topic, in the order of their offsets."""
        assert kind in self._dumps, f"no dump of {kind}"
        folder = self._folder(topic)
        files = self._dumps[kind].files.items()
        found = [file for path, file in files if path.parent == folder and path.suffix == suffix]
        assert found, f"no {suffix} in {folder.name}"
        return sorted(found, key=lambda file: file.path.name)


def _verified(
    found: FolderFiles, partitions: list[PartitionFiles]
) -> tuple[list[Finding], Checked]:
    findings: list[Finding] = []
    return findings, Verifier(_DISK, findings.append, deep=True).verify(found, partitions)


def _make_values() -> list[str]:
    """About a kilobyte each, printable because the tool prints text.

    Mostly noise, so that compressed topics have several segments too; the end is not, because a
    client sends a batch uncompressed if compressing it gained nothing.
    """
    chance = random.Random(3)
    return [base64.b64encode(chance.randbytes(700)).decode() + "x" * 200 for _ in range(COUNT)]


def _check_folder(checks: Checks, suite: Suite, when: str) -> None:
    for kind in KINDS:
        checks.check(f"{when}: {kind}, no complaint", partial(suite.tool_is_content, kind))
    for topic in TOPICS:
        name = topic.name.removeprefix("dump-")
        checks.check(f"{when}: records, {name}", partial(suite.logs_hold_what_was_sent, topic))
        checks.check(f"{when}: indexes, {name}", partial(suite.indexes_are_there, topic))
        checks.check(f"{when}: snapshots, {name}", partial(suite.snapshots_agree, topic))
    checks.check(f"{when}: runnel storage sees the same", suite.runnel_sees_the_same)


def main() -> None:
    kinds: dict[str, type[BrokerProcess | KafkaBroker]] = {
        "runnel": BrokerProcess,
        "kafka": KafkaBroker,
    }
    checks = Checks((KafkaException, KafkaToolError, BrokerError))
    with tempfile.TemporaryDirectory() as scratch:
        suite = Suite(kinds[sys.argv[1]](Path(scratch) / "data"))
        checks.check("a broker writes 7 topics and stops", suite.writes)
        _check_folder(checks, suite, "clean stop")
        checks.check("it writes more, is killed, recovers", suite.writes_and_crashes)
        _check_folder(checks, suite, "after kill")
        checks.check("planted faults are noticed", suite.planted_faults_are_noticed)
    checks.end()


if __name__ == "__main__":
    main()
