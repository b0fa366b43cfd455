"""Exactly once, step by step, with a crash after each: every row is there once in the end.

A crash is simulated by going no further: what a dead driver or task leaves is in the broker alone.
The kills themselves are in tests/spark_faults.
"""

import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from runnel.arrow import connections
from runnel.arrow.errors import SinkError
from runnel.client import admin
from runnel.client.cluster import Cluster
from runnel.client.sending import Sender
from runnel.client.transactions import list_transactions
from runnel.native.columns import Record
from runnel.spark import steps
from runnel.spark.tasks import Task
from runnel.spark.writes import decisions, exactly_once, transactional
from runnel.spark.writes.exactly_once import (
    ExactlyOnceBatchWriter,
    Left,
    NotPreparedError,
    Prepared,
    commit,
    prepare,
)
from runnel.spark.writes.sink_options import SinkOptions, sink_options
from runnel.spark.writes.transactional import begin
from runnel.testing import RunnelBroker
from runnel.wire.messages.fetch import FetchRequest
from tests.support.spark_brokers import spark_broker
from tests.support.spark_rows import options_of, rows, schema

SPARKS_ID = "0b0e6a2c"
numbers = count()


@pytest.fixture(scope="module", params=["KIP-890", "before it"])
def broker(request: pytest.FixtureRequest) -> Iterator[RunnelBroker]:
    """Both protocols of transactions: a cluster may have either."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "before it":
            for module in (decisions, transactional):
                patch.setattr(module, "bumps_epochs", lambda _: False)
        with spark_broker() as running:
            # A Kafka broker is asked by the same calls: only its port has to be known.
            port = int(running.bootstrap_servers.rpartition(":")[2])
            yield running if isinstance(running, RunnelBroker) else RunnelBroker(port=port)
        connections.close_all()


class Crash(BaseException):
    """Nobody catches it by mistake."""


class Query:
    """A stream as its driver sees it, with tasks that run when they are told to."""

    def __init__(self, broker: RunnelBroker, **more: str) -> None:
        self.broker = broker
        self.name = f"q{next(numbers)}"
        broker.create_topic(self.name, partitions=2)
        given = {"topic": self.name, "exactlyOnce": "true", "queryId": self.name, **more}
        self.options: SinkOptions = sink_options(
            options_of(broker, **given), schema("value string"), streaming=True
        )

    def write(
        self, prepared: Prepared, batch_id: int, values: Sequence[str], query: str = SPARKS_ID
    ) -> Left:
        batch = pa.record_batch([pa.array(values, pa.string())], names=["value"])
        return exactly_once.write_rows(self.options, prepared, query, batch_id, iter([batch]))

    def run(self, batch_id: int, *tasks: Sequence[str], query: str = SPARKS_ID) -> None:
        """As Spark does it, all in one."""
        prepared = prepare(self.options)
        left = []
        for number, values in enumerate(tasks):
            with as_task(number):
                left.append(self.write(prepared, batch_id, values, query))
        commit(self.options, left)

    def values(self) -> list[str]:
        found = rows(self.broker, self.name)
        return sorted((row.value or b"").decode() for part in found.values() for row in part)

    def open(self) -> list[str]:
        with Cluster([("127.0.0.1", self.broker.port)]) as cluster:
            listed = list_transactions(cluster, ["Ongoing"])
        return [row.transactional_id for row in listed if f":{self.name}:" in row.transactional_id]


class as_task:  # reads as a word in `with`
    """What is written inside is that of this task."""

    def __init__(self, partition: int, attempt: int = 0, query: str = "") -> None:
        self._patch = pytest.MonkeyPatch()
        task = Task(partition, attempt, query=query)
        self._patch.setattr(exactly_once, "this_task", lambda: task)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self._patch.undo()


@pytest.fixture
def crash_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Put the name of a step into the list, and whoever reaches it dies."""
    wanted: list[str] = []

    def reached(step: str) -> None:
        if step in wanted:
            wanted.clear()
            raise Crash(step)

    monkeypatch.setattr(exactly_once, "reached", reached)
    yield wanted
    assert not wanted, "the step was never reached"


def test_rows_are_seen_once_the_batch_is_committed(broker: RunnelBroker) -> None:
    query = Query(broker)
    prepared = prepare(query.options)
    left = query.write(prepared, 0, ["a", "b"])
    assert (query.values(), len(query.open())) == ([], 1)
    commit(query.options, [left])
    assert (query.values(), query.open()) == (["a", "b"], [])


def test_batches_follow_each_other_under_few_ids(broker: RunnelBroker) -> None:
    query = Query(broker)
    for batch_id in range(30):
        query.run(batch_id, [f"a{batch_id}"], [f"b{batch_id}"])
    assert len(query.values()) == 60
    with Cluster([("127.0.0.1", broker.port)]) as cluster:
        ids = [row.transactional_id for row in list_transactions(cluster)]
    mine = [each for each in ids if f":{query.name}:" in each]
    assert len(mine) <= 2 * exactly_once.SLOTS + 1


