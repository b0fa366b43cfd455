"""Group consumers of confluent-kafka with `group.protocol=consumer`: who reads what, and for how
long, when members come, go, are killed, and when the broker is."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.process import BrokerProcess

PATIENCE_S = 30.0
PARTITIONS = 6
SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data", settings=SETTINGS) as started:
        yield started


class Members:
    """Consumers of one group, polled in turn by the one thread of the test."""

    def __init__(self, broker: BrokerProcess, topics: Sequence[str], **settings: str) -> None:
        self._broker = broker
        self._topics = list(topics)
        self._settings = settings
        self.members: dict[str, Consumer] = {}
        self.values: Counter[bytes] = Counter()
        self.not_committed: set[bytes] = set()
        self.lost = 0

    def add(self, name: str, **settings: str) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self._broker.bootstrap,
                "group.id": "g",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "client.id": name,
                **self._settings,
                **settings,
            }
        )
        consumer.subscribe(self._topics, on_lost=self._lost)
        self.members[name] = consumer
        return consumer

    def _lost(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.lost += 1

    def owned(self, name: str) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self.members[name].assignment()}

    def poll(self) -> None:
        for consumer in self.members.values():
            message = consumer.poll(0.02)
            if message is None:
                continue
            error = message.error()
            if error is None:
                value = message.value()
                assert isinstance(value, bytes)
                self.values[value] += 1
                if not self._commit(consumer):
                    self.not_committed.add(value)
            elif error.fatal():
                raise KafkaException(error)

    def _commit(self, consumer: Consumer) -> bool:
        """False: refused, as the partition has or will have another owner, who reads on from
        what was committed before."""
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            code = error.args[0].code()
            assert code in (
                KafkaError.STALE_MEMBER_EPOCH,
                KafkaError.ILLEGAL_GENERATION,  # of a classic member, as the next one
                KafkaError.REBALANCE_IN_PROGRESS,
                KafkaError._NO_OFFSET,
                KafkaError.UNKNOWN_MEMBER_ID,
                KafkaError._WAIT_COORD,
                KafkaError._TRANSPORT,
            ), error
            return bool(code == KafkaError._NO_OFFSET)
        return True

    def ensure_once(self) -> None:
        """Nothing is read twice that was committed."""
        again = {value for value, count in self.values.items() if count > 1}
        assert again <= self.not_committed, again - self.not_committed

    def until(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, {name: self.owned(name) for name in self.members}
            self.poll()
            self.ensure_apart()

    def ensure_apart(self) -> None:
        """No partition has two owners at once."""
        owners = Counter(each for name in self.members for each in self.owned(name))
        assert all(count == 1 for count in owners.values()), owners

    def are_balanced(self, total: int) -> bool:
        counts = [len(self.owned(name)) for name in self.members]
        return sum(counts) == total and max(counts) - min(counts) <= 1

    def remove(self, name: str) -> None:
        self.members.pop(name).close()

    def close(self) -> None:
        for consumer in self.members.values():
            consumer.close()


@pytest.fixture
def group(broker: BrokerProcess) -> Iterator[Callable[..., Members]]:
    with ExitStack() as stack:

        def make(*topics: str, **settings: str) -> Members:
            members = Members(broker, topics, **settings)
            stack.callback(members.close)
            return members

        yield make


def create(broker: BrokerProcess, topic: str, partitions: int = PARTITIONS) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(10)


def produce(broker: BrokerProcess, topic: str, values: Sequence[bytes]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(20) == 0


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


def test_members_come_and_go_and_all_is_read(
    broker: BrokerProcess, group: Callable[..., Members]
) -> None:
    create(broker, "t")
    members = group("t")
    members.add("a")
    members.until(lambda: members.are_balanced(PARTITIONS))
    produce(broker, "t", numbered(0, 60))
    members.until(lambda: len(members.values) == 60)
    members.add("b")
    members.until(lambda: members.are_balanced(PARTITIONS))
    members.add("c")
    produce(broker, "t", numbered(60, 120))
    members.until(lambda: members.are_balanced(PARTITIONS) and len(members.values) == 120)
    members.remove("a")
    members.until(lambda: members.are_balanced(PARTITIONS))
    produce(broker, "t", numbered(120, 180))
    members.until(lambda: len(members.values) == 180)
    members.remove("c")
    members.until(lambda: members.are_balanced(PARTITIONS))
    members.ensure_once()
    assert not members.lost


def test_a_regular_expression_follows_the_topics(
    broker: BrokerProcess, group: Callable[..., Members]
) -> None:
    create(broker, "orders-1", 2)
    create(broker, "bills", 2)
    members = group("^orders.*")
    members.add("a")
    members.until(lambda: members.owned("a") == {("orders-1", 0), ("orders-1", 1)})
    create(broker, "orders-2", 1)
    time.sleep(10)  # it is not looked up more often
    members.until(lambda: ("orders-2", 0) in members.owned("a"))
    assert len(members.owned("a")) == 3


def test_a_static_member_comes_back_to_its_partitions(
    broker: BrokerProcess, group: Callable[..., Members]
) -> None:
    create(broker, "t")
    members = group("t")
    members.add("a", **{"group.instance.id": "one"})
    members.add("b", **{"group.instance.id": "two"})
    members.until(lambda: members.are_balanced(PARTITIONS))
    had, others = members.owned("a"), members.owned("b")
    members.remove("a")
    for _ in range(20):
        members.poll()
        assert members.owned("b") == others, "its place is kept"
    members.add("a again", **{"group.instance.id": "one"})
    members.until(lambda: members.owned("a again") == had)
    assert members.owned("b") == others


CHILD = """
import sys
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "g",
                     "group.protocol": "consumer", "auto.offset.reset": "earliest"})
