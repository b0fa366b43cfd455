"""Consume, transform, produce: each record of a source partition once into its copy, or nothing.

The transactional id belongs to the source partition, so whoever starts anew with it fences the one
before; only then it asks how far that one came. Two of them at a time are a zombie and its heir.
"""

import asyncio
from collections import Counter
from random import Random
from typing import Final

from runnel.types import TopicPartition
from tests.simulated import payload
from tests.simulated.calls import GROUP, Connect, committed_offsets, find_coordinator
from tests.simulated.committed import fetch_committed
from tests.simulated.consumer import RefusedError
from tests.simulated.rpc import LostError
from tests.simulated.transactional import Transactional
from tests.support.coordinated import Coordinated

BATCH_MAX: Final = 12
MARK: Final = " by "


def original(copied: str) -> str:
    return copied.partition(MARK)[0]


class Copier:
    """Runs as a task until `stopping`."""

    def __init__(
        self,
        connect: Connect,
        coordinated: Coordinated,
        name: str,
        group: str,
        source: TopicPartition,
        target: TopicPartition,
        chance: Random,
        *,
        is_modern: bool,
    ) -> None:
        self.name = name
        self.stopping = False
        self.counts: Counter[str] = Counter()
        self._caller = connect(name)
        self._coordinated = coordinated
        self._group = group
        self._source = source
        self._target = target
        self._chance = chance
        self._position = -1
        self._count = 0
        transactional_id = f"copy of {source}"
        self._producer = Transactional(
            self._caller, coordinated, name, transactional_id, chance, is_modern=is_modern
        )

    async def run(self) -> None:
        producer, chance = self._producer, self._chance
        while not self.stopping:
            await asyncio.sleep(chance.expovariate(1 / 0.3))
            try:
                if not producer.is_ready:
                    await producer.init()
                    await self._go_on_where_it_stands()
                await self._copy_some()
            except (LostError, RefusedError) as error:
                producer.give_up(str(error))
                if producer.is_fenced:
                    self.counts["copiers fenced"] += 1
                    await asyncio.sleep(chance.expovariate(1 / 4.0))
        self.counts["transactional requests repeated"] += producer.repeated
        self._caller.close()

    async def _go_on_where_it_stands(self) -> None:
        began = self._coordinated.tick()
        await find_coordinator(self._caller, GROUP, self._group)
        offsets = await committed_offsets(self._caller, self._group, [self._source])
        self._coordinated.fetched(self._group, offsets, began=began)
        self._position = max(offsets[self._source], 0)

    async def _copy_some(self) -> None:
        data = await fetch_committed(
            self._caller, self._source, self._position, max_bytes=2000, max_wait_ms=200
        )
        records = payload.read(data.records, self._position) if data.records else []  # type: ignore[arg-type]  # a reader is given bytes
        records = records[: self._chance.randint(1, BATCH_MAX)]
        if not records:
            return
        producer = self._producer
        producer.begin()
        self._count += 1  # every attempt has its own values, so that it is known which one won
        values = tuple(
            f"{value}{MARK}{self.name}/{self._count} from {offset}" for offset, value in records
        )  # also by its offset: plain producers leave a value twice in the source
        cut = self._chance.randint(0, len(values))
        for part in (values[:cut], values[cut:]):
            if part:
                await producer.send(self._target, part)
        after = records[-1][0] + 1
        await producer.send_offsets(self._group, {self._source: after})
        is_commit = self._chance.random() < 0.85
        await producer.end(commit=is_commit)
        if is_commit:
            self._position = after
