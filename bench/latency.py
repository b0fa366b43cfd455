"""Latency of single requests at rest: a produce and its reply, a producer to a consumer."""

import socket
import struct
import time
from typing import NamedTuple

from bench.frames import drop_topic, fetch_frame, make_batch, make_topic, produce_frame
from bench.load import SMALL_RECORD_BYTES, unique_name
from bench.pipeline import LoadError
from tests.support.wire_client import WireClient

WARM_UP = 200
PARK_S = 0.0003  # the consumer's fetch is waiting at the broker before the record is sent
FETCH_WAIT_MS = 5000
_SIZE = struct.Struct(">i")


class Latency(NamedTuple):
    """Microseconds."""

    p50: float
    p99: float
    p999: float


def sync_produce(address: tuple[str, int], *, samples: int) -> Latency:
    """One 100-byte record, one request in flight, acks=1."""
    batch = make_batch(SMALL_RECORD_BYTES, 1)
    with WireClient(address) as client:
        topic = make_topic(client, unique_name("sync"), 1)
        frame = produce_frame(client, topic, 0, batch, 1)
        times = []
        for _ in range(WARM_UP + samples):
            started = time.perf_counter()
            client.sock.sendall(frame)
            _receive(client.sock)
            times.append(time.perf_counter() - started)
        drop_topic(client, topic)
    return _percentiles(times[WARM_UP:])


def end_to_end(address: tuple[str, int], *, samples: int) -> Latency:
    """From the send of a record until a waiting consumer has it."""
    batch = make_batch(SMALL_RECORD_BYTES, 1)
    with WireClient(address) as producer, WireClient(address) as consumer:
        topic = make_topic(producer, unique_name("end-to-end"), 1)
        produced = produce_frame(producer, topic, 0, batch, 1)
        fetches = [
            fetch_frame(
                consumer,
                topic,
                {0: offset},
                partition_max_bytes=64 * 1024,
                max_wait_ms=FETCH_WAIT_MS,
            )
            for offset in range(WARM_UP + samples)
        ]
        times = []
        for fetch in fetches:
            consumer.sock.sendall(fetch)
            time.sleep(PARK_S)
            started = time.perf_counter()
            producer.sock.sendall(produced)
            if _receive(consumer.sock) < len(batch.data):
                raise LoadError("a fetch came back without the record")
            times.append(time.perf_counter() - started)
            _receive(producer.sock)
        drop_topic(producer, topic)
    return _percentiles(times[WARM_UP:])


def _receive(sock: socket.socket) -> int:
    """Read one reply of a few hundred bytes; returns its size."""
    received = sock.recv(65536)
    while received and (len(received) < 4 or len(received) < 4 + _SIZE.unpack_from(received)[0]):
        more = sock.recv(65536)
        if not more:
            break
        received += more
    if not received:
        raise LoadError("the broker closed the connection")
    return len(received)


def _percentiles(times: list[float]) -> Latency:
    ordered = sorted(times)
    return Latency(*(ordered[int(share * len(ordered))] * 1e6 for share in (0.5, 0.99, 0.999)))
