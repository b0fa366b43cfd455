"""What clients of other people's making see of one broker: kcat and confluent-kafka.

The compat suites go wider; this is the part that every change must pass.
"""

import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    Message,
    Producer,
)

from runnel.client.raw import WireClient
from tests.support.process import LOOPS, BrokerProcess
from tests.support.reading import read_topic

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
DELIVERY_TIMEOUT_S = 20.0

Settings = Mapping[str, str | int | bool]


@pytest.fixture(scope="module", params=sorted(LOOPS))
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """One for all tests of this file; each has topics of its own."""
    folder = tmp_path_factory.mktemp("client") / "data"
    with BrokerProcess(folder, environ=LOOPS[request.param]) as started:
        yield started


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[WireClient]:
    with WireClient(broker.address) as opened:
        yield opened


def deliver(
    broker: BrokerProcess,
    topic: str,
    values: list[bytes],
    settings: Settings | None = None,
    *,
    timestamp_ms: int = 0,
) -> list[KafkaError | None]:
    """Produce in order to partition 0 with keys and headers; the outcome of each record."""
    outcomes: list[KafkaError | None] = []

    def settled(error: KafkaError | None, _message: Message) -> None:
        outcomes.append(error)

    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "log_level": 0, "linger.ms": 5, **(settings or {})}
    )
    for number, value in enumerate(values):
        producer.produce(
            topic,
            value=value,
            key=b"key %d" % number,
            headers=[("number", b"%d" % number), ("none", None)],
            partition=0,
            timestamp=timestamp_ms,
            on_delivery=settled,
        )
    assert producer.flush(DELIVERY_TIMEOUT_S) == 0
    return outcomes


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_records_come_back_equal(
    broker: BrokerProcess, client: WireClient, compression: str
) -> None:
    """Goal: values, keys, headers, times and offsets, by an idempotent producer."""
    topic = f"equal-{compression}"
    client.create_topic(topic, 1)
    values = [b"value %d " % number * (number % 50) for number in range(500)]
    now_ms = time.time_ns() // 1_000_000
    settings: Settings = {"compression.type": compression, "enable.idempotence": True}
    outcomes = deliver(broker, topic, values, settings, timestamp_ms=now_ms)
    assert outcomes == [None] * len(values)
    messages = read_topic(broker.bootstrap, topic, 1)
    assert [message.value() for message in messages] == values
    for number, message in enumerate(messages):
        assert message.offset() == number
        assert message.key() == b"key %d" % number
        assert message.headers() == [("number", b"%d" % number), ("none", None)]
        assert message.timestamp() == (TIMESTAMP_CREATE_TIME, now_ms)


def test_kcat_lists_produces_and_consumes(broker: BrokerProcess) -> None:
    """Goal: a first session by hand; the topic is made by the first produce."""
    kcat = shutil.which("kcat")
    if kcat is None:
        pytest.skip("kcat is not installed")

    def run(*arguments: str, given: str = "") -> str:
        done = subprocess.run(
            [kcat, "-b", broker.bootstrap, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert f" at {broker.bootstrap}" in run("-L")
    run("-P", "-t", "first", given="one\ntwo\nthree\n")
    assert run("-C", "-t", "first", "-e", "-q") == "one\ntwo\nthree\n"
    assert 'topic "first" with 1 partitions' in run("-L", "-t", "first")


def test_a_memory_topic_serves_and_is_empty_after_a_restart(
    broker: BrokerProcess, client: WireClient
) -> None:
    client.create_topic("fleeting", 1, {"runnel.storage": "memory"})
    client.create_topic("lasting", 1)
    for topic in ("fleeting", "lasting"):
        assert deliver(broker, topic, [b"one", b"two"]) == [None, None]
        values = [message.value() for message in read_topic(broker.bootstrap, topic, 1)]
        assert values == [b"one", b"two"]
    client.close()
    assert broker.stop() == 0
    broker.start()
    assert read_topic(broker.bootstrap, "fleeting", 1) == []
    assert len(read_topic(broker.bootstrap, "lasting", 1)) == 2
    assert deliver(broker, "fleeting", [b"three"]) == [None]
    assert len(read_topic(broker.bootstrap, "fleeting", 1)) == 1


def test_log_append_time_is_the_brokers(broker: BrokerProcess, client: WireClient) -> None:
    """Goal: the broker's clock replaces the client's, and the CRC is right all the same."""
    client.create_topic("stamped", 1, {"message.timestamp.type": "LogAppendTime"})
    before_ms = time.time_ns() // 1_000_000
    assert deliver(broker, "stamped", [b"old"] * 3, timestamp_ms=1000) == [None] * 3
    after_ms = time.time_ns() // 1_000_000
    for message in read_topic(broker.bootstrap, "stamped", 1):
        kind, stamp_ms = message.timestamp()
        assert kind == TIMESTAMP_LOG_APPEND_TIME
        assert before_ms <= stamp_ms <= after_ms


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_topic_recompresses(broker: BrokerProcess, client: WireClient, compression: str) -> None:
    """Goal: `compression.type` of the topic, whatever the producer used; records are the same."""
    wanted = "uncompressed" if compression == "none" else compression
    topic = f"recompressed-{wanted}"
    client.create_topic(topic, 1, {"compression.type": wanted})
    values = [b"value %d " % number * 50 for number in range(200)]
    assert deliver(broker, topic, values, {"compression.type": "gzip"}) == [None] * 200
    messages = read_topic(broker.bootstrap, topic, 1)
    assert [message.value() for message in messages] == values
    (log,) = broker.data_dir.glob(f"{topic}-0/*.log")
    attributes = log.read_bytes()[22]
    assert attributes & 0x07 == COMPRESSIONS.index(compression)


def test_a_record_too_large_is_refused_and_the_next_is_not(
    broker: BrokerProcess, client: WireClient
) -> None:
    client.create_topic("limited", 1, {"max.message.bytes": "10000"})
    large, small = bytes(20_000), b"small"
    settings = {"message.max.bytes": 1_000_000, "linger.ms": 0}
    (refused,) = deliver(broker, "limited", [large], settings)
    assert refused is not None and refused.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert deliver(broker, "limited", [small]) == [None]
    assert [message.value() for message in read_topic(broker.bootstrap, "limited", 1)] == [small]


def test_records_survive_a_clean_restart_with_their_offsets(broker: BrokerProcess) -> None:
    """Goal: auto-creation, then a stop, a start, and the log goes on where it ended."""
    assert deliver(broker, "made-by-itself", [b"one", b"two"]) == [None, None]
    assert broker.stop() == 0
    broker.start()
    assert deliver(broker, "made-by-itself", [b"three"]) == [None]
    messages = read_topic(broker.bootstrap, "made-by-itself", 1)
    assert [message.value() for message in messages] == [b"one", b"two", b"three"]
    assert [message.offset() for message in messages] == [0, 1, 2]
