"""Goal: records that the page cache has lost are served whole, by either event loop.

Method: many small segments, a restart, all files of the topic evicted; then a client that checks
each CRC reads from the beginning, while another goes on producing.
"""

import os
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from runnel.client.raw import WireClient
from tests.support.process import LOOPS, StartBroker
from tests.support.reading import read_topic

RECORDS = 6_000
RECORD_BYTES = 1_000
EVICT_TIMEOUT_S = 20.0


def evict(folder: Path) -> None:
    """Drop the pages of every file. The kernel keeps what it is just busy with, hence again."""
    deadline = time.monotonic() + EVICT_TIMEOUT_S
    for path in sorted(folder.iterdir()):
        fd = os.open(path, os.O_RDWR)
        try:
            while is_cached(fd):
                assert time.monotonic() < deadline, f"{path} stays in memory"
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def is_cached(fd: int) -> bool:
    """Whether its first page is."""
    try:
        return os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT) > 0
    except BlockingIOError:
        return False
    except OSError:
        pytest.skip("the file system of the test does not tell what is cached")


def values(count: int) -> list[bytes]:
    return [number.to_bytes(8, "big") * (RECORD_BYTES // 8) for number in range(count)]


def test_evicted_records_come_back_equal(start_broker: StartBroker, loop_name: str) -> None:
    broker = start_broker(environ=LOOPS[loop_name])
    with WireClient(broker.address) as client:
        client.create_topic("cold", 1, {"segment.bytes": str(1 << 20)})
        client.create_topic("live", 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "log_level": 0})
    for value in values(RECORDS):
        producer.produce("cold", value, partition=0)
    assert producer.flush(20) == 0
    broker.stop()
    broker.start()
    evict(broker.data_dir / "cold-0")
    for value in values(500):
        producer.produce("live", value, partition=0)
    found = read_topic(broker.bootstrap, "cold", 1)
    assert [message.value() for message in found] == values(RECORDS)
    assert producer.flush(20) == 0
    assert broker.stop() == 0
    assert "Traceback" not in broker.log
