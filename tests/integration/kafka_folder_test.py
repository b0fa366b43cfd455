"""A data folder that a Kafka 4.3 broker wrote opens in Runnel and gives the same records.

The folders and what Kafka itself served from them were recorded by
`tests.compat.kafka_folder.record`: `clean` after SIGTERM, `killed` after SIGKILL with a torn tail.
Kafka's `__cluster_metadata` log is not read, so topics come from their folders and their
configuration is not known; retention is switched off because the records are years old.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource

from tests.compat.kafka_folder.expected import Folder, read_folder
from tests.support import kafka_folders
from tests.support.process import BrokerProcess

PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kafka_folders.unpack(tmp_path_factory.mktemp("kafka-folder"))


@pytest.fixture(params=["clean", "killed"])
def recorded(request: pytest.FixtureRequest) -> tuple[str, Folder]:
    expected: dict[str, Folder] = kafka_folders.served()
    return request.param, expected[request.param]


@pytest.fixture
def broker(recorded: tuple[str, Folder], unpacked: Path, tmp_path: Path) -> Iterator[BrokerProcess]:
    data_dir = tmp_path / "data"
    shutil.copytree(unpacked / recorded[0], data_dir)
    with BrokerProcess(data_dir, settings={"log.retention.ms": "-1"}) as process:
        yield process


def test_serves_what_kafka_served(recorded: tuple[str, Folder], broker: BrokerProcess) -> None:
    _, expected = recorded
    served = json.loads(json.dumps(read_folder(broker.bootstrap, list(expected["topics"]))))
    assert served["cluster_id"] == expected["cluster_id"]
    assert served["topics"] == expected["topics"]
    for got, wanted in zip(served["records"], expected["records"], strict=False):
        assert got == wanted
    assert len(served["records"]) == len(expected["records"])


def test_lists_no_deleted_topic(recorded: tuple[str, Folder], broker: BrokerProcess) -> None:
    _, expected = recorded
    listed = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=PATIENCE_S)
    assert {name for name in listed.topics if not name.startswith("__")} == set(expected["topics"])


def test_the_coordinators_topics_are_compacted(broker: BrokerProcess) -> None:
    """Uncompacted they would grow for ever; everything else keeps its records until told not to."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    names = ("__transaction_state", "codec-none")
    asked = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
    answers = admin.describe_configs(asked, request_timeout=PATIENCE_S)
    own, other = (answers[resource].result() for resource in asked)
    assert own["cleanup.policy"].value == "compact"
    assert other["retention.ms"].value == "-1"


def test_goes_on_where_kafka_stopped(recorded: tuple[str, Folder], broker: BrokerProcess) -> None:
    """New records get the next offsets, and a restart of Runnel finds old and new together."""
    _, expected = recorded
    topics = [name for name in expected["topics"] if name != "compacted"]
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for name in topics:
        producer.produce(name, b"by Runnel", b"key", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    broker.stop()
    broker.start()
    served = read_folder(broker.bootstrap, topics)
    for name in topics:
        low, high = expected["topics"][name]["watermarks"][0]
        assert served["topics"][name]["watermarks"][0] == (low, high + 1), name
    added = [record for record in served["records"] if record["value"] == "by Runnel"]
    wanted = {name: expected["topics"][name]["watermarks"][0][1] for name in topics}
    assert {record["topic"]: record["offset"] for record in added} == wanted
