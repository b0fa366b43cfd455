"""Settings of a running broker, asked for and altered by librdkafka's admin client."""

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
)
from confluent_kafka.cimpl import NewTopic

from runnel.client.raw import WireClient
from tests.support.patience import eventually
from tests.support.process import BrokerProcess, StartBroker

TOPIC, BROKER = ConfigResource.Type.TOPIC, ConfigResource.Type.BROKER
TOPICS_OWN: Any = ConfigSource.DYNAMIC_TOPIC_CONFIG.value  # an entry's source is a plain number
PATIENCE_S = 10.0


def admin_of(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


def settle(futures: dict[Any, Any]) -> Any:  # noqa: ANN401  # what the only future holds
    (future,) = futures.values()
    return future.result(timeout=PATIENCE_S)


def alter(admin: AdminClient, kind: Any, name: str, **configs: str | None) -> None:  # noqa: ANN401  # an enumeration of C
    """Names with underscores for dots; None takes a setting away."""
    entries = [
        ConfigEntry(
            key.replace("_", "."),
            value,
            incremental_operation=AlterConfigOpType.DELETE
            if value is None
            else AlterConfigOpType.SET,
        )
        for key, value in configs.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    settle(admin.incremental_alter_configs([resource]))


def described(admin: AdminClient, kind: Any, name: str) -> dict[str, ConfigEntry]:  # noqa: ANN401  # as above
    found: dict[str, ConfigEntry] = settle(admin.describe_configs([ConfigResource(kind, name)]))
    return found


@pytest.fixture
def broker(start_broker: StartBroker) -> BrokerProcess:
    return start_broker(settings={"log.retention.check.interval.ms": "200"})


def test_a_topics_settings_take_effect_and_survive_a_kill(broker: BrokerProcess) -> None:
    admin = admin_of(broker)
    settle(admin.create_topics([NewTopic("t", 1, 1, config={"retention.ms": "86400000"})]))
    before = described(admin, TOPIC, "t")
    assert before["retention.ms"].value == "86400000"
    assert before["retention.ms"].source == TOPICS_OWN
    assert before["segment.bytes"].is_default
    assert list(before["segment.bytes"].synonyms) == ["log.segment.bytes"]

    alter(admin, TOPIC, "t", max_message_bytes="2000", retention_ms=None)
    refused: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    producer.produce("t", bytes(5000), on_delivery=lambda error, _: refused.append(error))
    producer.flush(PATIENCE_S)
    assert refused[0] is not None and refused[0].code() == KafkaError.MSG_SIZE_TOO_LARGE

    broker.kill()
    broker.start()
    after = described(admin_of(broker), TOPIC, "t")
    assert after["max.message.bytes"].value == "2000"
    assert after["retention.ms"].value == "604800000" and after["retention.ms"].is_default


def test_retention_by_a_brokers_new_default(broker: BrokerProcess) -> None:
    admin = admin_of(broker)
    settle(admin.create_topics([NewTopic("t", 1, 1)]))
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    producer.produce("t", b"old", timestamp=1_000_000)
    producer.flush(PATIENCE_S)
    log = broker.data_dir / "t-0"
    eventually(lambda: not (log / f"{0:020d}.log").exists())  # it is older than seven days

    alter(admin, BROKER, "0", log_retention_ms="-1")
    producer.produce("t", b"kept", timestamp=1_000_000)
    producer.flush(PATIENCE_S)
    time.sleep(1)
    assert (log / f"{1:020d}.log").stat().st_size > 0
    assert described(admin, TOPIC, "t")["retention.ms"].value == "-1"
    alter(admin, BROKER, "0", log_retention_ms=None)
    eventually(lambda: not (log / f"{1:020d}.log").exists())


def test_what_is_refused_says_why(broker: BrokerProcess) -> None:
    admin = admin_of(broker)
    settle(admin.create_topics([NewTopic("t", 1, 1)]))
    for kind, name, configs, code in (
        (TOPIC, "t", {"retention_ms": "soon"}, KafkaError.INVALID_CONFIG),
        (TOPIC, "t", {"no_such": "x"}, KafkaError.INVALID_CONFIG),
        (TOPIC, "none", {"retention_ms": "1"}, KafkaError.UNKNOWN_TOPIC_OR_PART),
        (BROKER, "0", {"node_id": "3"}, KafkaError.INVALID_REQUEST),
        (BROKER, "0", {"max_connections": "-3"}, KafkaError.INVALID_REQUEST),
    ):
        with pytest.raises(KafkaException) as caught:
            alter(admin, kind, name, **configs)
        assert caught.value.args[0].code() == code
    assert described(admin, TOPIC, "t")["retention.ms"].is_default


@contextlib.contextmanager
def connections(broker: BrokerProcess, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(broker.address)) for _ in range(count)]


def is_open(sock: socket.socket) -> bool:
    sock.settimeout(0.3)
    try:
        return sock.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def test_limits_on_connections_count_from_now_on(broker: BrokerProcess) -> None:
    admin = admin_of(broker)
    admin.list_topics(timeout=PATIENCE_S)
    with connections(broker, 10) as before:
        alter(admin, BROKER, "0", max_connections_per_ip="3")
        assert all(map(is_open, before)), "who is in stays in"
        with connections(broker, 2) as refused:
            assert not any(map(is_open, refused))
        alter(admin, BROKER, "0", max_connections_per_ip_overrides="127.0.0.1:100")
        with connections(broker, 2) as welcome:
            assert all(map(is_open, welcome))
        alter(admin, BROKER, "0", max_connections="5")
        with connections(broker, 2) as refused:
            assert not any(map(is_open, refused))


def test_connections_come_no_faster_than_their_rate(broker: BrokerProcess) -> None:
    admin = admin_of(broker)
    admin.list_topics(timeout=PATIENCE_S)
    alter(admin, BROKER, "0", max_connection_creation_rate="5")
    started = time.monotonic()
    for _ in range(16):
        with WireClient(broker.address) as client:
            assert client.versions
    assert time.monotonic() - started > 1.5
