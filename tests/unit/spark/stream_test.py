"""A stream without Spark: where it begins, what a batch takes, what the group shows."""

import json
import logging
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Consumer

from runnel.arrow import connections
from runnel.arrow.errors import GoneError, SourceError
from runnel.arrow.losses import DataLossError
from runnel.client.admin import add_partitions
from runnel.client.cluster import Cluster, addresses_of
from runnel.client.group_offsets import committed_offsets
from runnel.spark.reads.brokers import Brokers
from runnel.types import TopicPartition
from tests.support.spark_brokers import Broker, spark_broker
from tests.support.spark_readers import Query
from tests.support.spark_topics import delete_records, make_topic, numbered, remove_topic, send

Start = Callable[..., Query]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with spark_broker() as running:
        yield running


@pytest.fixture
def servers(broker: Broker) -> Iterator[str]:
    yield broker.bootstrap_servers
    connections.close_all()


@pytest.fixture
def start(servers: str) -> Iterator[Start]:
    """`start("orders", queryId="q", ...)`; all are stopped at the end."""
    queries: list[Query] = []

    def begin(topic: str, **options: object) -> Query:
        given = {**({"subscribe": topic} if topic else {}), "queryId": topic, **options}
        queries.append(Query(servers, given))
        return queries[-1]

    yield begin
    for query in queries:
        query.stop()


class Requests(list[str]):
    """The names of requests, in the order in which they were sent."""


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    """Of all that clusters are asked from here on; they are asked all the same."""
    found = Requests()
    call = Cluster.call

    def noted(self: Cluster, request: object, **where: Any) -> Any:  # noqa: ANN401
        found.append(type(request).__name__)
        return call(self, request, **where)

    monkeypatch.setattr(Cluster, "call", noted)
    return found


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


def test_without_commits_the_group_is_left_empty_once_the_first_batch_is_done(
    servers: str, start: Start
) -> None:
    make_topic(servers, "uncommitted")
    query = start("uncommitted", commitGroup="false")
    assert not query.plan()
    assert committed(servers, "spark-runnel-uncommitted") == {TopicPartition("uncommitted", 0): 0}
    send(servers, "uncommitted", numbered(1))
    assert query.batch()
    assert query.batch() is None
    assert committed(servers, "spark-runnel-uncommitted") == {}


def test_other_starting_options_begin_anew_whatever_was_kept(servers: str, start: Start) -> None:
    make_topic(servers, "changed")
    send(servers, "changed", numbered(4))
    assert not start("changed").plan()
    assert offsets_of(start("changed", startingOffsets="earliest").batch()) == [0, 1, 2, 3]


def test_trap_02_nothing_new_gives_back_the_very_start(servers: str, start: Start) -> None:
    make_topic(servers, "idle", 12)
    query = start("idle", startingOffsets="earliest")
    first = query.reader.initialOffset()
    text = json.dumps(first)
    for _ in range(3):
        same = query.reader.latestOffset(json.loads(text), query.reader.getDefaultReadLimit())
        assert json.dumps(same) == text
    of_the_connector = (
        '{"idle":{"11":0,"0":0,"1":0,"10":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0}}'
    )
    given = json.loads(of_the_connector)
    assert query.reader.latestOffset(given, query.reader.getDefaultReadLimit()) is given


def test_trap_04_partitions_answer_the_same_and_ask_nothing_twice(
    servers: str, start: Start, requests: Requests
) -> None:
    make_topic(servers, "cheap", 3)
    send(servers, "cheap", numbered(9))
    query = start("cheap", startingOffsets="earliest")
    assert query.plan()
    assert query.planned is not None
    bounds = [json.loads(text) for text in query.planned]
    first = pickle.dumps(query.reader.partitions(*bounds))
    requests.clear()
    for _ in range(3):
        assert pickle.dumps(query.reader.partitions(*bounds)) == first
    assert requests == []


@pytest.mark.parametrize("partitions", [10, 100, 1000])
def test_a_batch_costs_one_round_of_list_offsets_however_many_partitions(
    servers: str, start: Start, requests: Requests, partitions: int
) -> None:
    topic = f"wide-{partitions}"
    make_topic(servers, topic, partitions)
    query = start(topic, startingOffsets="earliest")
    assert not query.plan()
    send(servers, topic, numbered(3), partition=partitions - 1)
    assert query.batch()
    send(servers, topic, numbered(3))
    requests.clear()
    assert query.plan()
    assert query.planned is not None
    query.reader.partitions(*[json.loads(text) for text in query.planned])
    assert requests.count("ListOffsetsRequest") == 1
    assert requests.count("MetadataRequest") == 1
    assert sorted(set(requests) - {"ListOffsetsRequest", "MetadataRequest"}) == [
        "FindCoordinatorRequest",
        "OffsetCommitRequest",
    ]
    assert len(requests) == 4


