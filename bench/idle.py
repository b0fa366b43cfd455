"""What a broker costs when nothing happens: many partitions, and consumers that wait for records.

Consumers do as real ones: a fetch session each, and a new fetch when half a second passed. A
broker syncs new partitions and removes deleted ones for a while; that is not part of idling.
"""

import selectors
import time

from runnel.bench.frames import fetch_frame
from runnel.bench.pipeline import LoadError
from runnel.bench.topics import passing_topic
from runnel.bench.usage import Cost, Usage
from runnel.client.raw import Address, Topic, WireClient, decode_reply, encode_frame
from runnel.wire.apis import ApiKey
from runnel.wire.messages.fetch import FetchRequest

PARTITIONS = 1000
CONSUMERS = 100
PARTITIONS_PER_CONSUMER = 10
MAX_WAIT_MS = 500
FETCH_MAX_BYTES = 50 * 1024 * 1024
PARTITION_MAX_BYTES = 1024 * 1024
QUIET_CPU_S = 0.015
SETTLE_PARTS = 3  # settling takes at most so many times the measured time


class _Consumer:
    """Waits at the broker for records of its partitions; the first fetch opens the session."""

    def __init__(self, address: Address, topic: Topic, number: int) -> None:
        self.client = WireClient(address)
        self._session_epoch = 0
        self._version = self.client.version_of(ApiKey.FETCH)
        first = number * PARTITIONS_PER_CONSUMER
        self.client.sock.sendall(
            fetch_frame(
                self.client,
                topic,
                dict.fromkeys(range(first, first + PARTITIONS_PER_CONSUMER), 0),
                partition_max_bytes=PARTITION_MAX_BYTES,
                max_wait_ms=MAX_WAIT_MS,
                starts_session=True,
            )
        )

    def on_reply(self) -> None:
        """Check that it was one, and fetch again."""
        _, reply = decode_reply(ApiKey.FETCH, self._version, self.client.receive_frame())
        if reply.error_code or not reply.session_id:
            raise LoadError(f"no fetch session: error {reply.error_code}")
        self._session_epoch += 1
        again = FetchRequest(
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_MAX_BYTES,
            session_id=reply.session_id,
            session_epoch=self._session_epoch,
            topics=[],
        )
        self.client.sock.sendall(encode_frame(again, self._version))


def idle(address: Address, pid: int, seconds: float) -> Cost:
    """What the broker used in so many seconds, after new partitions have settled."""
    with (
        WireClient(address) as client,
        passing_topic(client, "idle", PARTITIONS) as topic,
        selectors.DefaultSelector() as selector,
    ):
        _settle(pid, most_s=SETTLE_PARTS * seconds)
        consumers = [_Consumer(address, topic, number) for number in range(CONSUMERS)]
        for consumer in consumers:
            selector.register(consumer.client.sock, selectors.EVENT_READ, consumer)
        _wait(selector, 2 * MAX_WAIT_MS / 1e3)  # every session is open
        usage = Usage(pid)
        _wait(selector, seconds)
        cost = usage.cost()
        for consumer in consumers:
            consumer.client.close()
    assert cost is not None
    return cost


def _settle(pid: int, most_s: float) -> None:
    """Until a second went by in which the broker did next to nothing."""
    end = time.perf_counter() + most_s
    while time.perf_counter() < end:
        usage = Usage(pid)
        time.sleep(min(1.0, most_s))
        cost = usage.cost()
        if cost is not None and cost.cpu_s < QUIET_CPU_S:
            return


def _wait(selector: selectors.BaseSelector, seconds: float) -> None:
    end = time.perf_counter() + seconds
    while (left := end - time.perf_counter()) > 0:
        for key, _ in selector.select(left):
            consumer = key.data
            assert isinstance(consumer, _Consumer)
            consumer.on_reply()
