"""A producer on the simulated network, as careful as librdkafka: it repeats with the same sequence.

It sends bursts of requests without waiting in between, then repeats in order what was not
acknowledged. When it gives one up it takes a new producer id, because the next sequence would not
follow. A failure is certain only if every attempt was refused before anything was written.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from runnel.errors import ErrorCode
from runnel.native.compression import Compression
from runnel.types import TopicPartition
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.simulated import payload
from tests.simulated.loop import START_WALL_MS
from tests.simulated.network import Network
from tests.simulated.rpc import LostError, Rpc
from tests.support.history import History, Send

ATTEMPTS_MAX: Final = 12
BY_TOPIC_ID_SINCE: Final = 13
REFUSED_UNWRITTEN: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
FINAL: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


@dataclass(frozen=True)
class Habits:
    """What tells one producer from another."""

    acks: int = -1
    idempotent: bool = True
    burst_max: int = 5
    codec: Compression = Compression.NONE
    version: int = 12
    pause_s: float = 0.2


@dataclass(slots=True)
class _Batch:
    send: Send
    raw: bytes
    may_be_written: bool = False
    settled: bool = False
    last_error: str = "no answer"


class Producer:
    """Runs as a task until `stop`."""

    def __init__(
        self,
        network: Network,
        history: History,
        name: str,
        partitions: list[TopicPartition],
        topic_ids: Mapping[str, bytes],
        habits: Habits,
        chance: Random,
    ) -> None:
        self.name = name
        self.stopping = False
        self.repeated = 0
        self._rpc = Rpc(network, name)
        self._loop = network.loop
        self._history = history
        self._partitions = partitions
        self._topic_ids = topic_ids
        self._habits = habits
        self._chance = chance
        self._count = 0
        self._producer_id = -1
        self._next_sequence: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        while not self.stopping:
            await asyncio.sleep(self._chance.expovariate(1 / self._habits.pause_s))
            if self._habits.idempotent and self._producer_id < 0 and not await self._take_id():
                continue
            partition = self._chance.choice(self._partitions)
            if self._chance.random() < 0.03:
                await self._send_damaged(partition)
                continue
            size = self._chance.randint(1, self._habits.burst_max)
            await self._send_burst([self._new_batch(partition) for _ in range(size)])
        self._rpc.close()

    async def _take_id(self) -> bool:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        try:
            response = await self._rpc.call(request, self._chance.randint(0, 4))
        except LostError:
            return False
        if response.error_code != ErrorCode.NONE:
            return False
        self._producer_id = response.producer_id
        self._next_sequence.clear()
        return True

    def _new_batch(self, partition: TopicPartition) -> _Batch:
        habits = self._habits
        values = self._new_values()
        producer, sequence = None, -1
        if habits.idempotent:
            producer = f"{self.name}/{self._producer_id}"
            sequence = self._next_sequence.get(partition, 0)
            self._next_sequence[partition] = sequence + len(values)
        raw = payload.batch(
            values,
            self._chance,
            self._now_ms(),
            codec=habits.codec,
            producer_id=self._producer_id,
            producer_epoch=0 if habits.idempotent else -1,
            base_sequence=sequence,
        )
        send = self._history.send(
            self.name,
            partition,
            values,
            producer=producer,
            idempotent=habits.idempotent,
            acks_all=habits.acks == -1,
        )
        send.attempts = 0
        return _Batch(send, raw)

    def _new_values(self) -> tuple[str, ...]:
        count = self._chance.randint(1, 6)
        self._count += count
        return tuple(
            f"{self.name}.{number}" for number in range(self._count - count, self._count)
        )  # fmt: skip

    def _now_ms(self) -> int:
        """The client's own clock, which nobody sets."""
        return START_WALL_MS + round(self._loop.time() * 1000)

    async def _send_damaged(self, partition: TopicPartition) -> None:
        """A byte changed on the way here: it must be refused, and never be read."""
        values = self._new_values()
        raw = bytearray(payload.batch(values, self._chance, self._now_ms()))
        raw[self._chance.randrange(61, len(raw))] ^= 1 << self._chance.randrange(8)
        send = self._history.send(self.name, partition, values)
        send.attempts = 0
        await self._settle(_Batch(send, bytes(raw)), attempts_max=1)

    async def _send_burst(self, batches: list[_Batch]) -> None:
        try:
            await self._rpc.connect()
            replies = [self._submit(batch) for batch in batches]
            for batch, reply in zip(batches, replies, strict=True):
                await self._take_reply(batch, reply, is_last_try=False)
        except LostError:
            pass
        for batch in batches:
            if not batch.settled:
                await self._settle(batch, ATTEMPTS_MAX)

    async def _settle(self, batch: _Batch, attempts_max: int) -> None:
        """Repeat one batch until it is acknowledged, refused for good, or given up."""
        while not batch.settled and batch.send.attempts < attempts_max and not self._gives_up():
            if batch.send.attempts:
                self.repeated += 1
                await asyncio.sleep(self._chance.uniform(0.02, 0.8))
            try:
                await self._rpc.connect()
            except LostError:
                batch.send.attempts += 1
                continue
            await self._take_reply(batch, self._submit(batch), is_last_try=True)
        if not batch.settled:
            self._give_up(batch, f"given up after {batch.last_error}")

    def _gives_up(self) -> bool:
        return self.stopping and self._chance.random() < 0.2

    def _submit(self, batch: _Batch) -> "asyncio.Future[Any]":
        habits, partition = self._habits, batch.send.partition
        batch.send.attempts += 1
        batch.send.repeated = self._history.tick()
        topic = TopicProduceData(
            name=partition.topic,
            partition_data=[PartitionProduceData(index=partition.index, records=batch.raw)],
        )
        if habits.version >= BY_TOPIC_ID_SINCE:
            topic.topic_id = self._topic_ids[partition.topic]
        return self._rpc.submit(
            ProduceRequest(acks=habits.acks, timeout_ms=1500, topic_data=[topic]), habits.version
        )

    async def _take_reply(
        self, batch: _Batch, reply: "asyncio.Future[Any]", *, is_last_try: bool
    ) -> None:
        """While earlier batches of a burst are open, an error may be only their consequence."""
        try:
            response = await self._rpc.wait(reply, 3.0)
        except LostError:
            batch.may_be_written = True
            return
        (topic,) = response.responses
        (result,) = topic.partition_responses
        if result.error_code == ErrorCode.NONE:
            batch.settled = True
            self._history.ok(batch.send, result.base_offset)
            return
        code = ErrorCode(result.error_code)
        batch.last_error = code.name
        if code not in REFUSED_UNWRITTEN:
            batch.may_be_written = True
        if is_last_try and code in FINAL:
            self._give_up(batch, code.name)

    def _give_up(self, batch: _Batch, why: str) -> None:
        batch.settled = True
        self._producer_id = -1
        if batch.may_be_written:
            self._history.unknown(batch.send, why)
        else:
            self._history.failed(batch.send, why)
