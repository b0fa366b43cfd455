"""Groups under way: what many members cost that only stay, and what it takes to share out anew."""

import time
from typing import NamedTuple

from bench.coordination import TIMEOUT_S, await_coordinator, delete_groups
from bench.crowd import Connect, Crowd, is_settled
from runnel.bench.pipeline import LoadError
from runnel.bench.topics import passing_topic, unique_name
from runnel.bench.usage import Cost, Usage
from runnel.client.coordinators import KeyType
from runnel.client.raw import Address, WireClient

MEMBERS_PER_GROUP = 10
COMMIT_S = 5.0  # auto.commit.interval.ms
REBALANCED, PARTITIONS = 100, 300
FOUNDING_BEAT_S = 1.0  # until all have their share
REST_S = 1.2  # longer than group.consumer.assignment.interval.ms
BEAT_S = 0.2  # in a rebalance: members shall not be what takes the time


class Rebalance(NamedTuple):
    """Of founding a group by all members at once, and of one more that joins it."""

    founding_s: float
    seconds: float
    cost: Cost | None


def staying(
    address: Address, kind: Connect, *, groups: int, beat_s: float, seconds: float, pid: int
) -> Cost:
    """What the broker used for so long: heartbeats, and commits as consumers make them.

    What waiting fetches cost is another line: see `idle.py`.
    """
    prefix = unique_name("members")
    names = [f"{prefix}-{number}" for number in range(groups)]
    with (
        WireClient(address) as client,
        passing_topic(client, "members", MEMBERS_PER_GROUP) as topic,
        Crowd(address, topic, FOUNDING_BEAT_S, COMMIT_S) as crowd,
    ):
        await_coordinator(client, KeyType.GROUP, names[0])
        for _ in range(MEMBERS_PER_GROUP):
            for name in names:
                crowd.join(kind(name, topic))
        crowd.spread()
        deadline = time.monotonic() + TIMEOUT_S
        while not all(member.owned for member in crowd.members):
            if time.monotonic() > deadline:
                missing = sum(not member.owned for member in crowd.members)
                raise LoadError(f"{missing} members have no partition")
            crowd.run(0.5)
        crowd.spread(beat_s)
        crowd.run(FOUNDING_BEAT_S)
        usage = Usage(pid)
        crowd.run(seconds)
        cost = usage.cost()
        crowd.leave()
        delete_groups(client, names)
    assert cost is not None
    return cost


def rebalance(address: Address, kind: Connect, *, pid: int | None) -> Rebalance:
    """A hundred members share partitions out; the last one joins when the others have settled."""
    name = unique_name("rebalance")
    with (
        WireClient(address) as client,
        passing_topic(client, "rebalance", PARTITIONS) as topic,
        Crowd(address, topic, BEAT_S) as crowd,
    ):
        await_coordinator(client, KeyType.GROUP, name)
        started = time.perf_counter()
        for _ in range(REBALANCED - 1):
            crowd.join(kind(name, topic))
        _settle(crowd, PARTITIONS)
        founding_s = time.perf_counter() - started
        crowd.spread()
        crowd.run(REST_S)
        usage, started = Usage(pid), time.perf_counter()
        crowd.join(kind(name, topic))
        _settle(crowd, PARTITIONS, spread=False)
        seconds = time.perf_counter() - started
        cost = usage.cost()
        crowd.leave()
        delete_groups(client, [name])
    return Rebalance(founding_s, seconds, cost)


def _settle(crowd: Crowd, partition_count: int, *, spread: bool = True) -> None:
    if spread:
        crowd.spread()
    if not crowd.run(TIMEOUT_S, lambda: is_settled(crowd.members, partition_count)):
        epochs = sorted({member.epoch for member in crowd.members})
        raise LoadError(f"members do not settle: epochs {epochs}")
