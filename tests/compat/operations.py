"""What every client is put through, once for all of them; each operation asserts on data.

An operation that a client has no call for is "n/a" with the reason; where the call is only needed
to prepare something (a topic for kcat), another client does it.
"""

import random
import time

from tests.compat.checks import COMPRESSIONS, FIRST_TIMESTAMP_MS, PATIENCE_S, require_soon
from tests.compat.driver import Record, UnsupportedError
from tests.compat.group_operations import GROUP_OPERATIONS
from tests.compat.subject import Body, Subject, records
from tests.compat.transaction_operations import TRANSACTION_OPERATIONS

LARGE_BYTES = 1_040_000  # the default of max.message.bytes, 1,048,588, counts the whole batch
MANY = 10_000
SOME = 100


def create(subject: Subject) -> None:
    topic = subject.topic_name("create")
    subject.driver.create(topic, 3, {})
    subject.until_partitions(topic, 3)
    require_soon(lambda: subject.driver.partitions(topic) == 3, "the client sees other partitions")


def create_with_config(subject: Subject) -> None:
    topic = subject.topic_name("config")
    subject.driver.create(topic, 1, {"max.message.bytes": "2000"})
    subject.until_partitions(topic, 1)
    subject.require_limit(topic)


def describe_config(subject: Subject) -> None:
    topic = subject.topic_name("describe")
    mine = {"retention.ms": "86400000", "segment.bytes": "2000000"}
    try:
        subject.driver.create(topic, 1, mine)
    except UnsupportedError:
        topic, mine = subject.topic("describe"), {}
    subject.until_partitions(topic, 1 if mine else 2)
    found = subject.driver.describe(topic)
    wanted = {"cleanup.policy": "delete", "compression.type": "producer", **mine}
    shown = {name: found.get(name) for name in wanted}
    assert shown == wanted, f"wanted {wanted}, got {shown}"


def alter_config(subject: Subject) -> None:
    topic = subject.topic("alter")
    subject.driver.alter(topic, {"max.message.bytes": "2000"})
    subject.require_limit(topic)


def carry(codec: str) -> Body:
    def body(subject: Subject) -> None:
        topic = subject.require_carried(records(200), codec, codec)
        found = subject.codecs(topic)
        # A batch that compression did not make smaller may be sent as it was.
        assert codec in found, f"the log has {found}"

    return body


def headers(subject: Subject) -> None:
    rows: list[tuple[str, bytes | None]] = [("a", b"\x00\xff"), ("schlüssel", b"")]
    if not subject.driver.lacks("null headers"):
        rows.append(("z-null", None))
    if not subject.driver.lacks("repeated headers"):
        rows += [("z-twice", b"first"), ("z-twice", b"second")]
    if subject.driver.lacks("binary"):
        rows = [("a", b"one"), ("a", b"two"), ("b", "drei ✓".encode())]
    sent = [
        Record(b"all", b"v", FIRST_TIMESTAMP_MS, tuple(rows)),
        Record(b"one", b"v", FIRST_TIMESTAMP_MS, (("only", b"one"),)),
        Record(b"none", b"v", FIRST_TIMESTAMP_MS),
    ]
    subject.require_carried(sent, "headers")


def nulls(subject: Subject) -> None:
    sent = [
        Record(None, b"no key", FIRST_TIMESTAMP_MS),
        Record(b"no value", None, FIRST_TIMESTAMP_MS),
    ]
    if not subject.driver.lacks("records of nothing"):
        sent.append(Record(None, None, FIRST_TIMESTAMP_MS))
    if not subject.driver.lacks("empty values"):
        sent.append(Record(b"", b"", FIRST_TIMESTAMP_MS))
    subject.require_carried(sent, "nulls")


def large(subject: Subject) -> None:
    value = random.Random(5).randbytes(LARGE_BYTES)
    if subject.driver.lacks("binary"):
        value = value.hex()[:LARGE_BYTES].encode()
    subject.require_carried([Record(b"large", value, FIRST_TIMESTAMP_MS)], "large")


