"""Transactional producers that write to several partitions at once, and may share their id.

Two with one transactional id fence each other in turn, as a zombie does and its successor.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random

from runnel.types import TopicPartition
from tests.simulated.calls import Connect
from tests.simulated.consumer import RefusedError
from tests.simulated.rpc import LostError
from tests.simulated.transactional import Transactional
from tests.support.coordinated import Coordinated


class Banker:
    """Runs as a task until `stopping`."""

    def __init__(
        self,
        connect: Connect,
        coordinated: Coordinated,
        name: str,
        transactional_id: str,
        partitions: Sequence[TopicPartition],
        chance: Random,
        *,
        is_modern: bool,
    ) -> None:
        self.name = name
        self.stopping = False
        self.counts: Counter[str] = Counter()
        self._caller = connect(name)
        self._partitions = partitions
        self._chance = chance
        self._count = 0
        self._producer = Transactional(
            self._caller, coordinated, name, transactional_id, chance, is_modern=is_modern
        )

    async def run(self) -> None:
        producer, chance = self._producer, self._chance
        while not self.stopping:
            await asyncio.sleep(chance.expovariate(1 / 0.5))
            try:
                if not producer.is_ready:
                    await producer.init()
                await self._transact()
            except (LostError, RefusedError) as error:
                producer.give_up(str(error))
                if producer.is_fenced:
                    self.counts["producers fenced"] += 1
                    await asyncio.sleep(chance.expovariate(1 / 3.0))
        self.counts["transactional requests repeated"] += producer.repeated
        self._caller.close()

    async def _transact(self) -> None:
        producer, chance = self._producer, self._chance
        producer.begin()
        for _ in range(chance.randint(1, 4)):
            await producer.send(chance.choice(self._partitions), self._values())
            if chance.random() < 0.2:
                await asyncio.sleep(chance.expovariate(1 / 0.5))
        if chance.random() < 0.05:  # dies, and somebody else must clear away
            self.counts["transactions left open"] += 1
            raise LostError("died in the middle")
        await producer.end(commit=chance.random() < 0.75)

    def _values(self) -> tuple[str, ...]:
        count = self._chance.randint(1, 3)
        self._count += count
        return tuple(f"{self.name}.{n}" for n in range(self._count - count, self._count))
