"""Ranges of time over a topic large enough to be cut: what is read, and that nothing is missed."""

from collections.abc import Iterator

import pytest

from runnel.bench.topics import make_topic
from runnel.client.raw import WireClient
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.query import Connection
from runnel.testing import RunnelBroker
from runnel.wire.batch import BatchHeader
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

FIRST_MS = 1_790_000_000_000
BATCH, BATCHES = 500, 200
STEP_MS = 100  # from record to record: a batch is 50 s
HOUR_MS = 3_600_000
COUNT = BATCH * BATCHES
SETTINGS = {"log.segment.bytes": 1 << 20}


def _fill(client: WireClient, name: str, starts_ms: list[int]) -> None:
    topic = make_topic(client, name, 1, {"retention.ms": "-1"})
    records = [Record(b"k", b"v" * 50, at * STEP_MS) for at in range(BATCH)]
    batch = bytes(encode(records))
    header, body = BatchHeader.read(batch), batch[61:]
    for start_ms in starts_ms:
        last_ms = start_ms + STEP_MS * (BATCH - 1)
        made = header.changed(base_timestamp=start_ms, max_timestamp=last_ms).write(body)
        rows = [PartitionProduceData(index=0, records=bytes(made))]
        data = TopicProduceData(name=name, topic_id=topic.topic_id, partition_data=rows)
        reply = client.call(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data]))
        assert reply.responses[0].partition_responses[0].error_code == 0


@pytest.fixture(scope="module")
def broker() -> Iterator[RunnelBroker]:
    ordered = [FIRST_MS + at * BATCH * STEP_MS for at in range(BATCHES)]
    late = [*ordered]  # one batch is a minute late: within the disorder that is presumed
    late[41], late[42] = late[42], late[41]
    backfilled = ordered[:150] + ordered[:50]  # the first again, hours later
    with RunnelBroker(SETTINGS) as running:
        host, _, port = running.bootstrap_servers.rpartition(":")
        with WireClient((host, int(port))) as client:
            _fill(client, "ordered", ordered)
            _fill(client, "late", late)
            _fill(client, "backfilled", backfilled)
        yield running


def _count(connection: Connection, topic: str, first_ms: int, last_ms: int) -> tuple[int, int]:
    """Rows of [first, last), and the bytes that were read for them."""
    result = connection.sql(
        f"select count(*), max(length(value)) from raw.{topic} where timestamp >="
        f" make_timestamptz({first_ms * 1000}) and timestamp < make_timestamptz({last_ms * 1000})"
    )
    ((rows, _),) = result.fetchall()
    return rows, result.figures.bytes_read


@pytest.mark.parametrize("mode", ["auto", "broker"])
@pytest.mark.parametrize("topic", ["ordered", "late", "backfilled"])
def test_no_record_of_the_range_is_missed(broker: RunnelBroker, topic: str, mode: str) -> None:
    wanted = 2 if topic == "backfilled" else 1
    with Connection(broker.bootstrap_servers, read_mode=mode) as connection:
        for first, last in [(0, 60_000), (1_000_000, 1_500_000), (2_050_000, 2_100_000)]:
            rows, _ = _count(connection, topic, FIRST_MS + first, FIRST_MS + last)
            assert rows == wanted * (last - first) // STEP_MS, (first, last)


def test_little_more_than_the_range_is_read(broker: RunnelBroker) -> None:
    with Connection(broker.bootstrap_servers) as connection:
        connection.sql("from ordered limit 0").fetchall()  # looks at some records, for the columns
        total = sum(path.stat().st_size for path in broker.data_dir.glob("ordered-0/*.log"))
        first_ms = FIRST_MS + HOUR_MS
        rows, bytes_read = _count(connection, "ordered", first_ms, first_ms + HOUR_MS)
        share = total * rows / COUNT
        batches = total / BATCHES  # one at each end
        assert share <= bytes_read < share * 1.01 + 2 * batches


def test_partitions_that_are_not_asked_for_are_not_read(broker: RunnelBroker) -> None:
    with Connection(broker.bootstrap_servers) as connection:
        result = connection.sql("select max(offset) from ordered")
        assert result.fetchone() == (COUNT - 1,)
        first = connection.sql("select count(*) from ordered where partition = 0")
        assert first.fetchone() == (COUNT,)
        assert first.figures.records == 0 and first.figures.counted_records == COUNT
        none = connection.sql("select count(*) from ordered where partition = 7")
        assert none.fetchone() == (0,) and none.figures.bytes_read == 0
