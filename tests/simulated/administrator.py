"""Adds partitions to a topic and moves logs between the data folders, while all else goes on.

What it was told is done must stay so: a topic never has fewer partitions than were acknowledged,
and no folder but one holds a log.
"""

import asyncio
from collections import Counter
from random import Random
from typing import Final

from runnel.errors import ErrorCode
from runnel.types import TopicPartition
from runnel.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from runnel.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from runnel.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from runnel.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.simulated.rpc import LostError, Rpc
from tests.simulated.world import DATA_DIRS, TOPICS, Topic, World

CRASH_STEPS_MAX: Final = 20
ALREADY: Final = ErrorCode.INVALID_PARTITIONS


class Administrator:
    """Runs as a task; it does not end before the growing topics have all their partitions."""

    def __init__(self, world: World, chance: Random) -> None:
        self.stopping = False
        self.may_crash = True
        self._world = world
        self._chance = chance
        self._rpc = Rpc(world.network, "administrator")
        self._growing = [topic for topic in TOPICS if topic.created_with]
        self._known = {topic.name: topic.created_with for topic in self._growing}
        self._wanted: dict[TopicPartition, str] = {}

    async def run(self) -> None:
        while not self.stopping or self._growing:
            await asyncio.sleep(self._chance.expovariate(1 / 2.0))
            try:
                if self._growing:
                    await self._grow(self._growing[0])
                for _ in range(self._chance.randint(1, 4)):
                    await self._move_one()
                if self.may_crash and self._chance.random() < 0.2:
                    await self._crash_while_moving()
                    continue
                await self._look()
                await asyncio.sleep(self._chance.uniform(0.0, 1.0))
                await self._look()
            except LostError:
                continue
        self._rpc.close()

    async def _grow(self, topic: Topic) -> None:
        known = self._known[topic.name]
        count = min(known + self._chance.randint(1, 2), topic.partition_count)
        asked = CreatePartitionsTopic(name=topic.name, count=count, assignments=None)
        version = self._chance.randint(0, 3)
        response = await self._rpc.call(
            CreatePartitionsRequest(topics=[asked], timeout_ms=5000), version, timeout_s=30.0
        )
        code = ErrorCode(response.results[0].error_code)
        if code == ErrorCode.NONE:
            self._world.counts["partitions added"] += count - known
            self._known[topic.name] = count
        metadata = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic.name)], allow_auto_topic_creation=False
        )
        found = len((await self._rpc.call(metadata, 12)).topics[0].partitions)
        if found < self._known[topic.name] or (code == ALREADY and found < count):
            self._world.failures.append(
                f"lost-partitions: {topic.name} has {found} of {self._known[topic.name]}"
            )
        self._known[topic.name] = found
        if found == topic.partition_count:
            self._growing.remove(topic)

    async def _move_one(self) -> None:
        topic = self._chance.choice([topic for topic in TOPICS if not topic.is_in_memory])
        partition = self._chance.choice(topic.partitions)
        path = self._chance.choice(DATA_DIRS)
        named = AlterReplicaLogDirTopic(name=partition.topic, partitions=[partition.index])
        response = await self._rpc.call(
            AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[named])]),
            self._chance.randint(1, 2),
        )
        if response.results[0].partitions[0].error_code == ErrorCode.NONE:
            self._world.counts["moves asked for"] += 1
            self._wanted[partition] = path

    async def _crash_while_moving(self) -> None:
        """Moves are short: hardly any other fault would fall into one."""
        world = self._world
        for _ in range(CRASH_STEPS_MAX):
            await asyncio.sleep(self._chance.uniform(0.0, 0.003))
            if not self.may_crash or world.life is None or world.life.broker is None:
                return
            if world.life.broker._logs.futures and self._chance.random() < 0.5:
                world.counts["crashes while a log moves"] += 1
                world.clock.jumped_ms = 0  # a machine asks for the time when it starts
                world.crash(power=self._chance.random() < 0.5)
                return

    async def _look(self) -> None:
        response = await self._rpc.call(
            DescribeLogDirsRequest(topics=None), self._chance.randint(1, 5)
        )
        homes: Counter[TopicPartition] = Counter()
        for folder in response.results:
            for topic in folder.topics:
                for each in topic.partitions:
                    partition = TopicPartition(topic.name, each.partition_index)
                    if each.is_future_key:
                        self._world.counts["moves seen under way"] += 1
                        continue
                    homes[partition] += 1
                    if self._wanted.get(partition) == folder.log_dir:
                        self._world.counts["moves finished"] += 1
                        del self._wanted[partition]
        twice = [str(partition) for partition, count in homes.items() if count > 1]
        if twice:
            self._world.failures.append(f"two-homes: {twice}")
