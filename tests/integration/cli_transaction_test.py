"""`runnel transaction` as a user runs it, beside transactional producers."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer

from runnel.client.admin import LATEST, list_offsets
from runnel.client.cluster import Cluster, addresses_of
from runnel.client.raw import WireClient
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.command import Runnel
from tests.support.elsewhere import new_name, some_broker

UNVERIFIED = "transaction.partition.verification.enable"
ENDED_WITHIN_S = 10.0
NAMED_TOPICS = 11  # the newest version of Produce whose transactions are not begun by it


@pytest.fixture(scope="module")
def runnel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runnel]:
    with some_broker(tmp_path_factory.mktemp("cli")) as address:
        yield Runnel(address)


@pytest.fixture
def topic(runnel: Runnel) -> str:
    name = new_name("orders")
    runnel("topic", "create", name, "--partitions", "2")
    return name


def begun(runnel: Runnel, name: str, topic: str) -> Producer:
    """A transaction with a record in each partition, left open."""
    producer = Producer({"bootstrap.servers": runnel.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce(topic, b"v", partition=partition)
    assert producer.flush(30) == 0
    return producer


def ended(runnel: Runnel, name: str) -> str:
    """The state once the markers are written, which clients do not wait for."""
    deadline = time.monotonic() + ENDED_WITHIN_S
    while True:
        (document,) = runnel("transaction", "describe", name, "--json").json
        if not document["partitions"] or time.monotonic() > deadline:
            return str(document["state"])
        time.sleep(0.05)


def test_a_transaction_from_begin_to_commit(runnel: Runnel, topic: str) -> None:
    name = new_name("copy")
    producer = begun(runnel, name, topic)
    (document,) = runnel("transaction", "describe", name, "--json").json
    assert document["state"] == "Ongoing" and document["timeout_ms"] == 60_000
    assert document["partitions"] == [{"topic": topic, "partition": at} for at in (0, 1)]
    assert 0 <= document["open_ms"] < 60_000
    shown = runnel("transaction", "describe", name).out
    assert f"{topic}:0, {topic}:1" in shown and "Ongoing" in shown

    row = {name: document[name] for name in ("transactional_id", "producer_id", "state")}

    def listed(*arguments: str) -> bool:
        rows = runnel("transaction", "list", *arguments, "--json").json
        return row in [{key: each[key] for key in row} for each in rows]

    assert listed() and listed("--state", "Ongoing") and listed("--pattern", f"{name[:6]}.*")
    assert not listed("--state", "Empty") and not listed("--pattern", "none")
    assert not listed("--longer-than", "1h") and listed("--longer-than", "0s")
    assert name in runnel("transaction", "list").out
    hanging = runnel("transaction", "find-hanging", "-t", topic, "--longer-than", "0s", "--json")
    assert hanging.json == []  # its coordinator will end it

    producer.commit_transaction(30)
    assert ended(runnel, name) == "CompleteCommit"
    refused = runnel.inside("transaction", "abort", name, "--yes")
    assert refused.status == 2 and "has no open transaction" in refused.err


def test_abort_fences_the_producer(runnel: Runnel, topic: str) -> None:
    name = new_name("copy")
    producer = begun(runnel, name, topic)
    refused = runnel.inside("transaction", "abort", name)
    assert refused.status == 2 and "add --yes" in refused.err
    assert runnel("transaction", "abort", name, "--yes").line == f"aborted {name}"
    assert ended(runnel, name) in ("CompleteAbort", "Empty")
    with pytest.raises(KafkaException, match=r"(?i)fenced|epoch"):
        producer.commit_transaction(30)


def test_consuming_what_is_committed(runnel: Runnel, topic: str) -> None:
    """Aborted records are left out, and an open transaction ends what can be read."""
    name, group = new_name("copy"), new_name("reading")
    producer = Producer({"bootstrap.servers": runnel.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        for part in "ab":
            producer.produce(topic, f"{number}{part}".encode(), partition=0)
            assert producer.flush(30) == 0
        if number < 5:
            (producer.abort_transaction if number % 2 else producer.commit_transaction)(30)
    assert ended_before(runnel, topic, 15)
    committed = ["0a", "0b", "2a", "2b", "4a", "4b"]
    assert runnel("consume", topic, "--committed").out.split() == committed
    assert len(runnel("consume", topic).out.split()) == 12
    some = runnel("consume", topic, "--committed", "--group", group, "--count", "3")
    rest = runnel("consume", topic, "--committed", "--group", group)
    assert some.out.split() + rest.out.split() == committed
    producer.commit_transaction(30)
    assert ended_before(runnel, topic, 18)
    more = runnel("consume", topic, "--committed", "--group", group)
    assert more.out.split() == ["5a", "5b"]
    (document,) = runnel("group", "describe", group, "--json").json
    assert document["total_lag"] == 0  # the marker after the last record is behind it, too


def ended_before(runnel: Runnel, topic: str, offset: int) -> bool:
    """Whether what is committed soon reaches that offset: markers come after the answer."""
    deadline = time.monotonic() + ENDED_WITHIN_S
    with Cluster(addresses_of(runnel.bootstrap)) as cluster:
        while time.monotonic() < deadline:
            if list_offsets(cluster, topic, {0: LATEST}, committed=True)[0] == offset:
                return True
            time.sleep(0.05)
    return False


def test_a_hanging_transaction_is_found_and_aborted(runnel: Runnel, topic: str) -> None:
    """A producer wrote without a coordinator: nobody will ever end that transaction."""
    runnel("config", "set", "--broker", "all", f"{UNVERIFIED}=false")
    try:
        produce_astray(runnel, topic)
    finally:
        runnel("config", "unset", "--broker", "all", UNVERIFIED)
    assert runnel("transaction", "find-hanging", "-t", topic, "--json").json == []  # not silent yet
    (found,) = runnel(
        "transaction", "find-hanging", "-t", topic, "--longer-than", "0s", "--json"
    ).json
    assert (found["partition"], found["producer_id"], found["start_offset"]) == (0, 999_999, 0)
    shown = runnel("transaction", "find-hanging", "--longer-than", "0s").out
    assert [topic, "0", "999999"] in [line.split()[:3] for line in shown.splitlines()]

    by_place = ("transaction", "abort", "--topic", f"{topic}:0", "--start-offset", "0")
    assert runnel.inside(*by_place).status == 2  # asks first
    done = runnel(*by_place, "--yes")
    assert done.line == f"aborted the transaction at {topic}:0, offset 0"
    again = runnel("transaction", "find-hanging", "-t", topic, "--longer-than", "0s", "--json")
    assert again.json == []
    refused = runnel.inside(*by_place, "--yes")
    assert refused.status == 2 and "no transaction is open" in refused.err


def produce_astray(runnel: Runnel, topic: str) -> None:
    record = Record(None, b"v", time.time_ns() // 1_000_000)
    batch = encode(
        [record], producer_id=999_999, producer_epoch=0, base_sequence=0, transactional=True
    )
    rows = [PartitionProduceData(index=0, records=bytes(batch))]
    request = ProduceRequest(
        transactional_id="nobody's",
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=rows)],
    )
    (address,) = addresses_of(runnel.bootstrap)
    deadline, code = time.monotonic() + ENDED_WITHIN_S, -1
    with WireClient(address) as client:
        while code and time.monotonic() < deadline:  # Kafka's setting takes effect a little later
            (answer,) = client.call(request, version=NAMED_TOPICS).responses
            (code,) = (row.error_code for row in answer.partition_responses)
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "said", "advice"),
    [
        (["describe", "absent"], "there is no transactional id absent", "'runnel transaction list"),
        (["abort", "absent", "--yes"], "there is no transactional id absent", "transaction list"),
        (["abort"], "Say which", "--start-offset"),
        (["abort", "x", "--topic", "kept:0", "--start-offset", "1"], "Say which", "--topic"),
        (["abort", "--topic", "kept:0"], "Say which", "--start-offset"),
        (["abort", "--topic", "absent:0", "--start-offset", "1", "-y"], "no topic", "topic list"),
        (["list", "--state", "Sleeping"], "no such state", "Check the names"),
        (["list", "--longer-than", "x"], "is no duration", "write 90s"),
        (["find-hanging", "--topic", "absent"], "there is no topic absent", "topic list"),
    ],
)
def test_what_is_refused_is_told_in_one_line(
    runnel: Runnel, arguments: list[str], said: str, advice: str
) -> None:
    done = runnel.inside("transaction", *arguments)
    assert done.status == 2 and done.out == ""
    assert done.err.count("\n") == 1 and said in done.err and advice in done.err
