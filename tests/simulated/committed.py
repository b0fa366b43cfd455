"""Reading as a read_committed consumer does: by the aborted transactions and the markers."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Final

from runnel.native.columns import ControlType
from runnel.native.records import decode
from runnel.types import TopicPartition
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from tests.simulated import payload
from tests.simulated.calls import Caller, Connect, ensure_ok
from tests.simulated.consumer import RefusedError
from tests.simulated.rpc import LostError
from tests.support.coordinated import Coordinated
from tests.support.history import Record

READ_COMMITTED: Final = 1
VERSION: Final = 12
TRANSACTIONAL: Final = 0x10


async def fetch_committed(
    caller: Caller, partition: TopicPartition, offset: int, *, max_bytes: int, max_wait_ms: int = 0
) -> PartitionData:
    """Raises LostError or CodeError."""
    asked = FetchPartition(
        partition=partition.index, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=READ_COMMITTED,
        session_epoch=-1,
        topics=[FetchTopic(topic=partition.topic, partitions=[asked])],
    )
    response = await caller.call(request, VERSION, timeout_s=5.0)
    ensure_ok(response.error_code)
    data: PartitionData = response.responses[0].partitions[0]
    ensure_ok(data.error_code)
    return data


def visible(data: PartitionData, from_offset: int) -> tuple[list[Record], int]:
    """What the application gets, and where it goes on."""
    if not data.records:
        return [], from_offset
    assert isinstance(data.records, bytes | bytearray | memoryview)
    columns = decode(data.records, from_offset=from_offset, max_records=10_000, max_bytes=1 << 24)
    values = dict(payload.read(data.records, from_offset))
    offsets = memoryview(columns.offsets).cast("q")
    pending = sorted(
        (aborted.first_offset, aborted.producer_id) for aborted in data.aborted_transactions or []
    )
    aborting: set[int] = set()
    found: list[Record] = []
    for batch in columns.batches:
        producer_id = batch.header.producer_id
        while pending and pending[0][0] <= batch.header.last_offset:
            aborting.add(pending.pop(0)[1])
        if batch.control is not None:
            if batch.control is ControlType.ABORT:
                aborting.discard(producer_id)
        elif not (batch.header.attributes & TRANSACTIONAL and producer_id in aborting):
            rows = range(batch.first_row, batch.first_row + batch.row_count)
            found += [(offsets[row], values[offsets[row]]) for row in rows]
    return found, columns.next_offset


class CommittedReader:
    """Follows partitions from their start; runs as a task until `stopping`."""

    def __init__(
        self,
        connect: Connect,
        coordinated: Coordinated,
        name: str,
        partitions: Sequence[TopicPartition],
        chance: Random,
    ) -> None:
        self.name = name
        self.stopping = False
        self.counts: Counter[str] = Counter()
        self._caller = connect(name)
        self._coordinated = coordinated
        self._chance = chance
        self._positions = dict.fromkeys(partitions, 0)

    async def run(self) -> None:
        while not self.stopping:
            await asyncio.sleep(self._chance.expovariate(1 / 0.2))
            partition = self._chance.choice(list(self._positions))
            try:
                await self.poll(partition, self._chance.choice((60, 500, 5000)))
            except (LostError, RefusedError):
                continue
        self._caller.close()

    async def poll(self, partition: TopicPartition, max_bytes: int) -> None:
        began, position = self._coordinated.tick(), self._positions[partition]
        wait_ms = self._chance.choice((0, 0, 300))
        data = await fetch_committed(
            self._caller, partition, position, max_bytes=max_bytes, max_wait_ms=wait_ms
        )
        records, self._positions[partition] = visible(data, position)
        self._note(partition, position, records, data, began, is_final=False)

    async def read_all(self, partition: TopicPartition) -> list[Record]:
        """To the end, when all is calm."""
        began = self._coordinated.tick()
        found: list[Record] = []
        self._positions[partition] = 0
        while True:
            position = self._positions[partition]
            data = await fetch_committed(self._caller, partition, position, max_bytes=1 << 20)
            records, self._positions[partition] = visible(data, position)
            if self._positions[partition] == position:
                break
            found += records
        self._note(partition, 0, found, data, began, is_final=True)
        self._caller.close()
        return found

    def _note(
        self,
        partition: TopicPartition,
        position: int,
        records: list[Record],
        data: PartitionData,
        began: int,
        *,
        is_final: bool,
    ) -> None:
        self._coordinated.read(
            self.name,
            partition,
            (position, self._positions[partition]),
            records,
            last_stable_offset=data.last_stable_offset,
            high_watermark=data.high_watermark,
            began=began,
            is_final=is_final,
        )
