"""A real Prometheus, Debian's: it reads our rules, scrapes real brokers, and sends real alerts.

`make e2e` runs this; it downloads Prometheus the first time. The rules are those of
deploy/prometheus, with minutes as seconds (`hurried`); in their own time they run in
alerts.test.yml.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from runnel.cli.scraping import metrics_url, scrape_text
from tests.e2e.debian import Tools, prometheus_tools
from tests.e2e.prometheus import Prometheus, Receiver, hurried
from tests.support.kafka_tools import free_port
from tests.support.process import ROOT, BrokerProcess
from tools.dashboard_panels import ROWS

DEPLOY = ROOT / "deploy/prometheus"
DISK_BYTES = 64 << 20
RECORDS = 3000
VARIABLES = {"$instance": ".*", "$topic": ".*", "$group": ".*", "$__rate_interval": "10s"}
HEALTHY = {  # never of a broker in order, however busy the machine
    "RunnelBrokerDown",
    "RunnelNotReady",
    "RunnelLogOffline",
    "RunnelDataFolderOffline",
    "RunnelFlushFailed",
    "RunnelServerErrors",
    "RunnelRequestsFailed",
    "RunnelUncleanable",
}


@pytest.fixture(scope="module")
def tools() -> Tools:
    return prometheus_tools()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Its exporter is found at the same address after a new start, as Prometheus expects."""
    folder = tmp_path_factory.mktemp("steady") / "data"
    address = f"127.0.0.1:{free_port()}"
    with BrokerProcess(folder, metrics=True, arguments=("--http", address)) as broker:
        yield broker


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | None]:
    """A file system of its own that can be filled; None where it may not be mounted."""
    folder = tmp_path_factory.mktemp("disk")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        yield None
        return
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="module")
def cramped(
    small_disk: Path | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess | None]:
    """A broker whose disk the test can fill."""
    if small_disk is None:
        yield None
        return
    data = tmp_path_factory.mktemp("cramped") / "data"
    data.symlink_to(small_disk, target_is_directory=True)
    with BrokerProcess(data, metrics=True) as broker:
        yield broker


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="module")
def prometheus(
    tools: Tools,
    broker: BrokerProcess,
    cramped: BrokerProcess | None,
    receiver: Receiver,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Prometheus]:
    rules = hurried((DEPLOY / "alerts.yml").read_text())
    targets = [exporter(one) for one in (broker, cramped) if one is not None]
    folder = tmp_path_factory.mktemp("prometheus") / "server"
    with Prometheus(tools, folder, targets, rules, receiver) as prometheus:
        yield prometheus


def exporter(broker: BrokerProcess) -> str:
    """HOST:PORT of its exporter."""
    return metrics_url(None, broker.ready_file).split("/")[2]


