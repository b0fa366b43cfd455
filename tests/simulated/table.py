"""A compacted topic: one writer to each key, and the judgement of what compaction left.

lost-write       the last acknowledged value of a key is gone, and nothing later took its place
phantom-read     a record that nobody wrote, or with another value
nonmonotonic-poll  offsets do not grow
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.native.records import decode
from runnel.types import TopicPartition
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.simulated.calls import COME_AGAIN, Caller, CodeError, Connect, ensure_ok
from tests.simulated.committed import fetch_committed
from tests.simulated.consumer import RefusedError
from tests.simulated.loop import START_WALL_MS
from tests.simulated.rpc import LostError
from tests.support.checker import Anomaly, Verdict

KEYS: Final = 6
ATTEMPTS_MAX: Final = 15
Row = tuple[int, bytes | None, bytes | None]  # offset, key, value


@dataclass(slots=True)
class Write:
    key: bytes
    value: bytes | None
    offset: int = -1  # -1: nobody said that it is there


@dataclass
class TableWriter:
    """Runs as a task until `stopping`."""

    connect: Connect
    name: str
    partition: TopicPartition
    chance: Random
    stopping: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    writes: list[Write] = field(default_factory=list)
    _producer_id: int = -1
    _sequence: int = 0

    async def run(self) -> None:
        caller = self.connect(self.name)
        while not self.stopping:
            await asyncio.sleep(self.chance.expovariate(1 / 0.15))
            try:
                if self._producer_id < 0:
                    request = InitProducerIdRequest(transactional_id=None)
                    response = await caller.call(request, 4)
                    ensure_ok(response.error_code)
                    self._producer_id, self._sequence = response.producer_id, 0
                await self._write(caller)
            except (LostError, RefusedError):
                self._producer_id = -1
        caller.close()

    async def _write(self, caller: Caller) -> None:
        key = b"k%d" % self.chance.randrange(KEYS)
        is_deleted = self.chance.random() < 0.15
        padding = self.chance.randrange(40)
        value = None if is_deleted else b"%d/%s" % (len(self.writes), b"." * padding)
        write = Write(key, value)
        self.writes.append(write)
        now_ms = START_WALL_MS + round(asyncio.get_running_loop().time() * 1000)
        raw = encode(
            [Record(key, value, now_ms)],
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=self._sequence,
        )
        self._sequence += 1
        data = PartitionProduceData(index=self.partition.index, records=bytes(raw))
        topic = TopicProduceData(name=self.partition.topic, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=1500, topic_data=[topic])
        for attempt in range(ATTEMPTS_MAX):
            try:
                response = await caller.call(request, 9)
                (answer,) = response.responses[0].partition_responses
                ensure_ok(answer.error_code)
            except CodeError as error:
                if error.code not in COME_AGAIN or attempt == ATTEMPTS_MAX - 1:
                    raise
            except LostError:
                if attempt == ATTEMPTS_MAX - 1:
                    raise
            else:
                write.offset = answer.base_offset
                return
            await asyncio.sleep(self.chance.uniform(0.02, 0.6))


async def read_table(caller: Caller, partition: TopicPartition) -> list[Row]:
    """Everything, when all is calm."""
    rows: list[Row] = []
    position = 0
    while True:
        data = await fetch_committed(caller, partition, position, max_bytes=1 << 20)
        if not data.records:
            caller.close()
            return rows
        assert isinstance(data.records, bytes | bytearray | memoryview)
        columns = decode(data.records, from_offset=position, max_records=100_000, max_bytes=1 << 24)
        rows += [(row.offset, row.key, row.value) for row in columns.rows()]
        assert columns.next_offset > position
        position = columns.next_offset


def check_table(
    verdict: Verdict, partition: TopicPartition, writes: list[Write], rows: list[Row]
) -> None:
    verdict.count("table writes", len(writes))
    verdict.count("table records compacted away", len(writes) - len(rows))
    tried: defaultdict[bytes, list[Write]] = defaultdict(list)
    for write in writes:
        tried[write.key].append(write)
    last_of: dict[bytes, Row] = {}
    last_offset = -1
    for row in rows:
        if row[0] <= last_offset:
            verdict.anomalies.append(
                Anomaly("nonmonotonic-poll", partition, f"{row[0]} after {last_offset}")
            )
        last_offset = row[0]
        if not _is_known(row, tried):
            verdict.anomalies.append(Anomaly("phantom-read", partition, str(row)))
        last_of[row[1] or b""] = row
    for key, made in tried.items():
        wrong = _what_is_lost(made, last_of.get(key))
        if wrong:
            verdict.anomalies.append(Anomaly("lost-write", partition, f"{key!r}: {wrong}"))


def _is_known(row: Row, tried: Mapping[bytes, list[Write]]) -> bool:
    offset, key, value = row
    made = tried.get(key or b"", [])
    return any(write.value == value and write.offset in (offset, -1) for write in made)


def _what_is_lost(made: list[Write], found: Row | None) -> str:
    """The last acknowledged write of a key, unless one that came after it took its place."""
    acknowledged = [write for write in made if write.offset >= 0]
    if not acknowledged:
        return ""
    last = acknowledged[-1]
    later = made[made.index(last) :]
    if found is None:
        is_deleted = any(write.value is None for write in later)
        return "" if is_deleted else f"nothing of {last.value!r} at {last.offset}"
    if found[0] < last.offset or found[2] not in [write.value for write in later]:
        return f"{found}, and not {last.value!r} at {last.offset} or later"
    return ""
