"""`runnel serve` as a process: start, stop, refusals, and what a user sees in the first minutes."""

import json
import resource
import signal
import time
from pathlib import Path

import pytest

from runnel.bench.frames import fetch_frame
from runnel.client.raw import ClosedError, WireClient, decode_reply
from runnel.wire.messages.metadata import MetadataRequest
from tests.support.hostile_frames import make_batch, produce
from tests.support.process import LOOPS, StartBroker, serve_until_it_fails

CLEAN_MARKER = ".kafka_cleanshutdown"
KAFKA_STORAGE_ERROR = 56


def test_ready_file_names_the_port_and_the_process(
    start_broker: StartBroker, loop_name: str
) -> None:
    broker = start_broker(environ=LOOPS[loop_name])
    assert json.loads(broker.ready_file.read_text()) == {
        "kafka": [broker.bootstrap],
        "http": None,
        "pid": broker.pid,
    }
    assert broker.port > 0
    with WireClient(broker.address) as client:
        (listed,) = client.call(MetadataRequest(topics=[])).brokers
        assert (listed.host, listed.port) == broker.address
    ready = [line for line in broker.log.splitlines() if "ready" in line]
    assert len(ready) == 1 and broker.bootstrap in ready[0] and " ms" in ready[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_in_order(
    start_broker: StartBroker, loop_name: str, number: signal.Signals
) -> None:
    """Goal: exit status 0, the clean marker, no ready file, no complaint in the log."""
    broker = start_broker(environ=LOOPS[loop_name])
    with WireClient(broker.address) as client:
        client.create_topic("kept", 2)
        append(client, "kept")
        assert not (broker.data_dir / CLEAN_MARKER).exists()
        broker.send_signal(number)
        assert broker.wait(timeout_s=10) == 0
        assert client.is_closed()
    assert (broker.data_dir / CLEAN_MARKER).exists()
    assert not broker.ready_file.exists()
    for word in ("Traceback", "ERROR", "never awaited", "was destroyed"):
        assert word not in broker.log, broker.log
    broker.start()
    assert not (broker.data_dir / CLEAN_MARKER).exists()
    with WireClient(broker.address) as client:
        assert append(client, "kept") == 3
    broker.stop()


def append(client: WireClient, topic: str) -> int:
    """Produce three records; returns the offset of the first."""
    client.sock.sendall(produce(topic, make_batch()))
    _, response = decode_reply(0, 12, client.receive_frame())
    (row,) = response.responses[0].partition_responses
    assert row.error_code == 0, row
    offset: int = row.base_offset
    return offset


def test_requests_before_a_stop_are_answered_or_refused_never_lost(
    start_broker: StartBroker,
) -> None:
    """Goal: what a producer was told before the broker went is what the folder holds after."""
    broker = start_broker()
    answered = 0
    with WireClient(broker.address) as client:
        client.create_topic("kept", 1)
        client.sock.sendall(produce("kept", make_batch(), acks=-1) * 500)
        broker.send_signal(signal.SIGTERM)
        try:
            while True:
                _, response = decode_reply(0, 12, client.receive_frame())
                (row,) = response.responses[0].partition_responses
                assert row.error_code or row.base_offset == 3 * answered
                answered += not row.error_code
        except ClosedError:
            pass
    assert broker.wait() == 0
    broker.start()
    with WireClient(broker.address) as client:
        assert append(client, "kept") >= 3 * answered


def test_a_stop_does_not_wait_for_a_parked_fetch(start_broker: StartBroker) -> None:
    broker = start_broker()
    with WireClient(broker.address) as client:
        topic = client.create_topic("quiet", 1)
        frame = fetch_frame(client, topic, {0: 0}, partition_max_bytes=1000, max_wait_ms=60_000)
        client.sock.sendall(frame)
        time.sleep(0.2)
        started = time.monotonic()
        assert broker.stop() == 0
        assert time.monotonic() - started < 5


def test_a_second_broker_on_the_folder_is_refused(start_broker: StartBroker) -> None:
    """Goal: the message has the pid of the first, which goes on undisturbed."""
    broker = start_broker()
    with WireClient(broker.address) as client:
        client.create_topic("kept", 1)
        status, message = serve_until_it_fails(broker.data_dir)
        assert status == 2
        assert str(broker.pid) in message, message
        assert str(broker.data_dir) in message, message
        assert append(client, "kept") == 0


def test_the_lock_of_a_killed_broker_is_no_obstacle(start_broker: StartBroker) -> None:
    broker = start_broker()
    broker.kill()
    broker.start()
    with WireClient(broker.address) as client:
        assert client.call(MetadataRequest(topics=[])).brokers


def test_a_full_disk_loses_nothing_that_was_acknowledged(start_broker: StartBroker) -> None:
    """Goal: a clear error and an offline log; the broker lives; all acknowledged is there later.

    Method: a limit on file size set from outside, which fails a write just as a full disk does,
    in the middle of a batch.
    """
    broker = start_broker(settings={"runnel.durability": "os"})
    records = make_batch(20_000)
    acknowledged = 0
    with WireClient(broker.address) as client, WireClient(broker.address) as other:
        client.create_topic("full", 1)
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))
        for _ in range(50):
            client.sock.sendall(produce("full", records))
            _, response = decode_reply(0, 12, client.receive_frame())
            (row,) = response.responses[0].partition_responses
            if row.error_code:
                break
            acknowledged += 20_000
        assert row.error_code == KAFKA_STORAGE_ERROR, row
        assert 0 < acknowledged < 1_000_000
        assert other.call(MetadataRequest(topics=[])).brokers
        assert "full" in broker.log
    broker.kill()
    broker.start()
    with WireClient(broker.address) as client:
        assert append(client, "full") == acknowledged


def test_a_broker_in_memory_from_a_familiar_file(start_broker: StartBroker, tmp_path: Path) -> None:
    """Goal: new topics live in memory, also where a client made them; old ones stay on the disk."""
    broker = start_broker()
    with WireClient(broker.address) as client:
        client.create_topic("old", 1)
        append(client, "old")
    broker.stop()
    file = tmp_path / "broker.yaml"
    file.write_text("broker: {id: 0, default_partitions: 2}\nstorage: {type: in_memory}\n")
    broker = start_broker(arguments=["-c", str(file)])
    with WireClient(broker.address) as client:
        client.create_topic("new", 1)
        assert [append(client, "new"), append(client, "new"), append(client, "old")] == [0, 3, 3]
    assert (broker.data_dir / "old-0").exists() and not (broker.data_dir / "new-0").exists()
    broker.stop()
    broker.start()
    with WireClient(broker.address) as client:
        assert [append(client, "new"), append(client, "old")] == [0, 6]


def test_an_address_that_clients_are_told_is_in_the_log_if_it_is_another(
    start_broker: StartBroker,
) -> None:
    """The first thing to look at where a client finds the broker and then cannot connect."""
    told = {"advertised.listeners": "PLAINTEXT://shop.example:9092"}
    assert "told to connect to shop.example:9092" in start_broker(settings=told).log
    assert "told to connect" not in start_broker("other").log
