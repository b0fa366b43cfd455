"""Consumers of librdkafka in one classic group: they share the partitions, and take over."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.process import BrokerProcess

PATIENCE_S = 60.0
TOPIC = "orders"
PARTITIONS = 4
RECORDS = 400
REFUSALS = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError._NO_OFFSET,  # what it read was taken from it
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with BrokerProcess(tmp_path / "data", settings=settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(PATIENCE_S)
        yield broker


class Member:
    """A consumer with what it read, which it commits after every record."""

    def __init__(self, broker: BrokerProcess, **settings: Any) -> None:  # noqa: ANN401  # librdkafka's
        self.read: list[bytes] = []
        self._is_committed = True
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "g",
                "group.protocol": "classic",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 500,
                "reconnect.backoff.max.ms": 100,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self._consumer.subscribe([TOPIC])

    def poll(self) -> None:
        message = self._consumer.poll(0.1)
        if message is not None and message.error() is None:
            value = message.value()
            assert value is not None
            self.read.append(value)
            self._is_committed = False
        if not self._is_committed:
            self._commit()

    def _commit(self) -> None:
        """How far it has come; during a rebalance that may be refused."""
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in REFUSALS:
                raise
        else:
            self._is_committed = True

    def owned(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def committed(self) -> int:
        partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
        found = self._consumer.committed(partitions, timeout=PATIENCE_S)
        return sum(max(each.offset, 0) for each in found)

    def close(self) -> None:
        self._consumer.close()


def poll_until(done: Callable[[], bool], *members: Member) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline_s, [(each.owned(), len(each.read)) for each in members]
        for member in members:
            member.poll()


def share(members: list[Member]) -> bool:
    """Every partition has one owner, and everybody owns some."""
    owned = [member.owned() for member in members]
    return all(owned) and sorted(index for each in owned for index in each) == [*range(PARTITIONS)]


def produce(broker: BrokerProcess, count: int, first: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(first, first + count):
        producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_two_members_share_and_one_takes_over(broker: BrokerProcess, strategy: str) -> None:
    produce(broker, RECORDS)
    settings = {"partition_assignment_strategy": strategy}
    with closing(Member(broker, **settings)) as first:
        second = Member(broker, **settings)
        poll_until(lambda: share([first, second]), first, second)
        poll_until(lambda: len({*first.read, *second.read}) == RECORDS, first, second)
        produce(broker, RECORDS, RECORDS)
        second.close()  # leaves
        poll_until(lambda: share([first]), first)
        # A record whose commit was refused during a rebalance is read again by its next owner.
        poll_until(lambda: len({*first.read, *second.read}) == 2 * RECORDS, first)
        everything = {b"%d" % number for number in range(2 * RECORDS)}
        assert {*first.read, *second.read} == everything
        assert first.committed() == 2 * RECORDS


def test_a_restarted_broker_keeps_the_group_going(broker: BrokerProcess) -> None:
    with closing(Member(broker)) as first, closing(Member(broker)) as second:
        both = [first, second]
        poll_until(lambda: share(both), *both)
        produce(broker, RECORDS)
        poll_until(lambda: len(first.read) + len(second.read) >= RECORDS // 2, *both)
        owned = [first.owned(), second.owned()]
        broker.kill()
        broker.start()
        poll_until(lambda: len({*first.read, *second.read}) >= RECORDS, *both)
        assert [first.owned(), second.owned()] == owned, "nobody had to rebalance"
        assert first.committed() == RECORDS


def test_a_static_member_comes_back_to_what_it_had(broker: BrokerProcess) -> None:
    with closing(Member(broker, group_instance_id="one")) as first:
        second = Member(broker, group_instance_id="two", session_timeout_ms=30_000)
        poll_until(lambda: share([first, second]), first, second)
        before = [first.owned(), second.owned()]
        second.close()  # a static member does not leave
        with closing(Member(broker, group_instance_id="two")) as again:
            poll_until(lambda: bool(again.owned()), again, first)
            assert [first.owned(), again.owned()] == before


ANOTHER_PROCESS = """
import sys
from confluent_kafka import Consumer

consumer = Consumer({
    "bootstrap.servers": sys.argv[1], "group.id": "g", "session.timeout.ms": 6000,
    "auto.offset.reset": "earliest", "enable.auto.commit": False, "group.protocol": "classic",
})
consumer.subscribe([sys.argv[2]])
while True:
    if consumer.poll(0.1) is not None:
        consumer.commit(asynchronous=False)
        print("committed", flush=True)
"""


def test_a_killed_member_is_noticed_and_its_partitions_are_taken_over(
    broker: BrokerProcess,
) -> None:
    produce(broker, RECORDS)
    command = [sys.executable, "-c", ANOTHER_PROCESS, broker.bootstrap, TOPIC]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as another:
        try:
            assert another.stdout is not None
            assert another.stdout.readline() == b"committed\n"
            with closing(Member(broker)) as member:
                poll_until(lambda: 0 < len(member.owned()) < PARTITIONS, member)
                another.kill()
                poll_until(lambda: share([member]), member)
                poll_until(lambda: member.committed() == RECORDS, member)
        finally:
            another.kill()
