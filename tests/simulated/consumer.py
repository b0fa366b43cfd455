"""Consumers on the simulated network: one that follows, and one that reads all at last."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from runnel.errors import ErrorCode
from runnel.types import TopicPartition
from runnel.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from runnel.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from runnel.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.simulated import payload
from tests.simulated.network import Network
from tests.simulated.rpc import LostError, Rpc
from tests.support.history import History, Record

EARLIEST: Final = -2
LATEST: Final = -1
BY_TOPIC_ID_SINCE: Final = 13
SESSIONS_SINCE: Final = 7
NO_SESSION_EPOCH: Final = -1


class RefusedError(Exception):
    """The broker answered with an error."""


@dataclass(slots=True)
class Position:
    offset: int = 0
    seeked: bool = True


class Reader:
    """The calls that every consumer makes."""

    def __init__(
        self,
        network: Network,
        history: History,
        name: str,
        topic_ids: Mapping[str, bytes],
        chance: Random,
        version: int,
    ) -> None:
        self.name = name
        self.stopping = False
        self.rpc = Rpc(network, name)
        self.history = history
        self._topic_ids = topic_ids
        self._names = {topic_id: name for name, topic_id in topic_ids.items()}
        self.chance = chance
        self.version = version

    async def offset_for(self, partition: TopicPartition, timestamp: int) -> int:
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=partition.topic,
                    partitions=[
                        ListOffsetsPartition(partition_index=partition.index, timestamp=timestamp)
                    ],
                )
            ],
        )
        response = await self.rpc.call(request, self.chance.randint(1, 8))
        (result,) = response.topics[0].partitions
        if result.error_code != ErrorCode.NONE:
            raise RefusedError(ErrorCode(result.error_code).name)
        offset: int = result.offset
        return offset

    def fetch_request(
        self, positions: Mapping[TopicPartition, int], *, max_bytes: int, max_wait_ms: int
    ) -> FetchRequest:
        topics: dict[str, FetchTopic] = {}
        for partition, offset in positions.items():
            topic = topics.setdefault(partition.topic, FetchTopic(topic=partition.topic))
            if self.version >= BY_TOPIC_ID_SINCE:
                topic.topic_id = self._topic_ids[partition.topic]
            topic.partitions.append(
                FetchPartition(
                    partition=partition.index, fetch_offset=offset, partition_max_bytes=max_bytes
                )
            )
        return FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=4 * max_bytes,
            session_epoch=NO_SESSION_EPOCH,
            topics=list(topics.values()),
        )

    def answers(self, response: FetchResponse) -> list[tuple[TopicPartition, PartitionData]]:
        found: list[tuple[TopicPartition, PartitionData]] = []
        for topic in response.responses:
            name = topic.topic if self.version < BY_TOPIC_ID_SINCE else self._names[topic.topic_id]
            found += [
                (TopicPartition(name, data.partition_index), data) for data in topic.partitions
            ]
        return found


class Consumer(Reader):
    """Follows some partitions from their start, with a fetch session if it likes those."""

    def follow(self, partitions: list[TopicPartition], *, uses_session: bool) -> None:
        self._positions = {partition: Position() for partition in partitions}
        self._uses_session = uses_session and self.version >= SESSIONS_SINCE
        self._session_id, self._session_epoch = 0, 0
        self._told: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        while not self.stopping:
            await asyncio.sleep(self.chance.expovariate(1 / 0.3))
            try:
                await self._poll()
                if self.chance.random() < 0.2:
                    await self._ask_latest()
                if self.chance.random() < 0.02:
                    self._seek_somewhere()
            except (LostError, RefusedError):
                self._session_id, self._session_epoch = 0, 0
        self.rpc.close()

    async def _poll(self) -> None:
        request = self.fetch_request(
            {partition: position.offset for partition, position in self._positions.items()},
            max_bytes=self.chance.choice((50, 400, 3000, 100_000)),
            max_wait_ms=self.chance.choice((0, 100, 500)),
        )
        if self._uses_session:
            self._join_session(request)
        began = self.history.tick()
        try:
            response = await self.rpc.call(request, self.version)
        except LostError:
            self._session_id, self._session_epoch = 0, 0
            raise
        if response.error_code != ErrorCode.NONE:
            raise RefusedError(ErrorCode(response.error_code).name)
        if self._uses_session:
            self._session_id = response.session_id
            self._session_epoch = self._session_epoch + 1 if response.session_id else 0
        for partition, data in self.answers(response):
            await self._take(partition, data, began)

    def _join_session(self, request: FetchRequest) -> None:
        """In a session only what changed is named."""
        request.session_id, request.session_epoch = self._session_id, self._session_epoch
        if self._session_epoch == 0:
            self._told = {}
        for topic in request.topics:
            name = topic.topic or self._names[topic.topic_id]
            changed = []
            for wanted in topic.partitions:
                key = TopicPartition(name, wanted.partition)
                wanted.partition_max_bytes = 3000
                if self._told.get(key) != wanted.fetch_offset:
                    self._told[key] = wanted.fetch_offset
                    changed.append(wanted)
            topic.partitions = changed
        request.topics = [topic for topic in request.topics if topic.partitions]

    async def _take(self, partition: TopicPartition, data: PartitionData, began: int) -> None:
        position = self._positions[partition]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            position.offset = await self.offset_for(partition, EARLIEST)
            position.seeked = True
            return
        if data.error_code != ErrorCode.NONE:
            return
        records: list[Record] = []
        if data.records:
            assert isinstance(data.records, bytes | bytearray | memoryview)
            records = payload.read(data.records, position.offset)
        self.history.polled(
            self.name,
            partition,
            position.offset,
            records,
            high_watermark=data.high_watermark,
            log_start_offset=max(data.log_start_offset, 0),
            began=began,
            seeked=position.seeked,
        )
        position.seeked = False
        if records:
            position.offset = records[-1][0] + 1

    async def _ask_latest(self) -> None:
        partition = self.chance.choice(list(self._positions))
        began = self.history.tick()
        offset = await self.offset_for(partition, LATEST)
        self.history.latest(self.name, partition, offset, began=began)

    def _seek_somewhere(self) -> None:
        position = self._positions[self.chance.choice(list(self._positions))]
        position.offset = self.chance.randint(0, position.offset)
        position.seeked = True


class Trimmer(Reader):
    """Deletes records from the start of a partition now and then."""

    async def run_on(self, partition: TopicPartition) -> None:
        while not self.stopping:
            await asyncio.sleep(self.chance.expovariate(1 / 4.0))
            try:
                latest = await self.offset_for(partition, LATEST)
                await self._delete_before(partition, self.chance.randint(0, max(latest, 0)))
            except (LostError, RefusedError):
                continue
        self.rpc.close()

    async def _delete_before(self, partition: TopicPartition, offset: int) -> None:
        self.history.trim(partition, offset)
        wanted = DeleteRecordsPartition(partition_index=partition.index, offset=offset)
        topic = DeleteRecordsTopic(name=partition.topic, partitions=[wanted])
        await self.rpc.call(DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2)


class LastReader(Reader):
    """Reads whole partitions when everything is calm."""

    async def read_all(self, partition: TopicPartition) -> tuple[Record, ...]:
        began = self.history.tick()
        start = await self.offset_for(partition, EARLIEST)
        end = await self.offset_for(partition, LATEST)
        records: list[Record] = []
        position = start
        while position < end:
            request = self.fetch_request(
                {partition: position}, max_bytes=1 << 20, max_wait_ms=0
            )  # fmt: skip
            response = await self.rpc.call(request, self.version, timeout_s=20.0)
            ((_, data),) = self.answers(response)
            if data.error_code != ErrorCode.NONE:
                raise RefusedError(f"{partition} at {position}: {ErrorCode(data.error_code).name}")
            found = payload.read(data.records, position) if data.records else []  # type: ignore[arg-type]  # a reader is given bytes
            if not found:
                break
            records += found
            position = found[-1][0] + 1
            if found[-1][1].startswith("damaged: the batch"):
                break
        self.history.final_read(
            partition, records, log_start_offset=start, end_offset=end, began=began
        )
        return tuple(records)
