"""Latency of single requests: a produce and its reply, a producer to a consumer."""

import socket
import struct
import time
from typing import NamedTuple

from runnel.bench.frames import fetch_frame, produce_frame, produce_reply_shape
from runnel.bench.load import SMALL_RECORD_BYTES, Load
from runnel.bench.pipeline import LoadError
from runnel.bench.topics import passing_topic
from runnel.client.raw import Address, WireClient

WARM_UP = 200
PARK_S = 0.0003  # the consumer's fetch is waiting at the broker before the record is sent
FETCH_WAIT_MS = 5000
ONE_RECORD = Load(SMALL_RECORD_BYTES, 1)
_SIZE = struct.Struct(">i")


class Latency(NamedTuple):
    """Microseconds."""

    p50: float
    p99: float
    p999: float


def sync_produce(
    address: Address, *, samples: int, load: Load = ONE_RECORD, interval_s: float = 0.0
) -> Latency:
    """One request in flight. With an interval, requests begin that far apart at least."""
    batch = load.batch()
    with (
        WireClient(address) as client,
        passing_topic(client, "sync", 1, dict(load.configs)) as topic,
    ):
        frame = produce_frame(client, topic, [0], batch, load.acks)
        shape = produce_reply_shape(client, topic)
        times = []
        due = time.perf_counter()
        for _ in range(WARM_UP + samples):
            if interval_s:
                due = max(due + interval_s, time.perf_counter())
                time.sleep(max(0.0, due - time.perf_counter()))
            started = time.perf_counter()
            client.sock.sendall(frame)
            reply = _receive(client.sock)
            times.append(time.perf_counter() - started)
            if len(reply) != shape.size or any(reply[at] for at in shape.zeros):
                raise LoadError(f"a produce request failed: {reply!r}")
    return percentiles(times[WARM_UP:])


def end_to_end(address: Address, *, samples: int) -> Latency:
    """From the send of a record until a waiting consumer has it."""
    batch = ONE_RECORD.batch()
    with (
        WireClient(address) as producer,
        WireClient(address) as consumer,
        passing_topic(producer, "end-to-end", 1) as topic,
    ):
        produced = produce_frame(producer, topic, [0], batch, 1)
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
            if len(_receive(consumer.sock)) < len(batch.data):
                raise LoadError("a fetch came back without the record")
            times.append(time.perf_counter() - started)
            _receive(producer.sock)
    return percentiles(times[WARM_UP:])


def percentiles(times: list[float]) -> Latency:
    """Of seconds."""
    ordered = sorted(times)
    return Latency(*(ordered[int(share * len(ordered))] * 1e6 for share in (0.5, 0.99, 0.999)))


def _receive(sock: socket.socket) -> bytes:
    """One reply of a few hundred bytes, with the size that it states."""
    received = sock.recv(65536)
    while received and (len(received) < 4 or len(received) < 4 + _SIZE.unpack_from(received)[0]):
        more = sock.recv(65536)
        if not more:
            break
        received += more
    if not received:
        raise LoadError("the broker closed the connection")
    return received
