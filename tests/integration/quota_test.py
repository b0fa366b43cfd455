"""Goal: a client that is limited gets its quota, and another beside it does not notice.

Method: real clients (librdkafka) in processes of their own against a broker process. The bounds
are wide, because the span is short and the machine may be busy: `python -m bench.quotas` is the
measurement.
"""

import socket
import time
from pathlib import Path

from bench.quotas import Verdict, measure
from runnel.client import quotas
from runnel.client.cluster import Cluster, addresses_of
from runnel.client.raw import WireClient
from runnel.wire.messages.metadata import MetadataRequest
from tests.support.process import BrokerProcess, StartBroker

SECONDS = 4.0
WINDOW_BYTES = 1e6
REQUEST_BYTES_MAX = 1.1e6


def ensure_limited(verdict: Verdict) -> None:
    limit = verdict.limit_mb_s * 1e6
    assert verdict.limited.total_bytes <= limit * SECONDS + WINDOW_BYTES + REQUEST_BYTES_MAX
    assert verdict.share > 0.6, "it gets what it may"
    assert verdict.kept > 0.6, "the other does not notice"


def test_a_limited_client_gets_its_quota_and_the_other_its_rate(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        produced, consumed = measure(
            broker.bootstrap, seconds=SECONDS, limit_mb_s=1.0, other_mb_s=10.0
        )
    print(f"\n{produced}\n{consumed}")
    ensure_limited(produced)
    ensure_limited(consumed)
    assert produced.limited.throttled_ms_max > 0, "the client is told"


def test_quotas_outlive_the_broker(start_broker: StartBroker) -> None:
    broker = start_broker()
    with Cluster(addresses_of(broker.bootstrap)) as cluster:
        quotas.alter(cluster, {"user": "ünï/x", "client-id": None}, {"producer_byte_rate": 7.0})
    broker.kill()
    broker.start()
    with Cluster(addresses_of(broker.bootstrap)) as cluster:
        (found,) = quotas.describe(cluster, {})
    assert found.entity == {"user": "ünï/x", "client-id": None}
    assert found.values == {"producer_byte_rate": 7.0}


def test_connections_of_an_address_are_limited(start_broker: StartBroker) -> None:
    """One a second: the third is held unanswered, ended after a while, and later welcome."""
    broker = start_broker()
    address = ("127.0.0.1", broker.port)
    with WireClient(address) as first, Cluster(addresses_of(broker.bootstrap)) as cluster:
        quotas.alter(cluster, {"ip": "127.0.0.1"}, {"connection_creation_rate": 1.0})
        held = [socket.create_connection(address, timeout=10) for _ in range(3)]
        began_s = time.monotonic()
        assert held[2].recv(1) == b"", "ended by the broker"
        assert 0.3 < time.monotonic() - began_s < 5
        assert first.call(MetadataRequest(topics=[])).brokers, "who is connected is not touched"
        quotas.alter(cluster, {"ip": "127.0.0.1"}, {"connection_creation_rate": None})
        with WireClient(address) as again:
            assert again.call(MetadataRequest(topics=[])).brokers
        for sock in held:
            sock.close()


def test_a_stop_does_not_wait_for_who_is_throttled(start_broker: StartBroker) -> None:
    broker = start_broker()
    with (
        Cluster(addresses_of(broker.bootstrap)) as cluster,
        WireClient(("127.0.0.1", broker.port)) as throttled,
    ):
        quotas.alter(cluster, {"client-id": "raw"}, {"request_percentage": 1e-9})
        for _ in range(3):
            response = throttled.call(MetadataRequest(topics=[]))
            if response.throttle_time_ms:
                break
        assert response.throttle_time_ms == 1000
        began_s = time.monotonic()
        assert broker.stop() == 0
        assert time.monotonic() - began_s < 5
        assert throttled.is_closed()
