"""Let a real Kafka broker write a data folder; keep it as a fixture with what Kafka reads in it.

Run as `python -m tests.compat.kafka_folder.record`; it writes `kafka-4.3-folder.tar.xz` and
`kafka-4.3-folder.json` into `tests/integration/recorded/`. Two folders: `clean`, left by SIGTERM,
and `killed`, left by SIGKILL while a topic is being deleted, and with half a batch at the end of
one log. A folder is copied as it was left; then Kafka itself starts on it again, and what it
serves is the expectation. Timestamps are fixed and old: retention is off here, and must be off in
whoever opens the folder.
"""

import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.compat.checks import COMPRESSIONS, require_soon
from tests.compat.kafka_folder.expected import Folder, read_folder
from tests.support.kafka_tools import ROOT, KafkaBroker

RECORDED = ROOT / "tests/integration/recorded"
PATIENCE_S = 20.0
FIRST_TIMESTAMP_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
BATCH_COUNT = 8
RECORDS_PER_BATCH = 5
TORN_BYTES = 40  # less than a batch header of 61 bytes

# Segments roll by record time here: a megabyte per segment would make the fixture too large.
ROLLING = {"segment.ms": str(2 * HOUR_MS), "index.interval.bytes": "300"}
TOPICS: dict[str, tuple[int, dict[str, str]]] = {  # partition count and configuration
    **{f"codec-{codec}": (1, ROLLING) for codec in COMPRESSIONS},
    "two-partitions": (2, ROLLING),
    "name.with_dashes-and-7": (1, {}),
    "append-time": (1, {"message.timestamp.type": "LogAppendTime"}),
    "front-deleted": (1, ROLLING),
    "transactions": (1, {}),
    "compacted": (1, {"cleanup.policy": "compact"}),
    "empty": (1, {}),
}
DELETED = "deleted-just-before"
SETTINGS = {
    "log.retention.ms": "-1",
    "log.index.size.max.bytes": "65536",  # preallocated after a kill; Kafka's 10 MiB is all zeros
    "log.roll.jitter.ms": "0",
    "transaction.state.log.segment.bytes": "1048576",
}


def write(broker: KafkaBroker) -> None:
    """Every topic, by a producer of its own so that each has a producer id to remember."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for name, (partition_count, config) in TOPICS.items():
        new = NewTopic(name, partition_count, 1, config=config)
        admin.create_topics([new])[name].result(PATIENCE_S)
        if name not in ("empty", "transactions"):
            _fill(broker, name, partition_count)
    _transact(broker, "transactions")
    # The new start lies inside a batch, and the segment before it still lies in the folder.
    front = TopicPartition("front-deleted", 0, 23)
    next(iter(admin.delete_records([front]).values())).result(PATIENCE_S)


def write_and_kill(broker: KafkaBroker) -> None:
    write(broker)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(DELETED, 1, 1)])[DELETED].result(PATIENCE_S)
    _fill(broker, DELETED, 1)
    admin.delete_topics([DELETED])[DELETED].result(PATIENCE_S)
    # The folder is renamed some time after the answer, and emptied a minute later.
    require_soon(lambda: any(broker.data_dir.glob("*-delete")), "the topic was not deleted")
    broker.kill()
    log = sorted((broker.data_dir / "codec-none-0").glob("*.log"))[-1]
    with log.open("r+b") as file:
        torn = file.read(TORN_BYTES)
        file.seek(0, 2)
        file.write(torn)


def record(scratch: Path, name: str, *, kill: bool) -> Folder:
    broker = KafkaBroker(scratch / "work" / name, settings=SETTINGS)
    broker.start()
    if kill:
        write_and_kill(broker)
    else:
        write(broker)
        broker.stop()
    shutil.copytree(broker.data_dir, scratch / name)
    with broker:
        return read_folder(broker.bootstrap, list(TOPICS))


def main() -> None:
    RECORDED.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        expected = {
            "clean": record(scratch, "clean", kill=False),
            "killed": record(scratch, "killed", kill=True),
        }
        archive = RECORDED / "kafka-4.3-folder.tar.xz"
        with tarfile.open(archive, "w:xz", preset=9) as tar:
            for name in expected:
                tar.add(scratch / name, name, filter=_anonymous)
    (RECORDED / "kafka-4.3-folder.json").write_text(_one_line_each(expected))
    for name, folder in expected.items():
        print(f"{name}: {len(folder['topics'])} topics, {len(folder['records'])} records")
    print(f"{archive.name}: {archive.stat().st_size} bytes", file=sys.stderr)


def _one_line_each(expected: dict[str, Folder]) -> str:
    """A record per line: small, and a change shows in a diff."""
    parts = []
    for name, folder in expected.items():
        lines = ",\n".join(json.dumps(record) for record in folder["records"])
        topics = ",\n".join(
            f"{json.dumps(topic)}: {json.dumps(about)}" for topic, about in folder["topics"].items()
        )
        cluster_id = json.dumps(folder["cluster_id"])
        parts.append(
            f'"{name}": {{"cluster_id": {cluster_id},\n"topics": {{\n{topics}}},\n'
            f'"records": [\n{lines}]}}'
        )
    return "{" + ",\n".join(parts) + "}\n"


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without the user of this machine; and without the lock, which no stopped broker holds."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return None if entry.name.endswith("/.lock") else entry


def _fill(broker: KafkaBroker, topic: str, partition_count: int) -> None:
    """Batches an hour apart, so that a topic that rolls by time has several segments."""
    codec = topic.removeprefix("codec-") if topic.startswith("codec-") else "none"
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": 200,
        }
    )
    for batch in range(BATCH_COUNT):
        for index in range(RECORDS_PER_BATCH):
            number = batch * RECORDS_PER_BATCH + index
            for partition in range(partition_count):
                key = f"key {number % 7}".encode()
                producer.produce(
                    topic,
                    None if number == 11 else f"{topic} {partition} {number} ".encode() * 3,
                    None if number % 5 == 4 and topic != "compacted" else key,
                    partition=partition,
                    timestamp=FIRST_TIMESTAMP_MS + batch * HOUR_MS + index,
                    headers=[("number", str(number).encode()), ("null", None), ("number", b"\xff")],
                )
        left = producer.flush(PATIENCE_S)
        assert left == 0, f"{topic}: {left} records not acknowledged"


def _transact(broker: KafkaBroker, topic: str) -> None:
    """Committed and aborted in turn; readers of committed records see only the even ones."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "recorder"})
    producer.init_transactions(PATIENCE_S)
    for number in range(6):
        producer.begin_transaction()
        for index in range(3):
            timestamp_ms = FIRST_TIMESTAMP_MS + number * HOUR_MS + index
            producer.produce(
                topic, f"transaction {number} {index}".encode(), timestamp=timestamp_ms
            )
        producer.flush(PATIENCE_S)
        if number % 2 == 0:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)


if __name__ == "__main__":
    main()
