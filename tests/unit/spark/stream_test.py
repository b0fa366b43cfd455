"""A stream without Spark: where it begins, what a batch takes, what the group shows."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runnel.client.cluster import Cluster, addresses_of
from runnel.client.group_offsets import committed_offsets
from runnel.spark import connections
from runnel.testing import RunnelBroker
from runnel.types import TopicPartition
from tests.support.spark_readers import Query
from tests.support.spark_topics import make_topic, numbered, send

Start = Callable[..., Query]


@pytest.fixture(scope="module")
def broker() -> Iterator[RunnelBroker]:
    with RunnelBroker() as running:
        yield running


@pytest.fixture
def servers(broker: RunnelBroker) -> Iterator[str]:
    yield broker.bootstrap_servers
    connections.close_all()


@pytest.fixture
def start(servers: str) -> Iterator[Start]:
    """`start("orders", queryId="q", ...)`; all are stopped at the end."""
    queries: list[Query] = []

    def begin(topic: str, **options: object) -> Query:
        given = {"subscribe": topic, "queryId": topic, **options}
        queries.append(Query(servers, given))
        return queries[-1]

    yield begin
    for query in queries:
        query.stop()


def committed(servers: str, group: str) -> dict[TopicPartition, int]:
    with Cluster(addresses_of(servers)) as cluster:
        return {at: row.offset for at, row in committed_offsets(cluster, group).items()}


def offsets_of(rows: list[dict[str, Any]] | None) -> list[int]:
    return [row["offset"] for row in rows or []]


def test_trap_01_a_crash_before_the_first_commit_begins_at_the_same_offsets(
    servers: str, start: Start
) -> None:
    make_topic(servers, "trap-01")
    send(servers, "trap-01", numbered(5))
    query = start("trap-01")
    assert not query.plan()  # of latest: nothing yet
    send(servers, "trap-01", numbered(3))
    assert query.plan()
    planned = query.planned
    query.stop()  # the process is gone; offsets of batch 0 are in the checkpoint, its commit is not
    send(servers, "trap-01", numbered(2))
    again = start("trap-01")
    again.planned = planned
    assert offsets_of(again.run()) == [5, 6, 7]
    assert offsets_of(again.batch()) == [8, 9]


def test_trap_01_in_one_process_the_first_offsets_are_asked_for_once(
    servers: str, start: Start
) -> None:
    make_topic(servers, "trap-01-twice")
    query = start("trap-01-twice")
    first = query.reader.initialOffset()
    send(servers, "trap-01-twice", numbered(3))
    assert query.reader.initialOffset() == first


def test_a_new_checkpoint_after_a_finished_batch_begins_as_the_options_say(
    servers: str, start: Start
) -> None:
    make_topic(servers, "anew")
    send(servers, "anew", numbered(3))
    query = start("anew", startingOffsets="earliest")
    assert offsets_of(query.batch()) == [0, 1, 2]
    assert query.batch() is None
    query.stop()
    assert offsets_of(start("anew", startingOffsets="earliest").batch()) == [0, 1, 2]


def test_trap_03_the_group_knows_the_last_batch_though_commit_comes_late(
    servers: str, start: Start
) -> None:
    make_topic(servers, "lag", 2)
    send(servers, "lag", numbered(4), partition=1)
    query = start("lag", startingOffsets="earliest")
    assert len(query.batch() or []) == 4
    assert query.batch() is None
    at = [TopicPartition("lag", 0), TopicPartition("lag", 1)]
    assert committed(servers, "spark-runnel-lag") == dict(zip(at, (0, 4), strict=True))