def many(subject: Subject) -> None:
    topic = subject.topic("many")
    for partition in range(2):
        sent = records(MANY // 2, first=partition * MANY)
        subject.send(topic, sent, partition=partition, codec="gzip")
        subject.require_same(sent, subject.read(topic, len(sent), partition=partition))


def from_earliest(subject: Subject) -> None:
    topic = subject.topic("earliest")
    subject.send(topic, records(SOME))
    subject.require_same(records(SOME), subject.read(topic, SOME, "earliest"))


def from_latest(subject: Subject) -> None:
    """What was there before is not read; what comes once the reader stands at the end is."""
    topic = subject.topic("latest")
    subject.send(topic, records(SOME))
    subject.driver.open(topic, 0, "latest")
    sent: list[Record] = []
    read: list[tuple[int, Record]] = []
    deadline = time.monotonic() + PATIENCE_S
    while not read:
        # A reader may look up the end only when it first polls, so the records come in turns.
        assert time.monotonic() < deadline, f"{len(sent)} records sent, none read"
        read = subject.driver.take(1, 0.5)
        if not read:
            more = records(1, SOME + len(sent))
            subject.send(topic, more)
            sent += more
            read = subject.driver.take(1, 0.5)
    subject.driver.close()
    first = read[0][0]
    assert first >= SOME, f"read from {first}, the end was {SOME}"
    subject.require_same(sent[first - SOME :][: len(read)], read, first)


def from_offset(subject: Subject) -> None:
    topic = subject.topic("offset")
    subject.send(topic, records(SOME))
    subject.require_same(records(SOME)[37:], subject.read(topic, SOME - 37, "offset", 37), 37)


def from_timestamp(subject: Subject) -> None:
    """The time is taken from what the log shows: not every client can set it."""
    topic = subject.topic("timestamp")
    sent = records(SOME)
    subject.send(topic, sent[:60])
    time.sleep(0.05)
    subject.send(topic, sent[60:])
    times = [record.timestamp_ms for _, record in subject.read(topic, SOME)]
    first = times.index(times[60])
    subject.require_same(
        sent[first:], subject.read(topic, SOME - first, "timestamp", times[60]), first
    )


def delete_records(subject: Subject) -> None:
    topic = subject.topic("delete-records")
    subject.send(topic, records(SOME))
    subject.driver.delete_records(topic, 0, 30)
    subject.require_same(records(SOME)[30:], subject.read(topic, SOME - 30), 30)


def add_partitions(subject: Subject) -> None:
    topic = subject.topic("add-partitions")
    subject.send(topic, records(10))
    subject.driver.add_partitions(topic, 5)
    subject.until_partitions(topic, 5)
    subject.send(topic, records(SOME, first=50), partition=4)
    subject.require_same(records(SOME, first=50), subject.read(topic, SOME, partition=4))
    subject.require_same(records(10), subject.read(topic, 10))


def delete_topic(subject: Subject) -> None:
    """Gone, and a new one of that name begins empty."""
    topic = subject.topic("delete-topic")
    subject.send(topic, records(10))
    subject.driver.delete(topic)
    subject.until_partitions(topic, 0)
    assert subject.topic("delete-topic") == topic
    again = records(5, first=70)
    subject.send(topic, again)
    subject.require_same(again, subject.read(topic, 5))


OPERATIONS: dict[str, Body] = {
    "create": create,
    "create with config": create_with_config,
    "describe config": describe_config,
    "alter config": alter_config,
    **{codec: carry(codec) for codec in COMPRESSIONS},
    "headers": headers,
    "nulls": nulls,
    "large": large,
    "many": many,
    "earliest": from_earliest,
    "latest": from_latest,
    "offset": from_offset,
    "timestamp": from_timestamp,
    "delete records": delete_records,
    "add partitions": add_partitions,
    "delete topic": delete_topic,
    **GROUP_OPERATIONS,
    **TRANSACTION_OPERATIONS,
}
