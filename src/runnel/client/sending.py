"""Sending records to the partitions of one topic, for tools: blocking, a few requests at a time.

With acks "all" the sender has a producer id, so that what is sent again after a lost reply is
written once. Records with a key go where Kafka's Java client would put them; records without one
go to one partition after the other, a batch to each.
"""

import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from runnel.client.cluster import (
    BACKOFF_MAX_S,
    BACKOFF_S,
    PASSING,
    ClientError,
    Cluster,
    RefusedError,
    UnreachableError,
    UnsupportedError,
)
from runnel.client.partitioner import partition_of
from runnel.errors import ErrorCode
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

ACKS_ALL: Final = -1
BATCH_BYTES: Final = 500_000  # below the default of max.message.bytes, with room to grow
BUFFER_BYTES: Final = 4_000_000
RECORD_OVERHEAD_BYTES: Final = 24  # lengths and deltas, generously
REQUEST_TIMEOUT_MS: Final = 30_000
SEQUENCES: Final = 1 << 31  # they wrap


class Sent(NamedTuple):
    """What has been acknowledged so far; offsets are unknown (-1) with acks 0."""

    records: int
    size_bytes: int
    next_offsets: dict[int, int]


class _Batch(NamedTuple):
    partition: int
    records: Sequence[Record]
    sequence: int


class Sender:
    """Add records, then flush. Raises ClientError; then some records may not have been sent."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        codec: Compression = Compression.NONE,
        acks: int = ACKS_ALL,
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._codec = codec
        self._acks = acks
        self._leaders = cluster.leaders(topic, create=True)
        self._topic_id = cluster.topic(topic).topic_id
        self._producer = _producer_of(cluster) if acks == ACKS_ALL else (-1, -1)
        self._sequences = dict.fromkeys(self._leaders, 0)
        self._waiting: dict[int, list[Record]] = {}
        self._waiting_bytes: dict[int, int] = {}
        self._keyless = 0  # the partition for records without a key
        self._records = 0
        self._bytes = 0
        self._next_offsets: dict[int, int] = {}

    @property
    def sent(self) -> Sent:
        return Sent(self._records, self._bytes, dict(self._next_offsets))

    def add(self, record: Record, partition: int | None = None) -> None:
        """Sends what has gathered once that is worth a request."""
        if partition is None:
            partition = self._partition_for(record.key)
        elif partition not in self._leaders:
            raise RefusedError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {self._topic} has no partition {partition}; it has {len(self._leaders)}",
            )
        size = size_of(record)
        if self._waiting_bytes.get(partition, 0) + size > BATCH_BYTES:
            self.flush()
        self._waiting.setdefault(partition, []).append(record)
        self._waiting_bytes[partition] = self._waiting_bytes.get(partition, 0) + size
        if sum(self._waiting_bytes.values()) > BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Returns when all records have been acknowledged as `acks` asks."""
        batches = deque(
            self._numbered(partition, records) for partition, records in self._waiting.items()
        )
        self._waiting, self._waiting_bytes = {}, {}
        self._keyless = (self._keyless + 1) % len(self._leaders)
        began, backoff_s = time.monotonic(), BACKOFF_S
        while batches:
            failure = self._send_once(batches)
            if failure is None:
                continue
            if time.monotonic() + backoff_s > began + self._cluster.timeout_s:
                raise failure
            self._cluster.wait(failure, began, backoff_s)
            backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)
            self._leaders = self._cluster.leaders(self._topic, reconnect=True)

    def _send_once(self, batches: "deque[_Batch]") -> ClientError | None:
        """Take off what was written, part what is too large; returns a failure that may pass."""
        failure: ClientError | None = None
        refusal: RefusedError | None = None
        by_leader: dict[int, dict[int, _Batch]] = {}
        for _ in range(len(batches)):
            batch = batches.popleft()
            here = by_leader.setdefault(self._leaders[batch.partition], {})
            if batch.partition in here:  # the later half of what was too large
                batches.append(batch)
            else:
                here[batch.partition] = batch
        for node_id, here in by_leader.items():
            try:
                rows = self._request(node_id, here.values())
            except UnreachableError as error:
                if self._producer[0] < 0:
                    raise  # it may have been written: sending it again could write it twice
                failure = error
                batches.extendleft(here.values())
                continue
            for row in rows:
                try:
                    failure = self._settle(here[row.index], row, batches) or failure
                except RefusedError as error:  # what else was written by then still counts
                    refusal = refusal or error
        if refusal is not None:
            raise refusal
        return failure

    def _request(self, node_id: int, batches: Iterable[_Batch]) -> list[PartitionProduceResponse]:
        rows = [
            PartitionProduceData(index=batch.partition, records=self._encoded(batch))
            for batch in batches
        ]
        topic = TopicProduceData(name=self._topic, topic_id=self._topic_id, partition_data=rows)
        request = ProduceRequest(acks=self._acks, timeout_ms=REQUEST_TIMEOUT_MS, topic_data=[topic])
        if self._acks == 0:
            self._cluster.send(request, node_id=node_id)
            return [PartitionProduceResponse(index=row.index, base_offset=-1) for row in rows]
        (answer,) = self._cluster.call(request, node_id=node_id).responses
        results: list[PartitionProduceResponse] = answer.partition_responses
        return results

    def _settle(
        self, batch: _Batch, row: PartitionProduceResponse, batches: "deque[_Batch]"
    ) -> RefusedError | None:
        if row.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._records += len(batch.records)
            self._bytes += sum(len(record.value or b"") for record in batch.records)
            if row.base_offset >= 0:
                self._next_offsets[batch.partition] = row.base_offset + len(batch.records)
            return None
        error = RefusedError(row.error_code, row.error_message, f"{self._topic}-{batch.partition}")
        if error.code in _TOO_LARGE and len(batch.records) > 1:
            batches.extendleft(reversed(_halves(batch)))
            return None
        if error.code not in PASSING and error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise error
        batches.appendleft(batch)
        return error

    def _numbered(self, partition: int, records: Sequence[Record]) -> _Batch:
        sequence = self._sequences[partition]
        self._sequences[partition] = (sequence + len(records)) % SEQUENCES
        return _Batch(partition, records, sequence)

    def _encoded(self, batch: _Batch) -> bytearray:
        producer_id, producer_epoch = self._producer
        return encode(
            batch.records,
            codec=self._codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=batch.sequence if producer_id >= 0 else -1,
        )

    def _partition_for(self, key: bytes | None) -> int:
        return self._keyless if key is None else partition_of(key, len(self._leaders))


_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


def size_of(record: Record) -> int:
    """About as many bytes as it takes in a batch that is not compressed."""
    headers = sum(len(key) + len(value or b"") + 8 for key, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers + RECORD_OVERHEAD_BYTES


def _halves(batch: _Batch) -> list[_Batch]:
    """The broker has refused it whole, so the numbers are still free."""
    middle = len(batch.records) // 2
    return [
        _Batch(batch.partition, batch.records[:middle], batch.sequence),
        _Batch(batch.partition, batch.records[middle:], (batch.sequence + middle) % SEQUENCES),
    ]


def _producer_of(cluster: Cluster) -> tuple[int, int]:
    """An id and epoch of our own, or none where the broker gives us none."""

    def attempt() -> tuple[int, int]:
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=REQUEST_TIMEOUT_MS
        )
        answer = cluster.call(request)
        if answer.error_code:
            raise RefusedError(answer.error_code, None, "a producer id")
        return answer.producer_id, answer.producer_epoch

    try:
        return cluster.retried(attempt)
    except (RefusedError, UnsupportedError):
        return -1, -1
