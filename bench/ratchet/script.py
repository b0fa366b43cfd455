"""The fixed produce and fetch script whose instructions are counted. Runs without callgrind too.

    python -m bench.ratchet.script     (in an empty folder: the data goes into it)

For every part: requests that warm up, a mark, the counted requests, a mark. Nothing here may
depend on the time or on the machine: paths are relative, records and clients always the same,
blocking work is done in place, and what the broker does by the clock is ended before the first
mark. Garbage is collected as in `runnel serve`. The instructions of the client, which are the
same whatever the broker does, are counted with those of the broker.
"""

import asyncio
import os
import random
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from bench.ratchet.caller import Caller
from bench.ratchet.guests import Guest, newest
from bench.ratchet.parts import (
    LONG_MS,
    PARTITION_COUNTS,
    PARTS,
    WARM_UP_COUNT,
    Part,
    Round,
    ensure_good,
)
from runnel.broker.server import Ports, build
from runnel.broker.system import SystemClock, run, tune_collector
from runnel.client.raw import Topic, decode_reply, encode_frame
from runnel.config.settings import load
from runnel.storage.files import MemoryDisk, OsDisk
from runnel.wire.apis import ApiKey
from runnel.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.simulated.store import FakeStore

S = TypeVar("S")
T = TypeVar("T")
DATA = "data"
CREATE_TOPICS_VERSION = 7
SETTINGS = {
    "log.dirs": DATA,
    "runnel.metadata.lease.ms": str(LONG_MS),
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


def mark() -> None:
    """Callgrind dumps its counts, and begins anew, before each call of `counting.MARK`."""
    os.ctermid()


class InlineWorkers:
    """Blocking work on the spot: a thread would run whenever the machine lets it."""

    async def run(self, work: Callable[[], T]) -> T:
        return work()

    def map(self, work: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
        return map(work, items)


class Clients:
    """One that asks, and one that waits at the broker meanwhile where a round wants that."""

    def __init__(self, asking: Caller, waiting: Caller) -> None:
        self._asking = asking
        self._waiting = waiting

    async def create(self, name: str, partition_count: int) -> Topic:
        wanted = CreatableTopic(name=name, num_partitions=partition_count, replication_factor=1)
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=LONG_MS)
        reply = await self._asking.call(encode_frame(request, CREATE_TOPICS_VERSION))
        _, response = decode_reply(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, bytes(reply))
        (created,) = response.topics
        assert created.error_code == 0, created
        return Topic(name, created.topic_id, partition_count)

    async def settle(self, guest: Guest) -> None:
        is_settled = False
        while not is_settled:
            frame = newest(guest.request())
            key, version = struct.unpack_from(">hh", frame, 4)
            _, reply = decode_reply(key, version, bytes(await self._asking.call(frame)))
            is_settled = not guest.on_reply(reply)

    async def find_coordinator(self) -> None:
        """The first who asks for one makes its topic."""
        await self._asking.call(newest(FindCoordinatorRequest(coordinator_keys=["group"])))

    async def play(self, one: Round) -> list[memoryview]:
        """The replies in the order of the round's requests, valid until the next round."""
        if one.parked is None:
            return [await self._asking.call(one.request)]
        woken = self._waiting.call(one.parked)
        while not self._waiting.is_taken:  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0)
        return [await self._asking.call(one.request), await woken]


async def _play_all() -> None:
    settings, _ = load(SETTINGS, {}, None)
    ports = Ports(
        clock=SystemClock(),
        disk=OsDisk(),
        memory_disk=MemoryDisk(),
        random=random.Random(1),
        workers=InlineWorkers(),
        store=FakeStore(random.Random(2)),
    )
    async with asyncio.TaskGroup() as tasks:
        broker = await build(settings, ports)
        await broker.start(tasks, settings.advertised_listeners)
        callers = Caller(broker), Caller(broker)
        clients = Clients(*callers)
        topics = {
            name: await clients.create(name, PARTITION_COUNTS[name]) for name in PARTITION_COUNTS
        }
        await clients.find_coordinator()
        await _end_recurring_work()
        tune_collector()
        for part in PARTS:
            await _count(clients, await _rounds(clients, part, topics[part.topic]))
        for caller in callers:
            caller.close()


async def _rounds(clients: Clients, part: Part, topic: Topic) -> Sequence[Round]:
    count = WARM_UP_COUNT + part.round_count
    if part.guest is None:
        return part.rounds(topic, count)
    guest = part.guest(topic)
    await clients.settle(guest)
    return part.rounds(guest, count)


async def _end_recurring_work() -> None:
    """Of the broker and of its store: whatever they do by themselves they do by the clock."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.wait(others)


async def _count(clients: Clients, rounds: Sequence[Round]) -> None:
    size_bytes = 0
    for one in rounds[:WARM_UP_COUNT]:
        replies = await clients.play(one)
        size_bytes = sum(map(len, replies))
        for frame, reply in zip(one, replies, strict=False):
            assert frame is not None
            ensure_good(frame, bytes(reply))
    counted = rounds[WARM_UP_COUNT:]
    mark()
    for one in counted:
        replies = await clients.play(one)
        assert sum(map(len, replies)) == size_bytes, "another reply than in the warm-up"
    mark()


if __name__ == "__main__":
    Path(DATA).mkdir()
    run(_play_all())
