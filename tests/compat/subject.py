"""A client at work on a broker, and what the operations ask of both."""

import re
import time
from collections.abc import Callable, Sequence

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from runnel.client.raw import WireClient
from runnel.native.compression import Compression
from runnel.wire.batch import BatchHeader
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.compat.checks import FIRST_TIMESTAMP_MS, PATIENCE_S, RUN, require_soon
from tests.compat.driver import Driver, DriverError, Record, UnsupportedError
from tests.compat.group_calls import GroupCalls

FETCH_BY_NAME = 12
Body = Callable[["Subject"], None]


class Subject:
    """A client at work on a broker, and what the operations ask of both."""

    def __init__(self, name: str, driver: Driver, other: Driver, bootstrap: str) -> None:
        self.name = name
        self.driver = driver
        self.groups = GroupCalls(driver)
        self.other = GroupCalls(
            other
        )  # a client that is known to work, to write and read beside it
        host, _, port = bootstrap.rpartition(":")
        self._address = (host, int(port))
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def topic_name(self, purpose: str) -> str:
        return f"matrix-{re.sub('[^a-z0-9.]+', '-', self.name.lower())}-{purpose}-{RUN}"

    def group_name(self, purpose: str) -> str:
        return self.topic_name(purpose)

    def topic(self, purpose: str, partitions: int = 2) -> str:
        """Made by another client if this one cannot."""
        name = self.topic_name(purpose)
        try:
            self.driver.create(name, partitions, {})
        except UnsupportedError:
            self._admin.create_topics([NewTopic(name, partitions, 1)])[name].result(PATIENCE_S)
        self.until_partitions(name, partitions)
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
        self.require_records(wanted, [record for _, record in read])

    def require_records(self, wanted: Sequence[Record], read: Sequence[Record]) -> None:
        """The same records in their order, wherever they lie."""
        assert len(read) == len(wanted), f"{len(read)} records read, {len(wanted)} wanted"
        for index, (sent, found) in enumerate(zip(wanted, read, strict=True)):
            if self.driver.lacks("timestamps"):
                found = found._replace(timestamp_ms=sent.timestamp_ms)
            assert found == sent, f"number {index}: sent {_short(sent)}, read {_short(found)}"

    def committed(self, group: str, topic: str, partition: int) -> int | None:
        """The group's offset as another client sees it."""
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition)])
        answer = self._admin.list_consumer_group_offsets([asked])[group].result(PATIENCE_S)
        offset = answer.topic_partitions[0].offset
        return None if offset < 0 else int(offset)

    def members(self, group: str) -> int:
        described = self._admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
        return len(described.members)

    def is_listed(self, group: str) -> bool:
        listed = self._admin.list_consumer_groups().result(PATIENCE_S)
        return any(row.group_id == group for row in listed.valid)

    def require_refused(self, call: Callable[[], None], why: str) -> None:
        try:
            call()
        except DriverError:
            return
        raise AssertionError(why)

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


def _short(record: Record) -> str:
    text = repr(record)
    return text if len(text) < 200 else f"{text[:120]}... ({len(text)} characters)"