@pytest.mark.parametrize(
    "step",
    [
        "planned",
        "writing",
        "written",
        "decision written",
        "half of the transactions ended",
        "transactions ended",
    ],
)
def test_a_crash_at_any_step_and_the_batch_again(
    broker: RunnelBroker, crash_at: list[str], step: str
) -> None:
    query = Query(broker)
    query.run(0, ["first"])
    crash_at.append(step)
    with pytest.raises(Crash):
        query.run(1, ["a", "b"], ["c"], ["d"])
    query.run(1, ["a"], ["b", "c", "d"])  # Spark may deal the same rows out differently
    query.run(2, ["last"])
    assert query.values() == ["a", "b", "c", "d", "first", "last"]
    assert query.open() == []


@pytest.mark.parametrize("step", ["decision written", "half of the transactions ended"])
def test_what_was_decided_is_finished_by_the_next_start_alone(
    broker: RunnelBroker, crash_at: list[str], step: str
) -> None:
    query = Query(broker)
    crash_at.append(step)
    with pytest.raises(Crash):
        query.run(0, ["a"], ["b"], ["c"])
    assert query.values() != ["a", "b", "c"]
    prepare(query.options)
    assert query.values() == ["a", "b", "c"]
    prepare(query.options)
    assert query.values() == ["a", "b", "c"]


def test_what_was_not_decided_is_aborted_by_the_next_start_alone(
    broker: RunnelBroker, crash_at: list[str]
) -> None:
    query = Query(broker)
    crash_at.append("written")
    with pytest.raises(Crash):
        query.run(0, ["a"], ["b"])
    assert query.open()
    prepare(query.options)
    assert (query.values(), query.open()) == ([], [])


def test_when_a_task_has_failed_the_others_are_aborted_at_once(broker: RunnelBroker) -> None:
    query = Query(broker)
    prepared = prepare(query.options)
    left = query.write(prepared, 0, ["a"])
    exactly_once.abort(query.options, [left, None])
    assert (query.values(), query.open()) == ([], [])
    query.run(0, ["a"], ["b"])
    assert query.values() == ["a", "b"]


@pytest.mark.parametrize("step", ["decision written", "half of the transactions ended"])
def test_what_was_decided_is_not_aborted(
    broker: RunnelBroker, crash_at: list[str], step: str
) -> None:
    """Spark calls abort when the process of the commit died, whatever that had done."""
    query = Query(broker)
    prepared = prepare(query.options)
    left = []
    for number in range(4):
        with as_task(number):
            left.append(query.write(prepared, 0, [f"row {number}"]))
    crash_at.append(step)
    with pytest.raises(Crash):
        commit(query.options, left)
    exactly_once.abort(query.options, left)
    query.run(0, ["row 0", "row 1", "row 2", "row 3"])
    assert query.values() == ["row 0", "row 1", "row 2", "row 3"]


def test_a_driver_that_was_replaced_decides_nothing(broker: RunnelBroker) -> None:
    query = Query(broker)
    old = prepare(query.options)
    left = query.write(old, 0, ["of the old one"])
    new = prepare(query.options)
    with pytest.raises(SinkError, match="not open any more"):
        commit(query.options, [left])
    commit(query.options, [query.write(new, 0, ["of the new one"])])
    assert query.values() == ["of the new one"]


