"""What every client is put through, once for all of them; each operation asserts on data.

An operation that a client has no call for is "n/a" with the reason; where the call is only needed
to prepare something (a topic for kcat), another client does it.
"""

import random
import re
import time
from collections.abc import Callable, Sequence

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from runnel.client.raw import WireClient
from runnel.native.compression import Compression
from runnel.wire.batch import BatchHeader
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.compat.checks import COMPRESSIONS, FIRST_TIMESTAMP_MS, PATIENCE_S, RUN, require_soon
from tests.compat.driver import Driver, DriverError, Record, UnsupportedError

FETCH_BY_NAME = 12
LARGE_BYTES = 1_040_000  # the default of max.message.bytes, 1,048,588, counts the whole batch
MANY = 10_000
SOME = 100
Body = Callable[["Subject"], None]


class Subject:
    """A client at work on a broker, and what the operations ask of both."""

    def __init__(self, name: str, driver: Driver, bootstrap: str) -> None:
        self.name = name
        self.driver = driver
        host, _, port = bootstrap.rpartition(":")
        self._address = (host, int(port))
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def topic_name(self, purpose: str) -> str:
        return f"matrix-{re.sub('[^a-z0-9.]+', '-', self.name.lower())}-{purpose}-{RUN}"

    def topic(self, purpose: str) -> str:
        """A topic of two partitions, made by another client if this one cannot."""
        name = self.topic_name(purpose)
        try:
            self.driver.create(name, 2, {})
        except UnsupportedError:
            self._admin.create_topics([NewTopic(name, 2, 1)])[name].result(PATIENCE_S)
        self.until_partitions(name, 2)
        return name

    def until_partitions(self, topic: str, count: int) -> None:
        """Other clients' view: a controller answers before every broker knows."""

        def shown() -> bool:
            found = self._admin.list_topics(timeout=PATIENCE_S).topics.get(topic)
            return count == (0 if found is None else len(found.partitions))

        require_soon(shown, f"{topic} has not come to {count} partitions")

    def codecs(self, topic: str) -> set[str]:
        """The compressions of the batches in partition 0, as the broker keeps them."""
        asked = FetchPartition(partition=0, partition_max_bytes=1 << 24)
        request = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=1 << 24,
            topics=[FetchTopic(topic=topic, partitions=[asked])],
        )
        with WireClient(self._address) as client:
            response = client.call(request, version=FETCH_BY_NAME)
        data = bytes(response.responses[0].partitions[0].records or b"")
        found, position = set(), 0
        while position < len(data):
            header = BatchHeader.read(data, position)
            found.add(Compression(header.compression).name.lower())
            position += header.size
        return found

    def send(
        self, topic: str, records: Sequence[Record], *, codec: str = "none", partition: int = 0
    ) -> list[int] | None:
        offsets = self.driver.produce(topic, partition, codec, records)
        assert offsets is None or len(offsets) == len(records), f"{len(offsets)} acknowledged"
        return offsets

    def read(
        self, topic: str, count: int, start: str = "earliest", at: int = 0, *, partition: int = 0
    ) -> list[tuple[int, Record]]:
        """Exactly `count` records: one more or one less is an error."""
        self.driver.open(topic, partition, start, at)
        read: list[tuple[int, Record]] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(read) < count:
            assert time.monotonic() < deadline, f"{len(read)} of {count} records read"
            read += self.driver.take(count - len(read), 2.0)
        self.driver.close()
        assert len(read) == count, f"{len(read)} records read, {count} wanted"
        return read

    def require_same(
        self, wanted: Sequence[Record], read: Sequence[tuple[int, Record]], first_offset: int = 0
    ) -> None:
        """The same records in their order, at consecutive offsets."""
        offsets = [offset for offset, _ in read]
        assert offsets == list(range(first_offset, first_offset + len(wanted))), offsets[:5]
        for sent, (offset, found) in zip(wanted, read, strict=True):
            if self.driver.lacks("timestamps"):
                found = found._replace(timestamp_ms=sent.timestamp_ms)
            assert found == sent, f"at {offset}: sent {_short(sent)}, read {_short(found)}"

    def require_carried(self, records: Sequence[Record], purpose: str, codec: str = "none") -> str:
        """Produce to a new topic and read back; returns the topic."""
        topic = self.topic(purpose)
        offsets = self.send(topic, records, codec=codec)
        assert offsets is None or offsets == list(range(len(records))), offsets
        self.require_same(records, self.read(topic, len(records)))
        return topic

    def require_limit(self, topic: str) -> None:
        """The topic refuses 5,000 bytes, and takes 500."""
        small, large = (Record(b"k", b"v" * size, FIRST_TIMESTAMP_MS) for size in (500, 5_000))

        def refused() -> bool:
            try:
                self.send(topic, [large])
            except DriverError:
                return True
            return False

        require_soon(refused, "a record above max.message.bytes was taken")
        self.send(topic, [small])


def records(count: int, first: int = 0) -> list[Record]:
    """Compressible, and a millisecond apart, so that time and offset can be told apart."""
    return [
        Record(
            f"key {index}".encode(),
            f"value {index} ".encode() * (1 + index % 40),
            FIRST_TIMESTAMP_MS + index,
            (("kind", "prüfung ✓".encode()), ("source", b"matrix")),
        )
        for index in range(first, first + count)
    ]


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
}


def _short(record: Record) -> str:
    text = repr(record)
    return text if len(text) < 200 else f"{text[:120]}... ({len(text)} characters)"
