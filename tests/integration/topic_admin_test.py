"""What librdkafka's administrator does to topics and folders of a running broker."""

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import (
    ElectionType,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewPartitions, NewTopic

from runnel.client.raw import WireClient
from runnel.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from runnel.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.support.process import BrokerProcess, StartBroker
from tests.support.reading import read_topic

WAIT_S = 20.0


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "a", tmp_path / "b"


@pytest.fixture
def broker(start_broker: StartBroker, folders: tuple[Path, Path]) -> BrokerProcess:
    return start_broker(folders[0].name, more_dirs=folders[1:])


@pytest.fixture
def admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def refusal(work: Callable[[], object]) -> int:
    with pytest.raises(KafkaException) as refused:
        work()
    code: int = refused.value.args[0].code()
    return code


def create(admin: AdminClient, name: str, **options: object) -> None:
    new = NewTopic(name, **options)  # type: ignore[arg-type]  # as a test gives them
    admin.create_topics([new])[name].result(WAIT_S)


def grow(admin: AdminClient, name: str, count: int, **options: object) -> None:
    new = NewPartitions(name, count, **options)  # type: ignore[arg-type]  # as a test gives them
    admin.create_partitions([new])[name].result(WAIT_S)


def test_topics_grow_and_are_described(admin: AdminClient) -> None:
    create(admin, "t", num_partitions=2, replication_factor=1)
    grow(admin, "t", 5)
    grow(admin, "t", 6, replica_assignment=[[0]])
    described = admin.describe_topics(TopicCollection(["t"]))["t"].result(WAIT_S)
    assert [each.id for each in described.partitions] == list(range(6))
    assert {each.leader.id for each in described.partitions} == {0}
    assert described.topic_id is not None
    assert refusal(lambda: grow(admin, "t", 6)) == KafkaError.INVALID_PARTITIONS
    assert refusal(lambda: grow(admin, "no", 6)) == KafkaError.UNKNOWN_TOPIC_OR_PART
    wrong = refusal(lambda: grow(admin, "t", 7, replica_assignment=[[0, 7]]))
    assert wrong == KafkaError.INVALID_REPLICA_ASSIGNMENT


def test_topics_that_cannot_be_are_refused_and_not_made(admin: AdminClient) -> None:
    for options, code in (
        ({"replication_factor": 2}, KafkaError.INVALID_REPLICATION_FACTOR),
        ({"num_partitions": 0}, KafkaError.INVALID_PARTITIONS),
        ({"config": {"retention.ms": "soon"}}, KafkaError.INVALID_CONFIG),
        ({"config": {"no.such.name": "1"}}, KafkaError.INVALID_CONFIG),
        ({"replica_assignment": [[9]]}, KafkaError.INVALID_REPLICA_ASSIGNMENT),
    ):
        given = {"num_partitions": 1} | options
        assert refusal(lambda given=given: create(admin, "bad", **given)) == code, options  # type: ignore[misc]  # bound now
    name = refusal(lambda: create(admin, "a b", num_partitions=1))
    assert name == KafkaError.TOPIC_EXCEPTION
    assert "bad" not in admin.list_topics(timeout=WAIT_S).topics


def test_the_cluster_its_offsets_and_its_leaders(broker: BrokerProcess, admin: AdminClient) -> None:
    cluster = admin.describe_cluster().result(WAIT_S)
    assert [node.id for node in cluster.nodes] == [0]
    assert cluster.controller.id == 0
    create(admin, "t", num_partitions=1)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(10):
        producer.produce("t", b"%d" % number)
    assert producer.flush(WAIT_S) == 0
    one = TopicPartition("t", 0)
    latest = admin.list_offsets({one: OffsetSpec.latest()})[one].result(WAIT_S)  # type: ignore[no-untyped-call]  # theirs
    assert latest.offset == 10
    deleted = admin.delete_records([TopicPartition("t", 0, 4)])
    assert next(iter(deleted.values())).result(WAIT_S).low_watermark == 4
    elected = admin.elect_leaders(ElectionType.PREFERRED, [one]).result(WAIT_S)
    assert elected[one].code() == KafkaError.ELECTION_NOT_NEEDED


def test_a_log_moves_to_another_folder_while_it_is_written(
    broker: BrokerProcess, admin: AdminClient, folders: tuple[Path, Path]
) -> None:
    create(admin, "t", num_partitions=1)
    sent: list[bytes] = []
    stop = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        while not stop.is_set():
            sent.append(b"%d" % len(sent) + b"x" * 20_000)
            producer.produce("t", sent[-1])
            producer.poll(0)
            if len(sent) % 50 == 0:
                assert producer.flush(WAIT_S) == 0
        assert producer.flush(WAIT_S) == 0

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with WireClient(broker.address) as client:
            while len(sent) < 500:
                time.sleep(0.01)
            for folder in (folders[1], folders[0], folders[1]):
                topic = AlterReplicaLogDirTopic(name="t", partitions=[0])
                asked = AlterReplicaLogDir(path=str(folder), topics=[topic])
                response = client.call(AlterReplicaLogDirsRequest(dirs=[asked]), version=2)
                assert response.results[0].partitions[0].error_code == 0
                deadline = time.monotonic() + WAIT_S
                while _home(client) != str(folder):
                    assert time.monotonic() < deadline, "it does not arrive"
                    time.sleep(0.02)
    finally:
        stop.set()
        writer.join()
    broker.kill()
    broker.start()
    assert [message.value() for message in read_topic(broker.bootstrap, "t", 1)] == sent
    assert (folders[1] / "t-0").is_dir()
    assert not (folders[0] / "t-0").exists()


def _home(client: WireClient) -> str:
    response = client.call(DescribeLogDirsRequest(topics=None), version=4)
    (home,) = [
        folder.log_dir
        for folder in response.results
        for topic in folder.topics
        for each in topic.partitions
        if not each.is_future_key
    ]
    return str(home)


def test_a_folder_that_fails_between_two_lives(
    broker: BrokerProcess, admin: AdminClient, folders: tuple[Path, Path]
) -> None:
    """Another thing of its name is in its place: its partitions wait, the others serve."""
    create(admin, "t", num_partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 2000})
    failed: list[KafkaError | None] = []
    for index in (0, 1):
        producer.produce("t", b"v", partition=index)
    assert producer.flush(WAIT_S) == 0
    broker.stop()
    away = folders[1].with_name("away")
    folders[1].rename(away)
    folders[1].write_text("not a folder")
    broker.start()
    for index in (0, 1):
        producer.produce(
            "t", b"w", partition=index, on_delivery=lambda error, _message: failed.append(error)
        )
    producer.flush(WAIT_S)
    assert sorted(error is None for error in failed) == [False, True]
    broker.stop()
    folders[1].unlink()
    away.rename(folders[1])
    broker.start()
    found = sorted(message.value() or b"" for message in read_topic(broker.bootstrap, "t", 2))
    assert found == [b"v", b"v", b"w"]


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat_lists_what_was_added(broker: BrokerProcess, admin: AdminClient) -> None:
    create(admin, "t", num_partitions=1)
    grow(admin, "t", 3)
    command = ["kcat", "-b", broker.bootstrap, "-L", "-J", "-t", "t"]
    told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert [each["partition"] for each in told["topics"][0]["partitions"]] == [0, 1, 2]
