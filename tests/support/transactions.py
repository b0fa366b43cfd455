"""A transactional producer at a desk: its requests one by one, in the old protocol or the new."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Self

import pytest

from runnel.broker.journal import PartitionJournal
from runnel.broker.markers import Markers
from runnel.errors import ErrorCode
from runnel.native.columns import ControlType, Record
from runnel.native.encode import encode
from runnel.native.records import decode
from runnel.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from runnel.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from runnel.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest
from runnel.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from runnel.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.asking_groups import txn_commit_request
from tests.support.desk import Desk

READ_COMMITTED = 1
OLD_PRODUCE, NEW_PRODUCE = 9, 12
OLD_END, NEW_END = 4, 5
RETRY_S = 0.02
# Internal topics of one partition each, which makes a restart quick.
FEW = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}


class Sender:
    """One producer with a transactional id. It does what it is told, right or wrong."""

    def __init__(self, desk: Desk, transactional_id: str = "tx", *, is_new: bool = True) -> None:
        self.desk = desk
        self.transactional_id = transactional_id
        self.is_new = is_new  # KIP-890
        self.producer_id = self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    async def init(
        self, timeout_ms: int = 60_000, *, continues: bool = False, version: int = 5
    ) -> InitProducerIdResponse:
        """Until the transaction of the last owner is over."""
        for _ in range(50):
            response: InitProducerIdResponse = await self.init_once(
                timeout_ms, continues=continues, version=version
            )
            if response.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
            await asyncio.sleep(RETRY_S)
        if not response.error_code:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
            self.sequences.clear()
        return response

    async def init_once(
        self, timeout_ms: int = 60_000, *, continues: bool = False, version: int = 5
    ) -> InitProducerIdResponse:
        await self.desk.ask(
            FindCoordinatorRequest(key_type=1, coordinator_keys=[self.transactional_id])
        )
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=self.producer_id if continues else -1,
            producer_epoch=self.epoch if continues else -1,
        )
        response: InitProducerIdResponse = await self.desk.ask(request, version)
        return response

    async def add(self, topic: str = "t", *indexes: int, version: int = 3) -> list[int]:
        asked = AddPartitionsToTxnTopic(name=topic, partitions=list(indexes or (0,)))
        response = await self.desk.ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[asked],
            ),
            version,
        )
        (result,) = response.results_by_topic_v3_and_below
        return [each.partition_error_code for each in result.results_by_partition]

    async def send(
        self, *values: bytes, topic: str = "t", index: int = 0, sequence: int | None = None
    ) -> PartitionProduceResponse:
        """With the partition added first, if the protocol is the old one."""
        if not self.is_new and sequence is None:
            for _ in range(50):
                codes = await self.add(topic, index)
                if codes != [ErrorCode.CONCURRENT_TRANSACTIONS]:
                    break
                await asyncio.sleep(RETRY_S)
            assert codes == [0]
        return await self.produce(*values, topic=topic, index=index, sequence=sequence)

    async def produce(
        self,
        *values: bytes,
        topic: str = "t",
        index: int = 0,
        sequence: int | None = None,
        transactional: bool = True,
        version: int | None = None,
    ) -> PartitionProduceResponse:
        at = self.sequences.get((topic, index), 0) if sequence is None else sequence
        records = encode(
            [Record(b"k", value, self.desk.clock.wall_ms()) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=at,
            transactional=transactional,
        )
        data = PartitionProduceData(index=index, records=bytes(records))
        if version is None:
            version = NEW_PRODUCE if self.is_new else OLD_PRODUCE
        response = await self.desk.ask(
            ProduceRequest(
                transactional_id=self.transactional_id,
                acks=-1,
                timeout_ms=1000,
                topic_data=[TopicProduceData(name=topic, partition_data=[data])],
            ),
            version,
        )
        result: PartitionProduceResponse = response.responses[0].partition_responses[0]
        if not result.error_code and sequence is None:
            self.sequences[topic, index] = at + len(values)
        return result

    async def end(self, *, commit: bool, keeps_epoch: bool = False) -> EndTxnResponse:
        """`keeps_epoch`: as if the answer had been lost."""
        response: EndTxnResponse = await self.desk.ask(
            EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                committed=commit,
            ),
            NEW_END if self.is_new else OLD_END,
        )
        if self.is_new and not response.error_code and not keeps_epoch:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
            self.sequences.clear()
        return response

    async def send_offsets(
        self, offsets: Mapping[int, int], group: str = "g", **fields: int | str
    ) -> list[int]:
        """Error codes, of all partitions. In the old protocol the group is added first."""
        if not self.is_new:
            response = await self.desk.ask(
                AddOffsetsToTxnRequest(
                    transactional_id=self.transactional_id,
                    producer_id=self.producer_id,
                    producer_epoch=self.epoch,
                    group_id=group,
                )
            )
            assert response.error_code == 0, response
        return await self.commit_offsets(offsets, group, **fields)

    async def commit_offsets(
        self, offsets: Mapping[int, int], group: str = "g", **fields: int | str
    ) -> list[int]:
        request = txn_commit_request(
            offsets,
            group=group,
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            **fields,  # type: ignore[arg-type]  # they are txn_commit_request's
        )
        response = await self.desk.ask(request, 5 if self.is_new else 3)
        return [each.error_code for topic in response.topics for each in topic.partitions]

    async def commit(self) -> None:
        assert (await self.end(commit=True)).error_code == 0

    async def abort(self) -> None:
        assert (await self.end(commit=False)).error_code == 0

    @property
    def state(self) -> str:
        """As its coordinator has it."""
        shard = self.desk.broker.transactions.shard_of(self.transactional_id)
        return shard.machine.transactions[self.transactional_id].state.label


class Outage:
    """After so many writes of coordinators, journal records and markers, nothing is written any
    more: as in a broker that dies there. It is to be restarted before it is asked again.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after_writes: int) -> None:
        self._monkeypatch = monkeypatch
        self._left = after_writes
        self.happened = False

    def __enter__(self) -> Self:
        self._context = self._monkeypatch.context()
        patch = self._context.__enter__()
        for owner in (PartitionJournal, Markers):
            patch.setattr(owner, "append", self._counted(owner.append))
        return self

    def __exit__(self, *_: object) -> None:
        self._context.__exit__(None, None, None)

    def _counted(self, write: Callable[..., None]) -> Callable[..., None]:
        def counted(*given: object, **options: object) -> None:
            if not self._left:
                self.happened = True
                raise OutageError
            self._left -= 1
            write(*given, **options)

        return counted


