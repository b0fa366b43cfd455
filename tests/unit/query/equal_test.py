"""SQL sees what a consumer sees: all codecs, aborted and open transactions, compaction, gaps."""

import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic, TopicPartition

from runnel.query import Connection
from runnel.testing import RunnelBroker
from tests.support.mixed_log import MixedWriter, Row, Wanted, wanted

SETTINGS = {
    "log.cleaner.backoff.ms": 100,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.segment.bytes": 1 << 20,
    "log.retention.ms": -1,
}
TOPICS = {
    "mixed": {"cleanup.policy": "delete"},
    "compacted": {"cleanup.policy": "compact"},
    "cut": {"cleanup.policy": "delete"},  # its first records are deleted, within a batch
}
CUT_AT = 57
PATIENCE_S = 30.0
WAYS = ["files", "broker", "offline"]


@pytest.fixture(scope="module")
def broker() -> Iterator[RunnelBroker]:
    with RunnelBroker(SETTINGS) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
        topics = [NewTopic(name, 1, 1, config=config) for name, config in TOPICS.items()]
        for made in admin.create_topics(topics).values():
            made.result(PATIENCE_S)
        for name in TOPICS:
            keyed = name == "compacted"
            writer = MixedWriter(running.bootstrap_servers, name, seed=9, keyed=keyed)
            writer.write(200)
            writer.leave_open()
        for done in admin.delete_records([TopicPartition("cut", 0, CUT_AT)]).values():
            done.result(PATIENCE_S)
        _await_compaction(running)
        yield running


def _await_compaction(broker: RunnelBroker) -> None:
    deadline, sizes, quiet = time.monotonic() + PATIENCE_S, {"": 0}, 0
    while "cleaned compacted-0" not in broker.logs or quiet < 10:
        assert time.monotonic() < deadline
        time.sleep(0.1)
        found = {"": 0}
        with suppress(FileNotFoundError):  # replaced meanwhile
            files = (broker.data_dir / "compacted-0").glob("*.log")
            found = {path.name: path.stat().st_size for path in files}
        sizes, quiet = found, quiet + 1 if found == sizes else 0


@pytest.fixture(scope="module")
def expected(broker: RunnelBroker) -> dict[str, Wanted]:
    found = {name: wanted(broker.bootstrap_servers, name) for name in TOPICS}
    assert found["cut"].all[0][0] == CUT_AT
    return found


def _connection(broker: RunnelBroker, way: str, *, committed: bool) -> Connection:
    if way == "offline":
        return Connection(path=str(broker.data_dir), read_committed=committed)
    mode = "broker" if way == "broker" else "auto"
    return Connection(broker.bootstrap_servers, read_mode=mode, read_committed=committed)


def _rows(connection: Connection, topic: str) -> list[Row]:
    found = connection.sql(f'select * from raw."{topic}" order by "offset"').arrow()
    return [
        (
            row["offset"],
            _bytes(row["key"]),
            row["value"],
            round(row["timestamp"].timestamp() * 1000),
            None
            if row["headers"] is None
            else [(each["key"], each["value"]) for each in row["headers"]],
        )
        for row in found.to_pylist()
    ]


def _bytes(text: str | bytes | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("committed", [True, False])
def test_rows_and_counts_are_those_of_a_consumer(
    broker: RunnelBroker, expected: dict[str, Wanted], topic: str, way: str, committed: bool
) -> None:
    rows = expected[topic].committed if committed else expected[topic].all
    with _connection(broker, way, committed=committed) as connection:
        if way == "offline":  # only what the running owner has written down as committed
            found = _rows(connection, topic)
            assert found == rows[: len(found)]
            (count,) = connection.sql(f'select count(*) from "{topic}"').fetchone() or (None,)
            assert count == len(found)
            return
        assert _rows(connection, topic) == rows
        counted = connection.sql(f'select count(*) from "{topic}"')
        assert counted.fetchone() == (len(rows),)
        middle = rows[len(rows) // 2][0]
        half = connection.sql(f'select count(*) from "{topic}" where "offset" >= {middle}')
        assert half.fetchone() == (len(rows) - len(rows) // 2,)
        by_time = sorted(row[3] for row in rows)
        low, high = by_time[len(rows) // 3], by_time[2 * len(rows) // 3]
        between = connection.sql(
            f'select count(*) from raw."{topic}" where timestamp between'
            f" make_timestamptz({low * 1000}) and make_timestamptz({high * 1000})"
        )
        assert between.fetchone() == (sum(low <= at <= high for at in by_time),)


def test_a_count_decodes_only_the_batches_at_the_edges(
    broker: RunnelBroker, expected: dict[str, Wanted]
) -> None:
    with _connection(broker, "files", committed=True) as connection:
        connection.sql("from mixed limit 0").fetchall()  # looks at some records, for the columns
        result = connection.sql("select count(*) from mixed")
        assert result.fetchone() == (len(expected["mixed"].committed),)
        assert result.figures.counted_records > 0
        assert result.figures.records < result.figures.counted_records / 10
        values = sum(len(row[2] or b"") for row in expected["mixed"].committed)
        assert result.figures.file_bytes < values / 10
