"""A broker process and its exporter: what they tell, and what becomes of one without the other."""

import json
import signal
import socket
import time
import urllib.error
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from runnel.exporter.catalogue import COUNTER, METRICS, sample_names
from runnel.testing import BrokerError, RunnelBroker
from tests.support.patience import eventually
from tests.support.process import BrokerProcess, StartBroker, serve_until_it_fails
from tests.support.scraping import Scrape, get, scrape, until

TOPIC = "orders"
GROUP = 'the "best" \\ group'  # any text may be one
PATIENCE_S = 20.0


def exporter_of(broker: BrokerProcess) -> psutil.Process:
    (child,) = psutil.Process(broker.pid).children()
    return child


def status(url: str) -> tuple[int, str]:
    try:
        return 200, get(url)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def use(broker: BrokerProcess) -> None:
    """Records, a group that is three behind, a transaction that is left open, an error."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 2)])[TOPIC].result(20)
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic(TOPIC, 2)])[TOPIC].result(20)
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(10):
        producer.produce(TOPIC, str(number), partition=0)
    assert producer.flush(20) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    messages = consumer.consume(7, timeout=20)
    assert len(messages) == 7
    consumer.commit(message=messages[-1], asynchronous=False)
    consumer.close()
    transactional = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "t"})
    transactional.init_transactions(20)
    transactional.begin_transaction()
    transactional.produce(TOPIC, "open", partition=1)
    transactional.flush(20)


def is_told(found: Scrape) -> bool:
    return (
        found.has("runnel_group_lag", group=GROUP, topic=TOPIC, partition="0")
        and found.value("runnel_transactions", state="Ongoing") == 1
        and found.value("runnel_partition_log_end_offset", topic=TOPIC, partition="1") == 1
    )


def test_a_scrape_tells_what_was_done(start_broker: StartBroker) -> None:
    broker = start_broker(metrics=True)
    use(broker)
    found = until(broker.http, is_told)
    first, second = {"topic": TOPIC, "partition": "0"}, {"topic": TOPIC, "partition": "1"}
    assert found.value("runnel_partition_high_watermark", **first) == 10
    assert found.value("runnel_partition_log_start_offset", **first) == 0
    assert found.value("runnel_partition_bytes", **first) > 70
    assert found.value("runnel_partition_segments", **first) == 1
    age_s = time.time() - found.value("runnel_partition_oldest_record_timestamp_seconds", **first)
    assert 0 <= age_s < 100
    assert found.value("runnel_partition_last_stable_offset", **second) == 0, "held back"
    assert found.value("runnel_group_committed_offset", group=GROUP, **first) == 7
    assert found.value("runnel_group_lag", group=GROUP, **first) == 3
    assert found.value("runnel_group_members", group=GROUP) == 0
    assert found.value("runnel_group_rebalances_total", group=GROUP) >= 1
    assert found.value("runnel_groups", protocol="classic", state="Empty") == 1
    assert 0 < found.value("runnel_transaction_oldest_seconds") < 100
    assert found.value("runnel_topic_partitions", topic=TOPIC) == 2
    assert found.value("runnel_produced_records_total") == 11
    assert found.value("runnel_produced_bytes_total") > 70
    assert found.value("runnel_request_errors_total", error="TOPIC_ALREADY_EXISTS") == 1
    produces = found.value("runnel_requests_total", api="Produce")
    assert 2 <= produces <= 11
    assert found.value("runnel_request_seconds_count", api="Produce") == produces
    assert found.value("runnel_request_seconds_bucket", api="Produce", le="+Inf") == produces
    assert 0 < found.value("runnel_request_seconds_sum", api="Produce") < 60
    directory = str(broker.data_dir)
    assert found.value("runnel_log_dir_online", dir=directory) == 1
    total, free, used = (
        found.value("runnel_log_dir_bytes", dir=directory, kind=kind)
        for kind in ("total", "free", "used")
    )
    assert total > free > 0 and used > 70
    assert found.value("runnel_ready") == 1
    assert found.value("runnel_connections_accepted_total") >= 3
    with socket.create_connection(broker.address):
        until(broker.http, lambda now: now.value("runnel_connections") >= 1)
    assert found.value("process_resident_memory_bytes") > 20e6
    assert found.value("process_open_fds") < found.value("process_max_fds")
    assert found.value("process_cpu_seconds_total") > 0
    assert abs(found.value("process_start_time_seconds") - time.time()) < 200
    assert found.value("runnel_exporter_resident_memory_bytes") < 40e6


def test_every_metric_of_the_catalogue_is_told_in_both_formats(start_broker: StartBroker) -> None:
    broker = start_broker(metrics=True)
    use(broker)
    until(broker.http, is_told)
    for open_metrics in (False, True):
        found = scrape(broker.http, open_metrics=open_metrics)
        told = {name for name, _ in found.values}
        for metric in METRICS:
            for name in sample_names(metric):
                assert name in told, name
                for labels in found.labels_of(name):
                    assert set(labels) - {"le"} == set(metric.labels), name
            family = metric.name.removesuffix("_total") if metric.kind == COUNTER else metric.name
            assert found.families[family] == (metric.kind, metric.help)
        assert told == {name for metric in METRICS for name in sample_names(metric)}


def test_what_is_deleted_is_told_of_no_more(start_broker: StartBroker) -> None:
    broker = start_broker(metrics=True)
    use(broker)
    until(broker.http, is_told)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([TOPIC])[TOPIC].result(20)
    admin.delete_consumer_groups([GROUP])[GROUP].result(20)
    until(
        broker.http,
        lambda found: (
            not any(
                labels.get("topic") == TOPIC
                for _, pairs in found.values
                for labels in [dict(pairs)]
            )
            and not found.labels_of("runnel_group_members")
        ),
    )


def test_an_exporter_that_dies_is_replaced_at_the_same_address(start_broker: StartBroker) -> None:
    broker = start_broker(metrics=True)
    scrape(broker.http)
    first = exporter_of(broker)
    first.kill()
    first.wait(PATIENCE_S)
    assert status(f"http://{broker.http}/readyz") == (200, "ready\n"), "asked while it is gone"
    assert exporter_of(broker).pid != first.pid
    assert "the metrics exporter ended with status -9" in broker.log
    assert broker.stop() == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_an_exporter_ends_with_its_broker(start_broker: StartBroker, how: signal.Signals) -> None:
    broker = start_broker(metrics=True)
    scrape(broker.http)
    child, (host, _, port) = exporter_of(broker), broker.http.rpartition(":")
    broker.send_signal(how)
    broker.wait()

    def is_gone() -> bool:
        return not child.is_running() or child.status() == psutil.STATUS_ZOMBIE

    eventually(is_gone)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


def test_a_loop_that_stands_still_is_not_healthy(start_broker: StartBroker) -> None:
    broker = start_broker(metrics=True)
    url = f"http://{broker.http}/healthz"
    eventually(lambda: status(url) == (200, "ok\n"))
    broker.send_signal(signal.SIGSTOP)
    try:
        eventually(lambda: status(url)[0] == 503)
        assert "the event loop has not run for" in status(url)[1]
        assert scrape(broker.http).value("runnel_ready") == 1, "numbers are told all the same"
    finally:
        broker.send_signal(signal.SIGCONT)
    eventually(lambda: status(url)[0] == 200)


def test_where_metrics_are_told_is_said_and_can_be_chosen(start_broker: StartBroker) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    broker = start_broker(arguments=["--http", f"127.0.0.1:{port}"], metrics=True)
    assert broker.http == f"127.0.0.1:{port}"
    assert json.loads(broker.ready_file.read_text())["http"] == broker.http
    eventually(lambda: f"metrics and health are told on http://{broker.http}" in broker.log)
    assert get(f"http://{broker.http}/").startswith("Runnel: /metrics")
    assert status(f"http://{broker.http}/metric")[0] == 404


def test_an_address_that_was_asked_for_and_is_taken_stops_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, said = serve_until_it_fails(tmp_path / "data", "--http", address)
    assert code == 2
    assert f"runnel.http.listener: cannot listen on {address}" in said and "--http off" in said


def test_off_means_no_process_and_no_address(start_broker: StartBroker) -> None:
    broker = start_broker(arguments=["--http", "off"], metrics=True)
    assert broker.http == ""
    assert psutil.Process(broker.pid).children() == []


@pytest.mark.parametrize("in_process", [False, True])
def test_a_broker_of_a_test_tells_metrics_if_it_is_asked_to(in_process: bool) -> None:
    with RunnelBroker(in_process=in_process, metrics=True) as broker:
        http = broker.metrics_url.removeprefix("http://").removesuffix("/metrics")
        assert scrape(http).value("runnel_ready") == 1
    with RunnelBroker(in_process=in_process) as broker, pytest.raises(BrokerError, match="metrics"):
        _ = broker.metrics_url
