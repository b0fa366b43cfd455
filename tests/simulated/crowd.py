"""The clients of coordinators in a run: groups of both protocols, transactions, a copy of a topic.

Started together, stopped together, and read for the last time together.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Final, Protocol

from runnel.types import TopicPartition
from tests.simulated.bankers import Banker
from tests.simulated.calls import CodeError, Connect, committed_offsets
from tests.simulated.classic_member import ClassicMember
from tests.simulated.committed import CommittedReader
from tests.simulated.consumer_member import ConsumerMember
from tests.simulated.copier import Copier, original
from tests.simulated.member import Member, Pace
from tests.simulated.rpc import LostError, Rpc
from tests.simulated.table import Row, TableWriter, Write, read_table
from tests.simulated.transactional import TIMEOUT_MS
from tests.simulated.world import COPY, LEDGER, SOURCE, TABLE, World
from tests.support.coordinated import Commit, Coordinated, Grant, Transaction
from tests.support.history import Outcome, Record, Send

GROUP_TOPICS: Final = {"ack": 2, "os": 1}
CLASSIC, CONSUMER, MIXED, COPIERS = "classic", "consumer", "mixed", "copiers"
PACE: Final = Pace(heartbeat_s=0.4, session_ms=2000, rebalance_ms=2500, life_s=10.0)
COPIED_WITHIN_MS: Final = 3000
QUIET_S: Final = TIMEOUT_MS / 1000 + 4.0  # until the last open transaction is timed out


class Client(Protocol):
    name: str
    stopping: bool
    counts: Counter[str]

    async def run(self) -> None: ...


class Crowd:
    """Owned by one run."""

    def __init__(self, world: World, topic_ids: Mapping[str, bytes]) -> None:
        self._world = world
        self._topic_ids = topic_ids
        self._chance = world.chance_for("crowd")
        self.coordinated = Coordinated(world.history)
        self._connect: Connect = lambda name: Rpc(world.network, name)
        (table,) = TABLE.partitions
        self._writer = TableWriter(
            self._connect, "table writer", table, world.chance_for("table writer")
        )
        self._clients: list[Client] = [
            *self._members(),
            *self._bankers(),
            *self._copiers(),
            *self._readers(),
            self._writer,
        ]

    def start(self) -> "list[asyncio.Task[None]]":
        return [asyncio.create_task(client.run()) for client in self._clients]

    def stop(self) -> None:
        for client in self._clients:
            client.stopping = True

    def _members(self) -> list[Member]:
        made: list[Member] = []
        crowds: tuple[tuple[str, type[Member], int], ...] = (
            (CLASSIC, ClassicMember, self._chance.randint(1, 3)),
            (CONSUMER, ConsumerMember, self._chance.randint(1, 3)),
            (MIXED, ClassicMember, 1),
            (MIXED, ConsumerMember, 1),
        )
        for group, protocol, count in crowds:
            for number in range(count):
                name = f"{group} {protocol.__name__} {number}"
                is_static = self._chance.random() < 0.3
                made.append(
                    protocol(
                        self._connect,
                        self.coordinated,
                        name,
                        group,
                        GROUP_TOPICS,
                        self._topic_ids,
                        self._world.chance_for(name),
                        PACE,
                        instance_id=f"static {name}" if is_static else None,
                    )
                )
        return made

    def _bankers(self) -> list[Banker]:
        return [
            Banker(
                self._connect,
                self.coordinated,
                f"b{number}",
                transactional_id,
                LEDGER.partitions,
                self._world.chance_for(f"banker {number}"),
                is_modern=self._chance.random() < 0.6,
            )
            for number, transactional_id in enumerate(("alone", "shared", "shared"))
        ]

    def _copiers(self) -> list[Copier]:
        pairs = list(zip(SOURCE.partitions, COPY.partitions, strict=True))
        return [
            Copier(
                self._connect,
                self.coordinated,
                f"copier {number}",
                COPIERS,
                source,
                target,
                self._world.chance_for(f"copier {number}"),
                is_modern=self._chance.random() < 0.6,
            )
            for number, (source, target) in enumerate([*pairs, pairs[0]])
        ]

    def _readers(self) -> list[CommittedReader]:
        every = [*LEDGER.partitions, *COPY.partitions]
        return [
            CommittedReader(
                self._connect,
                self.coordinated,
                "committed reader",
                every,
                self._world.chance_for("committed reader"),
            )
        ]

    # The end

    def check_progress(self, healed: int) -> None:
        """After the faults ended every group was given its partitions, and something committed."""
        for client in self._clients:
            for name, count in client.counts.items():
                if not name.startswith("refused") and not name.startswith("leaves"):
                    self._world.counts[name] += count
        events = self.coordinated.events
        for group in (CLASSIC, CONSUMER, MIXED):
            if not any(
                (isinstance(event, Grant) or (isinstance(event, Commit) and _is_ok(event)))
                and event.group == group
                and event.ended > healed
                for event in events
            ):
                self._world.failures.append(f"no-progress: group {group} after the faults ended")
        for kind, whose in (("bankers", "b"), ("copiers", "copier")):
            if kind == "copiers" and not self._has_something_to_copy(healed):
                continue
            if not any(
                isinstance(event, Transaction)
                and event.client.startswith(whose)
                and event.outcome is Outcome.OK
                and event.ended > healed
                for event in events
            ):
                self._world.failures.append(f"no-progress: {kind} after the faults ended")

    def _has_something_to_copy(self, healed: int) -> bool:
        """Whether anybody wrote to the source since, and not only at the very end."""
        sends = [event for event in self._world.history.events if isinstance(event, Send)]
        last_ms = max(send.ended_ms for send in sends)
        return any(
            send.partition in SOURCE.partitions
            and send.outcome is Outcome.OK
            and send.ended > healed
            and send.ended_ms < last_ms - COPIED_WITHIN_MS
            for send in sends
        )

    async def read_all(self, name: str) -> dict[TopicPartition, list[Record]]:
        """Of the transactional topics, as a read_committed consumer sees them."""
        every = [*LEDGER.partitions, *COPY.partitions]
        reader = CommittedReader(
            self._connect, self.coordinated, name, every, self._world.chance_for(name)
        )
        return {partition: await reader.read_all(partition) for partition in every}

    async def offsets(self) -> dict[str, Mapping[TopicPartition, int]]:
        """What is committed, of every group."""
        caller = self._connect("offsets")
        found: dict[str, Mapping[TopicPartition, int]] = {}
        wanted = [TopicPartition(t, i) for t, count in GROUP_TOPICS.items() for i in range(count)]
        for group in (CLASSIC, CONSUMER, MIXED, COPIERS):
            partitions = SOURCE.partitions if group == COPIERS else wanted
            began = self.coordinated.tick()
            for _ in range(50):
                try:
                    found[group] = await committed_offsets(caller, group, partitions)
                    break
                except (CodeError, LostError):
                    await asyncio.sleep(0.2)
            else:
                raise AssertionError(f"nobody tells the offsets of {group}")
            self.coordinated.fetched(group, found[group], began=began)
        caller.close()
        return found

    async def table(self) -> tuple[TopicPartition, list[Write], list[Row]]:
        """What was written to the compacted topic, and what it holds now."""
        partition = self._writer.partition
        rows = await read_table(self._connect("table reader"), partition)
        return partition, self._writer.writes, rows

    def copies(
        self, found: Mapping[TopicPartition, list[Record]]
    ) -> dict[TopicPartition, list[str]]:
        """What was copied, without the mark of who did it; by the source."""
        return {
            source: [original(value) for _, value in found[target]]
            for source, target in zip(SOURCE.partitions, COPY.partitions, strict=True)
        }


def _is_ok(commit: Commit) -> bool:
    return commit.outcome is Outcome.OK