def test_metadata_is_asked_for_less_often_if_told(
    servers: str, start: Start, requests: Requests
) -> None:
    make_topic(servers, "cached")
    query = start("cached", **{"partition.metadata.cache.ttl.ms": "600000"})
    assert not query.plan()
    requests.clear()
    assert not query.plan()
    assert requests == ["ListOffsetsRequest"]


def test_a_topic_must_exist_also_where_metadata_is_kept(start: Start) -> None:
    query = start("nosuch", **{"partition.metadata.cache.ttl.ms": "600000"})
    with pytest.raises(SourceError, match="there is no topic nosuch"):
        query.plan()


def test_at_most_so_many_offsets_in_a_batch(servers: str, start: Start) -> None:
    make_topic(servers, "at-most", 2)
    send(servers, "at-most", numbered(90))
    send(servers, "at-most", numbered(10), partition=1)
    query = start("at-most", startingOffsets="earliest", maxOffsetsPerTrigger=50)
    rows = query.batch() or []
    assert [sum(row["partition"] == index for row in rows) for index in (0, 1)] == [45, 5]
    assert len(query.everything()) == 50


def test_at_most_so_many_bytes_in_a_batch(servers: str, start: Start) -> None:
    make_topic(servers, "bytes")
    send(servers, "bytes", numbered(1000, size=1000))
    query = start("bytes", startingOffsets="earliest", maxBytesPerTrigger="100k")
    taken = len(query.batch() or [])
    assert 80 <= taken <= 105
    assert len(query.batch() or []) == taken


def test_a_batch_waits_for_enough(servers: str, start: Start) -> None:
    make_topic(servers, "enough")
    send(servers, "enough", numbered(2))
    query = start("enough", startingOffsets="earliest", minOffsetsPerTrigger=5)
    assert offsets_of(query.batch()) == [0, 1]  # the first one never waits
    send(servers, "enough", numbered(4))
    assert query.batch() is None
    send(servers, "enough", numbered(1))
    assert len(query.batch() or []) == 5


def test_a_batch_waits_no_longer_than_told(servers: str, start: Start) -> None:
    make_topic(servers, "delay")
    send(servers, "delay", numbered(1))
    query = start(
        "delay", startingOffsets="earliest", minOffsetsPerTrigger=500, maxTriggerDelay="0s"
    )
    assert query.batch()
    send(servers, "delay", numbered(1))
    assert query.batch()


def test_trap_09_available_now_ends_at_what_was_there_and_heeds_limits(
    servers: str, start: Start
) -> None:
    make_topic(servers, "now")
    send(servers, "now", numbered(25))
    query = start(
        "now", startingOffsets="earliest", maxOffsetsPerTrigger=10, minOffsetsPerTrigger=9
    )
    query.reader.prepareForTriggerAvailableNow()
    sizes = []
    while (rows := query.batch()) is not None:
        sizes.append(len(rows))
        send(servers, "now", numbered(3))
    assert sizes == [10, 10, 5]


def test_new_partitions_are_read_from_their_beginning(servers: str, start: Start) -> None:
    make_topic(servers, "grows")
    query = start("grows")
    assert not query.plan()
    with Cluster(addresses_of(servers)) as cluster:
        add_partitions(cluster, "grows", 2)
    send(servers, "grows", numbered(3), partition=1)
    rows = query.batch() or []
    assert [(row["partition"], row["offset"]) for row in rows] == [(1, 0), (1, 1), (1, 2)]


def made_anew(servers: str, topic: str, records: int) -> None:
    remove_topic(servers, topic)
    make_topic(servers, topic)
    send(servers, topic, numbered(records))


def test_a_topic_made_anew_is_noticed_though_it_is_longer_than_before(
    servers: str, start: Start
) -> None:
    make_topic(servers, "phoenix")
    send(servers, "phoenix", numbered(3))
    query = start("phoenix", startingOffsets="earliest")
    assert len(query.batch() or []) == 3
    made_anew(servers, "phoenix", 7)
    with pytest.raises(DataLossError, match="topic phoenix was deleted and made anew"):
        query.batch()


def test_a_planned_batch_is_not_read_from_a_topic_made_anew(servers: str, start: Start) -> None:
    make_topic(servers, "replay-anew")
    send(servers, "replay-anew", numbered(3))
    query = start("replay-anew", startingOffsets="earliest")
    assert query.plan()
    planned = query.planned
    query.stop()
    made_anew(servers, "replay-anew", 7)
    again = start("replay-anew", startingOffsets="earliest")
    again.start, again.planned = planned[0] if planned else None, planned
    with pytest.raises(DataLossError, match="topic replay-anew was deleted and made anew"):
        again.run()


