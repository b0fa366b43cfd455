"""Topics with known records, for tests of reading them as rows; no Spark in here."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Producer

from runnel.arrow.ranges import COLUMNS, Range, Scan
from runnel.arrow.scan import read
from runnel.client.admin import create_topic, delete_topic
from runnel.client.cluster import Cluster, addresses_of
from runnel.client.sending import Sender
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

T0_MS = 1_700_000_000_000
GONE_S = 30.0


def make_topic(
    bootstrap: str, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> None:
    with Cluster(addresses_of(bootstrap)) as cluster:
        create_topic(cluster, name, partitions, 1, dict(configs or {}))


def remove_topic(bootstrap: str, name: str) -> None:
    """Until every request finds it so: Kafka says that it is deleted before that."""
    with Cluster(addresses_of(bootstrap)) as cluster:
        delete_topic(cluster, name)
        deadline = time.monotonic() + GONE_S
        while not cluster.metadata([name]).topics[0].error_code:
            assert time.monotonic() < deadline, f"{name} is still there"
            time.sleep(0.05)


def delete_records(cluster: Cluster, topic: str, before: Mapping[int, int]) -> None:
    """Let what is before these offsets go, as retention does."""
    rows = [DeleteRecordsPartition(partition_index=at, offset=to) for at, to in before.items()]
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=rows)], timeout_ms=10_000
    )
    (answer,) = cluster.call(request, node_id=cluster.leaders(topic)[0]).topics
    assert all(row.error_code == 0 for row in answer.partitions)


def send(
    bootstrap: str,
    topic: str,
    records: Iterable[Record],
    *,
    partition: int = 0,
    codec: Compression = Compression.NONE,
) -> None:
    with Cluster(addresses_of(bootstrap)) as cluster:
        sender = Sender(cluster, topic, codec=codec)
        for record in records:
            sender.add(record, partition)
        sender.flush()


def numbered(count: int, first: int = 0, size: int = 10) -> list[Record]:
    return [
        Record(b"k%d" % number, b"%0*d" % (size, number), T0_MS + number)
        for number in range(first, first + count)
    ]


def send_in_transaction(
    bootstrap: str, topic: str, values: Iterable[bytes], *, commit: bool, name: str = "tx"
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(30)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def scan_of(bootstrap: str, columns: Iterable[str] = COLUMNS[:-1], **settings: Any) -> Scan:  # noqa: ANN401  # fields of a Scan
    client = {"bootstrap.servers": bootstrap, **settings.pop("client", {})}
    return Scan(client, tuple(columns), **{"poll_timeout_ms": 10_000, **settings})


def rows_of(scan: Scan, piece: Range) -> list[dict[str, Any]]:
    return [row for batch in read(scan, piece) for row in batch.to_pylist()]