class OutageError(Exception):
    """The broker is no more."""


async def committed(desk: Desk, topic: str = "t", index: int = 0) -> list[bytes | None]:
    """What a consumer with read_committed is given, aborted records left out as it would."""
    request = FetchRequest(
        max_wait_ms=0,
        isolation_level=READ_COMMITTED,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[FetchPartition(partition=index, partition_max_bytes=1 << 20)],
            )
        ],
    )
    response = await desk.ask(request, 12)
    (found,) = response.responses[0].partitions
    assert found.error_code == 0, found
    aborted = sorted(
        ((each.first_offset, each.producer_id) for each in found.aborted_transactions or ()),
        reverse=True,
    )
    values: list[bytes | None] = []
    hidden: set[int] = set()
    columns = decode(found.records or b"", max_records=10_000, max_bytes=1 << 24)
    rows = list(columns.rows())
    for batch in columns.batches:
        producer_id = batch.header.producer_id
        while aborted and aborted[-1][0] <= batch.header.base_offset:
            hidden.add(aborted.pop()[1])
        if batch.control is not None:
            if batch.control is ControlType.ABORT:
                hidden.discard(producer_id)
            continue
        if producer_id not in hidden:
            values += [
                row.value
                for row in rows
                if batch.header.base_offset
                <= row.offset
                <= batch.header.base_offset + batch.header.last_offset_delta
            ]
    return values