def test_a_driver_that_was_replaced_after_it_looked_decides_nothing(
    broker: RunnelBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has seen all transactions open, and is stopped for a while before it decides."""
    query = Query(broker)
    old = prepare(query.options)
    left = query.write(old, 0, ["of the old one"])
    monkeypatch.setattr(exactly_once, "_ensure_open", lambda *_: prepare(query.options))
    with pytest.raises(SinkError, match="another driver of the query has taken over"):
        commit(query.options, [left])
    monkeypatch.undo()
    query.run(0, ["of the new one"])
    assert query.values() == ["of the new one"]


def test_a_task_of_the_replaced_driver_cannot_spoil_the_new_one(broker: RunnelBroker) -> None:
    query = Query(broker)
    old = prepare(query.options)
    new = prepare(query.options)
    left = query.write(new, 0, ["right"])
    query.write(old, 0, ["late"])  # of an executor that nobody has told
    commit(query.options, [left])
    query.run(1, ["next"])
    assert query.values() == ["next", "right"]


def test_attempts_side_by_side_do_not_fence_each_other(broker: RunnelBroker) -> None:
    query = Query(broker)
    prepared = prepare(query.options)
    with as_task(0, attempt=0):
        chosen = query.write(prepared, 0, ["row"])
    with as_task(0, attempt=1):
        query.write(prepared, 0, ["row"])  # speculative, and too late
    commit(query.options, [chosen])
    assert query.values() in ([], ["row"]), "the other attempt may still hide it"
    query.run(1, ["next"])
    assert query.values() == ["next", "row"]


def test_another_checkpoint_counts_its_batches_anew(broker: RunnelBroker) -> None:
    """Else the first batches of a query whose checkpoint was deleted would be taken for written."""
    query = Query(broker)
    query.run(7, ["old"], query="one")
    query.run(0, ["new"], query="another")
    assert query.values() == ["new", "old"]


@pytest.mark.parametrize("batch_id", [0, None])
def test_another_checkpoint_counts_anew_in_foreach_batch(
    broker: RunnelBroker, batch_id: int | None
) -> None:
    """A batch write, of a task that Spark tells whose stream it is of."""
    query = Query(broker)
    options = replace(query.options, batch_id=batch_id)
    batch = pa.record_batch([pa.array(["row"])], names=["value"])
    for checkpoint in ("one", "one", "another", ""):
        writer = pickle.loads(pickle.dumps(ExactlyOnceBatchWriter(options)))
        with as_task(0, query=checkpoint):
            writer.commit([writer.write(iter([batch]))])
    assert query.values() == ["row"] * (4 if batch_id is None else 3)


def test_a_fetch_quota_that_is_used_up_is_waited_for(
    broker: RunnelBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka answers without the topic, or without its records, and says for how long."""
    query = Query(broker)
    query.run(0, ["a"])
    whole, throttled = Cluster.call, [0, 0]

    def call(self: Cluster, request: Any, **more: Any) -> Any:  # noqa: ANN401  # any message
        answer = whole(self, request, **more)
        if isinstance(request, FetchRequest) and sum(throttled) < 2:
            answer.throttle_time_ms = 900
            without_topic = throttled[0] == 0
            throttled[0 if without_topic else 1] += 1
            if without_topic:
                answer.responses = []
            else:
                answer.responses[0].partitions[0].records = b""
        return answer

    monkeypatch.setattr(Cluster, "call", call)
    query.run(1, ["b"])
    assert throttled == [1, 1]
    assert query.values() == ["a", "b"]


def test_a_batch_that_is_run_again_is_not_written_again(broker: RunnelBroker) -> None:
    query = Query(broker)
    query.run(0, ["a"])
    query.run(1, ["b"])
    query.run(1, ["b"])
    query.run(0, ["a"])
    assert query.values() == ["a", "b"]


def test_a_transaction_that_timed_out_fails_the_batch_before_anything_is_decided(
    broker: RunnelBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(broker, transactionTimeout="10s")
    prepared = prepare(query.options)
    left = query.write(prepared, 0, ["slow"])
    late = left.prepared.prepared_s + 9.5
    monkeypatch.setattr("runnel.spark.writes.exactly_once.time.monotonic", lambda: late)
    with pytest.raises(SinkError, match="Set transactionTimeout higher"):
        commit(query.options, [left])
    monkeypatch.undo()
    query.run(0, ["slow"])
    assert query.values() == ["slow"]


def test_a_decided_transaction_that_was_lost_stops_the_query_and_says_so(
    broker: RunnelBroker, crash_at: list[str]
) -> None:
    query = Query(broker)
    crash_at.append("decision written")
    with pytest.raises(Crash):
        query.run(0, ["a"])
    with Cluster([("127.0.0.1", broker.port)]) as cluster:
        begin(cluster, query.open()[0], 60_000)  # as the broker's own time-out does
    with pytest.raises(NotPreparedError, match=r"batch 0 was decided, but transaction .* 'When it"):
        prepare(query.options)
    with Cluster([("127.0.0.1", broker.port)]) as cluster:
        sender = Sender(cluster, query.options.decisions_topic)
        sender.add(Record(query.name.encode(), None))  # what the documentation says to do
        sender.flush()
    query.run(1, ["b"])
    assert query.values() == ["b"]


def test_a_time_out_that_the_broker_does_not_allow_names_the_option(broker: RunnelBroker) -> None:
    query = Query(broker, transactionTimeout="2h")
    prepared = prepare(query.options)
    with pytest.raises(ValueError, match="transactionTimeout=7200000ms is more than the broker"):
        query.write(prepared, 0, ["a"])


def test_a_topic_of_decisions_that_forgets_is_refused(broker: RunnelBroker) -> None:
    name = f"forgetful-{next(numbers)}"
    query = Query(broker, decisionsTopic=name)
    broker.create_topic(name, config={"cleanup.policy": "delete"})
    with pytest.raises(NotPreparedError, match=r"cleanup\.policy=delete"):
        prepare(query.options)


def test_empty_tasks_leave_nothing(broker: RunnelBroker) -> None:
    query = Query(broker)
    query.run(0, [], [])
    query.run(1, [], ["a"])
    assert (query.values(), query.open()) == (["a"], [])


def test_the_topic_of_decisions_is_compacted_and_readable(broker: RunnelBroker) -> None:
    query = Query(broker)
    query.run(4, ["a"])
    name = query.options.decisions_topic
    last = [row for row in rows(broker, name)[0] if row.key == query.name.encode()]
    assert [json.loads(row.value or b"")["state"] for row in last] == ["decided", "done"]
    with Cluster([("127.0.0.1", broker.port)]) as cluster:
        found = admin.describe_configs(cluster, admin.ResourceType.TOPIC, name, ["cleanup.policy"])
        assert found[0].value == "compact"
        again = decisions.Decisions(cluster, name, query.name).last()
    assert again is not None
    assert (again.query, again.batch_id, again.is_done) == (SPARKS_ID, 4, True)


def test_steps_are_told_to_nobody_unless_asked() -> None:
    steps.reached("planned")
