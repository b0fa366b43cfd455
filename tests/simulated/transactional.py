"""A transactional producer as careful as a real one, by the protocol of today or the older one.

Today's (KIP-890) adds partitions by producing to them and gets a new epoch with every end; the
older one names partitions first and keeps its epoch. A request is repeated until it is answered,
for as long as patience lasts; after that only a new `init` goes on, which fences what was before.
The older protocol cannot tell a request that comes late from one of the next transaction (S18,
KAFKA-17754), at Kafka neither: so after a lost reply this one takes a new epoch before it goes on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Final

from runnel.errors import ErrorCode
from runnel.types import TopicPartition
from runnel.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from runnel.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from runnel.wire.messages.end_txn import EndTxnRequest
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from runnel.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.simulated import payload
from tests.simulated.calls import (
    COME_AGAIN,
    TRANSACTION,
    Caller,
    CodeError,
    ensure_ok,
    find_coordinator,
)
from tests.simulated.loop import START_WALL_MS
from tests.simulated.rpc import LostError
from tests.support.coordinated import Coordinated, Transaction
from tests.support.history import Outcome

ATTEMPTS_MAX: Final = 15
TIMEOUT_MS: Final = 6000  # of a transaction


class Transactional:
    """One producer; `init` before the first transaction and after every error."""

    def __init__(
        self,
        caller: Caller,
        coordinated: Coordinated,
        name: str,
        transactional_id: str,
        chance: Random,
        *,
        is_modern: bool,
    ) -> None:
        self.name = name
        self.transactional_id = transactional_id
        self.transaction: Transaction | None = None
        self.repeated = 0
        self.is_fenced = False
        self._caller = caller
        self._coordinated = coordinated
        self._chance = chance
        self._is_modern = is_modern
        self._producer_id, self._epoch = -1, -1
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition] = set()
        self._is_certain = True
        self._has_lost = False  # a request of this epoch, which may come late

    @property
    def is_ready(self) -> bool:
        return self._producer_id >= 0

    async def init(self) -> None:
        """Fences whoever used the id before; what that one left open is aborted."""
        self.is_fenced = False
        await find_coordinator(self._caller, TRANSACTION, self.transactional_id)
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=TIMEOUT_MS
        )

        async def attempt() -> None:
            response = await self._caller.call(request, 4)
            ensure_ok(response.error_code)
            self._producer_id, self._epoch = response.producer_id, response.producer_epoch

        await self._persist(attempt)
        self._sequences.clear()
        self._has_lost = False

    def begin(self) -> Transaction:
        assert self.transaction is None and self.is_ready
        self._added.clear()
        self.transaction = self._coordinated.transaction(self.name, self.transactional_id)
        return self.transaction

    async def send(self, partition: TopicPartition, values: tuple[str, ...]) -> None:
        """Returns when they are acknowledged. Raises LostError or CodeError: then `give_up`."""
        assert self.transaction is not None
        self.transaction.values.setdefault(partition, []).extend(values)
        if not self._is_modern and partition not in self._added:
            await self._add(partition)
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + len(values)
        raw = payload.batch(
            values,
            self._chance,
            START_WALL_MS + round(asyncio.get_running_loop().time() * 1000),
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            transactional=True,
        )
        topic = TopicProduceData(
            name=partition.topic,
            partition_data=[PartitionProduceData(index=partition.index, records=raw)],
        )
        request = ProduceRequest(
            transactional_id=self.transactional_id, acks=-1, timeout_ms=1500, topic_data=[topic]
        )

        async def attempt() -> None:
            response = await self._caller.call(request, 12 if self._is_modern else 11)
            ensure_ok(response.responses[0].partition_responses[0].error_code)

        await self._persist(attempt)

    async def _add(self, partition: TopicPartition) -> None:
        topic = AddPartitionsToTxnTopic(name=partition.topic, partitions=[partition.index])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[topic],
        )

        async def attempt() -> None:
            response = await self._caller.call(request, 3)
            (answer,) = response.results_by_topic_v3_and_below[0].results_by_partition
            ensure_ok(answer.partition_error_code)

        await self._persist(attempt)
        self._added.add(partition)

    async def send_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Of a group without members: the transactional id is what fences."""
        assert self.transaction is not None
        self.transaction.group = group
        self.transaction.offsets |= offsets
        if not self._is_modern:
            await self._add_group(group)
        topics: dict[str, TxnOffsetCommitRequestTopic] = {}
        for (topic, index), offset in offsets.items():
            row = topics.setdefault(topic, TxnOffsetCommitRequestTopic(name=topic))
            row.partitions.append(
                TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            topics=list(topics.values()),
        )

        async def attempt() -> None:
            response = await self._caller.call(request, 5 if self._is_modern else 4)
            for topic in response.topics:
                for answer in topic.partitions:
                    ensure_ok(answer.error_code)

        await self._persist(attempt)

    async def _add_group(self, group: str) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            group_id=group,
        )

        async def attempt() -> None:
            ensure_ok((await self._caller.call(request, 3)).error_code)

        await self._persist(attempt)

    async def end(self, *, commit: bool) -> None:
        """Whatever comes of it is written down. Raises if a new `init` is needed."""
        transaction = self.transaction
        assert transaction is not None
        if commit:
            transaction.end_began = self._coordinated.tick()
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=commit,
        )

        async def attempt() -> None:
            response = await self._caller.call(request, 5 if self._is_modern else 4)
            ensure_ok(response.error_code)
            if self._is_modern:
                self._sequences.clear()
                self._producer_id, self._epoch = response.producer_id, response.producer_epoch

        try:
            await self._persist(attempt)
        except CodeError as error:
            sure = self._is_certain and error.code not in COME_AGAIN
            self._over(Outcome.FAIL if sure else Outcome.UNKNOWN, error.code.name)
            raise
        except LostError:
            self._over(Outcome.UNKNOWN, "no answer to the end")
            raise
        self._over(Outcome.OK if commit else Outcome.FAIL, "" if commit else "aborted")
        if self._has_lost and not self._is_modern:
            self._producer_id = -1

    def give_up(self, why: str) -> None:
        """After an error: nothing goes on with this epoch."""
        self._producer_id = -1
        if self.transaction is not None:
            self._over(Outcome.UNKNOWN, why)

    def _over(self, outcome: Outcome, why: str) -> None:
        assert self.transaction is not None
        self._coordinated.end(self.transaction, outcome, why)
        self.transaction = None

    async def _persist(self, attempt: Callable[[], Awaitable[None]]) -> None:
        """Again and again while it is worth it. An error after a lost attempt proves nothing."""
        attempts, self._is_certain = 0, True
        while True:
            attempts += 1
            try:
                await attempt()
                return
            except LostError:
                self._is_certain = False
                self._has_lost = True
                if attempts >= ATTEMPTS_MAX:
                    raise
            except CodeError as error:
                if error.code not in COME_AGAIN or attempts >= ATTEMPTS_MAX:
                    self.is_fenced = error.code in (
                        ErrorCode.PRODUCER_FENCED,
                        ErrorCode.INVALID_PRODUCER_EPOCH,
                    )
                    raise
                if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    self._is_certain = False
            self.repeated += 1
            await asyncio.sleep(self._chance.uniform(0.02, 0.6))