def test_a_planned_batch_of_a_topic_made_anew_is_skipped_if_loss_is_allowed(
    servers: str, start: Start
) -> None:
    make_topic(servers, "skip-anew")
    send(servers, "skip-anew", numbered(3))
    options = {"startingOffsets": "earliest", "failOnDataLoss": "false"}
    query = start("skip-anew", **options)
    assert query.plan()
    planned = query.planned
    query.stop()
    made_anew(servers, "skip-anew", 3)  # as long as before: only the id tells
    again = start("skip-anew", **options)
    again.start, again.planned = planned[0] if planned else None, planned
    assert again.run() == []
    assert offsets_of(again.batch()) == [0, 1, 2]
    assert again.batch() is None


@pytest.mark.parametrize("fails", [True, False])
def test_a_planned_batch_of_a_topic_that_is_gone(servers: str, start: Start, fails: bool) -> None:
    topic = f"gone-planned-{fails}".lower()
    make_topic(servers, topic)
    send(servers, topic, numbered(3))
    options = {"startingOffsets": "earliest", "failOnDataLoss": str(fails)}
    query = start(topic, **options)
    assert query.plan()
    planned = query.planned
    query.stop()
    remove_topic(servers, topic)
    again = start(topic, **options)
    again.start, again.planned = planned[0] if planned else None, planned
    if fails:
        with pytest.raises(DataLossError, match=f"{topic}-0 have been deleted"):
            again.run()
    else:
        assert again.run() == []


def test_a_planned_batch_goes_on_without_a_new_topic_that_is_gone(
    servers: str, start: Start
) -> None:
    make_topic(servers, "came-a")
    send(servers, "came-a", numbered(5))
    options = {
        "subscribePattern": "came-.*",
        "startingOffsets": "earliest",
        "queryId": "came",
        "failOnDataLoss": "false",
        "kafka.default.api.timeout.ms": 3000,
    }
    query = start("", **options)
    assert offsets_of(query.batch()) == [0, 1, 2, 3, 4]
    make_topic(servers, "came-b")
    for topic in ("came-a", "came-b"):
        send(servers, topic, numbered(2))
    assert query.plan()
    remove_topic(servers, "came-b")
    again = start("", **options)
    again.start, again.planned = query.start, query.planned
    assert [(row["topic"], row["offset"]) for row in again.run()] == [("came-a", 5), ("came-a", 6)]


def test_a_partition_that_no_broker_knows_is_gone_and_not_waited_for(servers: str) -> None:
    logs = Brokers({"bootstrap.servers": servers}, read_committed=False)
    try:
        with pytest.raises(GoneError, match="nosuch-0: UNKNOWN_TOPIC_OR_PARTITION"):
            logs.earliest([TopicPartition("nosuch", 0)])
    finally:
        logs.close()


@pytest.mark.parametrize("mode", ["auto", "broker"])
def test_a_topic_made_anew_between_plan_and_read_is_noticed(
    servers: str, start: Start, mode: str
) -> None:
    topic = f"between-{mode}"
    make_topic(servers, topic)
    send(servers, topic, numbered(10))
    query = start(
        topic,
        startingOffsets="earliest",
        maxOffsetsPerTrigger=5,
        readMode=mode,
        **{"kafkaConsumer.pollTimeoutMs": 1000},
    )
    query.reader.prepareForTriggerAvailableNow()
    assert len(query.batch() or []) == 5
    made_anew(servers, topic, 20)
    with pytest.raises(DataLossError, match=f"{topic}-0.*deleted and made anew"):
        query.batch()


def test_a_log_that_is_shorter_than_what_was_read_is_told_before_a_batch_is_planned(
    servers: str, start: Start
) -> None:
    make_topic(servers, "shorter")
    send(servers, "shorter", numbered(3))
    query = start("shorter", **{"fetchOffset.numRetries": "1"})
    query.start = '{"shorter":{"0":9}}'
    with pytest.raises(DataLossError, match="shorter-0 offset was changed from 9 to 3"):
        query.plan()


def test_a_pattern_takes_up_topics_that_come_later(servers: str, start: Start) -> None:
    make_topic(servers, "later-1")
    query = start("", subscribePattern="^later-", queryId="later")
    assert not query.plan()
    make_topic(servers, "later-2")
    send(servers, "later-2", numbered(2))
    rows = query.batch() or []
    assert [(row["topic"], row["offset"]) for row in rows] == [("later-2", 0), ("later-2", 1)]


