"""What metrics cost: the time of a scrape, and what a request takes longer by being counted."""

import http.client
import statistics
import time

from bench.model import Broker
from runnel.bench.pipeline import LoadError
from runnel.exporter.layout import REQUEST_TIMES
from runnel.metrics import PRODUCED_BATCHES, PRODUCED_BYTES, PRODUCED_RECORDS, Metrics
from tests.support.process import BrokerProcess

SCRAPES = 5
TOLD_TIMEOUT_S = 120.0
COUNTED_REQUESTS = 200_000
COUNTING_ROUNDS = 5


def seconds(broker: Broker, partition_count: int) -> float | None:
    """The median of some scrapes, once the exporter tells of all partitions."""
    if not isinstance(broker, BrokerProcess) or not broker.http:
        return None
    deadline = time.monotonic() + TOLD_TIMEOUT_S
    line = f"\nrunnel_partitions {partition_count}\n".encode()
    while line not in _scrape(broker.http):
        if time.monotonic() > deadline:
            raise LoadError(f"the exporter does not tell of {partition_count} partitions")
        time.sleep(0.5)
    took_s: list[float] = []
    for _ in range(SCRAPES):
        began = time.perf_counter()
        _scrape(broker.http)
        took_s.append(time.perf_counter() - began)
    return statistics.median(took_s)


def _scrape(address: str) -> bytes:
    connection = http.client.HTTPConnection(address, timeout=TOLD_TIMEOUT_S)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read()
    finally:
        connection.close()


def microseconds_of_counting() -> float:
    """The best of some rounds, less what the loop takes that does it."""
    metrics, requests = Metrics(), range(COUNTED_REQUESTS)
    slots, now_ns = metrics.slots, time.monotonic_ns
    took_ns: list[int] = []
    empty_ns: list[int] = []
    for _ in range(COUNTING_ROUNDS):
        began_ns = now_ns()
        for _ in requests:
            pass
        empty_ns.append(now_ns() - began_ns)
        began_ns = now_ns()
        for _ in requests:  # as dispatch and produce do it
            arrived_ns = now_ns()
            slots[PRODUCED_BATCHES] += 1
            slots[PRODUCED_RECORDS] += 1
            slots[PRODUCED_BYTES] += 100
            metrics.observe_us(REQUEST_TIMES, (now_ns() - arrived_ns) // 1000)
        took_ns.append(now_ns() - began_ns)
    return (min(took_ns) - min(empty_ns)) / COUNTED_REQUESTS / 1e3