consumer.subscribe(["t"])
while True:
    consumer.poll(0.05)
    print(len(consumer.assignment()), flush=True)
"""


def test_a_killed_member_is_replaced_after_its_session(
    broker: BrokerProcess, group: Callable[..., Members]
) -> None:
    create(broker, "t")
    members = group("t")
    members.add("a")
    members.until(lambda: members.are_balanced(PARTITIONS))
    command = [sys.executable, "-c", CHILD, broker.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        members.until(lambda: len(members.owned("a")) == PARTITIONS // 2)
        assert child.stdout is not None
        while child.stdout.readline() != f"{PARTITIONS // 2}\n":
            members.poll()
        child.kill()
    members.until(lambda: members.are_balanced(PARTITIONS))


@pytest.mark.parametrize("when", ["quiet", "mid-rebalance"])
def test_a_killed_broker_goes_on_where_it_was(
    broker: BrokerProcess, group: Callable[..., Members], when: str
) -> None:
    create(broker, "t")
    produce(broker, "t", numbered(0, 60))
    members = group("t")
    members.add("a")
    members.add("b")
    members.until(lambda: members.are_balanced(PARTITIONS) and len(members.values) == 60)
    if when == "mid-rebalance":
        members.add("c")
        for _ in range(5):
            members.poll()
    broker.kill()
    broker.start()
    members.until(lambda: members.are_balanced(PARTITIONS))
    produce(broker, "t", numbered(60, 120))
    members.until(lambda: len(members.values) == 120)
    members.ensure_once()


def test_a_live_group_moves_to_the_new_protocol_and_back(
    broker: BrokerProcess, group: Callable[..., Members]
) -> None:
    """One member after the other is replaced, and all is read, once."""
    create(broker, "t")
    members = group("t")
    classic = {
        "group.protocol": "classic",
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "300",
    }
    members.add("a", **classic)
    members.until(lambda: members.are_balanced(PARTITIONS))
    members.add("b", **classic)  # a second rebalance: then the assignments have user data
    produce(broker, "t", numbered(0, 60))
    members.until(lambda: members.are_balanced(PARTITIONS) and len(members.values) == 60)
    members.add("new a")
    members.until(lambda: members.are_balanced(PARTITIONS))
    members.remove("a")
    produce(broker, "t", numbered(60, 120))
    members.until(lambda: members.are_balanced(PARTITIONS) and len(members.values) == 120)
    members.remove("b")
    members.until(lambda: members.are_balanced(PARTITIONS))
    members.add("old again", **classic)
    members.until(lambda: members.are_balanced(PARTITIONS))
    members.remove("new a")
    produce(broker, "t", numbered(120, 180))
    members.until(lambda: members.are_balanced(PARTITIONS) and len(members.values) == 180)
    members.ensure_once()