def test_a_topic_made_anew_is_read_from_its_beginning_if_loss_is_allowed(
    servers: str, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    make_topic(servers, "ashes")
    send(servers, "ashes", numbered(3))
    query = start("ashes", startingOffsets="earliest", failOnDataLoss="false")
    assert len(query.batch() or []) == 3
    made_anew(servers, "ashes", 7)
    with caplog.at_level(logging.WARNING):
        assert offsets_of(query.batch()) == list(range(7))
    assert "made anew" in caplog.text


def test_a_topic_that_is_gone_is_a_loss(servers: str, start: Start) -> None:
    make_topic(servers, "gone")
    query = start("gone", startingOffsets="earliest")
    lenient = start("gone", queryId="gone-2", startingOffsets="earliest", failOnDataLoss="false")
    assert not query.plan()
    assert not lenient.plan()
    remove_topic(servers, "gone")
    with pytest.raises(DataLossError, match="gone-0 have been deleted"):
        query.plan()
    assert lenient.everything() == []


def test_expired_offsets_of_a_checkpoint_are_told_on_the_driver(servers: str, start: Start) -> None:
    make_topic(servers, "stale")
    send(servers, "stale", numbered(10))
    query = start("stale")
    query.start = '{"stale":{"0":2}}'
    with Cluster(addresses_of(servers)) as cluster:
        delete_records(cluster, "stale", {0: 5})
    assert query.plan()
    with pytest.raises(DataLossError, match="stale-0 begins at 5, 2 was to be read"):
        query.run()


def test_the_checkpoint_can_be_such_as_the_connector_reads(servers: str, start: Start) -> None:
    make_topic(servers, "plain")
    send(servers, "plain", numbered(2))
    query = start("plain", startingOffsets="earliest", topicIds="false")
    assert query.plan()
    assert query.planned == ('{"plain": {"0": 0}}', '{"plain": {"0": 2}}')


def test_progress_shows_the_latest_offsets(servers: str, start: Start) -> None:
    make_topic(servers, "behind")
    send(servers, "behind", numbered(20))
    query = start("behind", startingOffsets="earliest", maxOffsetsPerTrigger=5)
    assert query.reader.reportLatestOffset() is None
    assert query.plan()
    latest = query.reader.reportLatestOffset()
    assert latest is not None
    assert latest["behind"] == {"0": 20}


def test_a_group_with_members_is_not_taken_over(servers: str, start: Start) -> None:
    make_topic(servers, "taken")
    settings = {"bootstrap.servers": servers, "group.id": "taken", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    try:
        consumer.subscribe(["taken"])
        while not consumer.assignment():
            consumer.poll(0.1)
        query = start("taken", **{"kafka.group.id": "taken"})
        with pytest.raises(SourceError, match=r"group taken has members.*queryId"):
            query.plan()
    finally:
        consumer.close()


def test_trap_10_a_broker_that_is_away_for_a_while_does_not_end_the_query() -> None:
    with spark_broker() as broker:
        servers = broker.bootstrap_servers
        make_topic(servers, "survives")
        send(servers, "survives", numbered(2))
        query = Query(
            servers, {"subscribe": "survives", "queryId": "q", "startingOffsets": "earliest"}
        )
        assert len(query.batch() or []) == 2
        broker.kill()
        with ThreadPoolExecutor(1) as pool:
            planning = pool.submit(query.plan)
            broker.start()
            assert not planning.result(60)
        send(servers, "survives", numbered(3))
        assert len(query.batch() or []) == 3
        query.stop()
    connections.close_all()


def test_trap_11_what_is_sent_to_tasks_is_small_and_has_no_connection(
    servers: str, start: Start
) -> None:
    make_topic(servers, "pickled")
    send(servers, "pickled", numbered(2))
    query = start("pickled", startingOffsets="earliest")
    assert query.plan()
    assert query.planned is not None
    (partition,) = query.reader.partitions(*[json.loads(text) for text in query.planned])
    assert len(pickle.dumps(partition)) < 256
    copy = pickle.loads(pickle.dumps(query.reader))
    assert sum(batch.num_rows for batch in copy.read(partition)) == 2
    assert copy._driver is None


def test_an_unreachable_broker_is_told_and_not_the_group() -> None:
    options = {"subscribe": "t", "queryId": "q", "kafka.default.api.timeout.ms": "300"}
    query = Query("127.0.0.1:9", options)
    with pytest.raises(SourceError, match=r"no broker answers within 0\.3 s"):
        query.plan()
    query.stop()