def produce(broker: BrokerProcess, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for number in range(count):
        producer.produce(topic, f"record {number}".encode())
    assert producer.flush(30) == 0


def test_promtool_accepts_the_configuration(tools: Tools) -> None:
    configurations = [p for p in DEPLOY.glob("*.yml") if "scrape_configs:" in p.read_text()]
    assert len(configurations) >= 1
    for command in (
        *(["check", "config", str(path)] for path in configurations),
        ["check", "rules", str(DEPLOY / "alerts.yml")],
        ["test", "rules", str(ROOT / "tests/e2e/alerts.test.yml")],
    ):
        done = subprocess.run([tools.promtool, *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_has_nothing_to_say_about_a_scrape(tools: Tools, broker: BrokerProcess) -> None:
    text = scrape_text(f"http://{exporter(broker)}/metrics")
    command = [str(tools.promtool), "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_prometheus_sees_what_clients_did(prometheus: Prometheus, broker: BrokerProcess) -> None:
    produce(broker, "seen", RECORDS)
    here = f'instance="{exporter(broker)}"'
    prometheus.until(
        lambda: prometheus.value(f"runnel_produced_records_total{{{here}}}") == RECORDS,
        "Prometheus has counted the records",
    )
    ends = f'sum(runnel_partition_log_end_offset{{{here}, topic="seen"}})'
    prometheus.until(lambda: prometheus.value(ends) == RECORDS, "the offsets are there")
    assert prometheus.value(f'up{{{here}, job="runnel"}}') == 1
    assert not prometheus.firing() & HEALTHY


def test_groups_that_fall_behind_and_old_transactions(
    prometheus: Prometheus, broker: BrokerProcess, receiver: Receiver
) -> None:
    AdminClient({"bootstrap.servers": broker.bootstrap}).create_topics([NewTopic("late", 1)])
    produce(broker, "late", 10)
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "slow", "enable.auto.commit": False}
    )
    consumer.commit(offsets=[TopicPartition("late", 0, 5)], asynchronous=False)
    consumer.close()
    config = {"bootstrap.servers": broker.bootstrap, "transactional.id": "forgetful"}
    producer = Producer(config)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("late", b"never ended")
    producer.flush(30)

    def behind() -> bool:
        produce(broker, "late", 600)
        return {"RunnelGroupLagGrowing", "RunnelTransactionOld"} <= receiver.names()

    prometheus.until(behind, "both alerts were sent")
    (sent,) = {
        alert["labels"]["group"]
        for alert in receiver.received
        if alert["labels"]["alertname"] == "RunnelGroupLagGrowing"
    }
    assert sent == "slow"
    producer.abort_transaction(30)


def test_every_expression_of_the_dashboard_has_an_answer(
    prometheus: Prometheus, broker: BrokerProcess
) -> None:
    """After the tests above. None is refused, and only what nobody did is empty."""
    empty = set()
    for row in ROWS:
        for panel in row.panels:
            for query in panel.queries:
                expression = query.expression
                for name, value in VARIABLES.items():
                    expression = expression.replace(name, value)
                if not prometheus.query(expression):
                    empty.add(panel.title)
    assert empty <= {"Errors", "Time behind", "Oldest open transaction", "Flushes"}, empty


def test_a_full_disk(
    prometheus: Prometheus,
    cramped: BrokerProcess | None,
    small_disk: Path | None,
    receiver: Receiver,
) -> None:
    if cramped is None or small_disk is None:
        pytest.skip("only root can mount a small disk")
    produce(cramped, "large", 10)
    free = os.statvfs(small_disk)
    spare = small_disk / "filling"
    with spare.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - (1 << 20))
    prometheus.until(lambda: "RunnelDiskNearlyFull" in receiver.names(), "the disk is told full")
    producer = Producer({"bootstrap.servers": cramped.bootstrap, "message.timeout.ms": 5000})
    for _ in range(40):
        producer.produce("large", b"x" * 100_000)
    producer.flush(10)
    expected = {"RunnelLogOffline", "RunnelServerErrors"}
    prometheus.until(lambda: expected <= receiver.names(), "the failed log is told")
    spare.unlink()


def test_a_broker_that_is_killed_and_comes_back(
    prometheus: Prometheus, broker: BrokerProcess, receiver: Receiver
) -> None:
    address = exporter(broker)
    broker.kill()
    prometheus.until(lambda: "RunnelBrokerDown" in receiver.names(), "the alert was sent")
    down = [a for a in receiver.received if a["labels"]["alertname"] == "RunnelBrokerDown"]
    assert {alert["labels"]["instance"] for alert in down} == {address}
    assert down[0]["labels"]["severity"] == "critical"
    assert down[0]["annotations"]["summary"] == f"Broker {address} does not answer"
    broker.start()
    assert exporter(broker) == address
    prometheus.until(lambda: "RunnelBrokerDown" not in prometheus.firing(), "it has ended")
    here = f'instance="{address}"'
    prometheus.until(lambda: prometheus.value(f"runnel_ready{{{here}}}") == 1, "it is ready again")
    ends = f'sum(runnel_partition_log_end_offset{{{here}, topic="seen"}})'
    prometheus.until(lambda: prometheus.value(ends) == RECORDS, "nothing was lost")
