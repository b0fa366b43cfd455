"""A task's rows on their way to topics: columns in, acknowledged record batches out.

One request at a time goes to each broker, with at most one batch per partition, while the next
rows are encoded; so order is kept whatever is tried again. The producer has an id, so that what is
sent again after a lost answer is written once. Used by one task; never shared.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from runnel.arrow.errors import SinkError
from runnel.client.cluster import (
    BACKOFF_MAX_S,
    BACKOFF_S,
    PASSING,
    ClientError,
    Cluster,
    RefusedError,
    UnreachableError,
)
from runnel.errors import ErrorCode
from runnel.native.columns import Payload
from runnel.native.encode import batch_of, encode
from runnel.native.payloads import Payloads, assign
from runnel.native.records import MAX_COLUMN_BYTES, decode
from runnel.spark.writes.producing_requests import Sent, begin_produce
from runnel.spark.writes.sink_columns import Rows, by_topic
from runnel.spark.writes.sink_options import SinkOptions
from runnel.spark.writes.transactional import Producer
from runnel.wire.batch import HEADER_SIZE
from runnel.wire.messages.produce import PartitionProduceResponse

if TYPE_CHECKING:
    import pyarrow as pa

RUN_BYTES: Final = 64 << 10  # of rows without a key before the next partition has its turn
SEQUENCES: Final = 1 << 31  # they wrap
TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class Written(NamedTuple):
    records: int
    size_bytes: int


@dataclass
class Target:
    """One topic."""

    name: str
    topic_id: bytes
    leaders: dict[int, int]
    lane_count: int  # its partitions when it was opened; those added since get no rows of this task
    payloads: Payloads
    keyless: int
    sequences: dict[int, int] = field(default_factory=dict)


class Batch(NamedTuple):
    """Encoded whole; the same bytes are sent until they are acknowledged."""

    target: Target
    partition: int
    data: bytearray
    record_count: int


class Producing:
    """Call `write` with all the rows, then `finish`. Raises SinkError or ClientError."""

    def __init__(
        self, cluster: Cluster, options: SinkOptions, producer: Producer, first_lane: int
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._producer = producer
        self._first_lane = first_lane  # tasks begin at different partitions with keyless rows
        self._targets: dict[str, Target] = {}
        self._ready: dict[tuple[str, int], Batch] = {}
        self._ready_bytes = 0
        self._sent: list[Sent[Batch]] = []
        self._records = 0
        self._bytes = 0

    def write(self, batch: "pa.RecordBatch") -> None:
        for rows in by_topic(batch, self._options.topic, headers=self._options.headers):
            self._add(rows, int(time.time() * 1000))
        if self._ready_bytes + self._buffered_bytes() > self._options.buffer_bytes:
            self._send_all()

    def finish(self) -> Written:
        """Returns when every row is acknowledged."""
        self._send_all()
        self._collect()
        return Written(self._records, self._bytes)

    def _add(self, rows: Rows, now_ms: int) -> None:
        target = self._targets.get(rows.topic) or self._open(rows.topic)
        lanes = self._lanes(target, rows)
        numbers = memoryview(lanes).cast("i")
        row = 0
        while True:
            row = target.payloads.append(
                lanes, rows.keys, rows.values, rows.headers, row, rows.row_count, now_ms
            )
            if row == rows.row_count:
                return
            self._take(target, numbers[row])

    def _lanes(self, target: Target, rows: Rows) -> bytearray:
        count = target.lane_count
        run_rows = max(1, RUN_BYTES * rows.row_count // max(1, rows.size_bytes))
        lanes = assign(rows.keys, rows.row_count, count, target.keyless, run_rows)
        target.keyless = (target.keyless + -(-rows.row_count // run_rows)) % count
        if rows.partitions is None:
            return lanes
        return _with_given(lanes, rows, count)

    def _open(self, topic: str) -> Target:
        leaders = self._cluster.leaders(topic, create=True, reconnect=True)
        count = len(leaders)
        payloads = Payloads(count, self._options.batch_bytes)
        topic_id = self._cluster.topic(topic).topic_id
        keyless = self._first_lane % count
        self._targets[topic] = found = Target(topic, topic_id, leaders, count, payloads, keyless)
        return found

    def _take(self, target: Target, lane: int) -> None:
        """A batch is full, or there is no more to come."""
        payload = target.payloads.take(lane)
        if payload is None:
            return
        if (target.name, lane) in self._ready:
            self._send()
        self._ready[target.name, lane] = batch = self._encoded(target, lane, payload)
        self._ready_bytes += len(batch.data)

    def _encoded(self, target: Target, lane: int, payload: Payload) -> Batch:
        sequence = target.sequences.get(lane, 0)
        target.sequences[lane] = (sequence + payload.record_count) % SEQUENCES
        data = batch_of(
            payload,
            codec=self._options.codec,
            level=self._options.level,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.epoch,
            base_sequence=sequence if self._producer.producer_id >= 0 else -1,
            transactional=self._producer.transactional_id is not None,
        )
        return Batch(target, lane, data, payload.record_count)

    def _buffered_bytes(self) -> int:
        return sum(target.payloads.buffered_bytes for target in self._targets.values())

    def _send_all(self) -> None:
        for target in self._targets.values():
            for lane in range(target.lane_count):
                self._take(target, lane)
        self._send()

    def _send(self) -> None:
        """Off with what is ready, once what was sent before has been answered."""
        self._collect()
        ready, self._ready, self._ready_bytes = list(self._ready.values()), {}, 0
        if ready:
            self._begin(ready)

    def _begin(self, batches: Sequence[Batch]) -> None:
        """Nothing is on its way: the coordinator may be asked over the same connection."""
        partitions = [(batch.target.name, batch.partition) for batch in batches]
        self._producer.add_partitions(self._cluster, partitions)
        by_leader: dict[int, list[Batch]] = {}
        for batch in batches:
            leader = batch.target.leaders[batch.partition]
            by_leader.setdefault(leader, []).append(batch)
        for node_id, here in by_leader.items():
            self._sent.append(
                begin_produce(self._cluster, node_id, here, self._producer, self._options.acks)
            )

    def _collect(self) -> None:
        """Wait for all that was sent; what failed in passing is sent again until it is in."""
        deadline, backoff_s = time.monotonic() + self._options.delivery_timeout_s, BACKOFF_S
        while self._sent:
            sent, self._sent = self._sent, []
            again: list[Batch] = []
            failure: ClientError | None = None
            for request in sent:
                try:
                    rows = request.answers()
                except UnreachableError as error:
                    failure = error
                    again += request.batches
                    continue
                for batch, row in zip(request.batches, rows, strict=True):
                    left, passing = self._settle(batch, row)
                    again += left
                    failure = passing or failure
            if not again:
                return
            if failure is not None:
                if time.monotonic() + backoff_s > deadline:
                    raise failure
                time.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)
                self._look_up(again)
            self._again(again)

    def _again(self, batches: Sequence[Batch]) -> None:
        """In order, one batch per partition at a time: halves of one follow each other."""
        waves: list[dict[tuple[str, int], Batch]] = []
        for batch in batches:
            key = (batch.target.name, batch.partition)
            wave = next((wave for wave in waves if key not in wave), None)
            if wave is None:
                wave = {}
                waves.append(wave)
            wave[key] = batch
        for wave in waves[:-1]:
            self._begin(list(wave.values()))
            self._collect()
        self._begin(list(waves[-1].values()))

    def _look_up(self, batches: Iterable[Batch]) -> None:
        for target in {batch.target.name: batch.target for batch in batches}.values():
            target.leaders = self._cluster.leaders(target.name, reconnect=True)

    def _settle(
        self, batch: Batch, row: PartitionProduceResponse
    ) -> tuple[list[Batch], RefusedError | None]:
        """What of it is to be sent again, and why."""
        if row.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._records += batch.record_count
            self._bytes += len(batch.data)
            return [], None
        where = f"{batch.target.name}-{batch.partition}"
        error = RefusedError(row.error_code, row.error_message, where)
        if error.code in TOO_LARGE:
            if batch.record_count == 1:
                raise SinkError(
                    f"{where} takes no row of {len(batch.data) - HEADER_SIZE} bytes; raise"
                    f" max.message.bytes of topic {batch.target.name}, or write smaller values"
                )
            return self._halves(batch), None
        if error.code not in PASSING and error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise error
        return [batch], error

    def _halves(self, batch: Batch) -> list[Batch]:
        """The broker has refused it whole, so its numbers are still free."""
        rows = list(
            decode(batch.data, max_records=batch.record_count, max_bytes=MAX_COLUMN_BYTES).rows()
        )
        first = int.from_bytes(batch.data[_SEQUENCE_AT : _SEQUENCE_AT + 4], "big")
        middle = len(rows) // 2
        return [
            batch._replace(
                data=encode(
                    (row._replace(offset=-1) for row in part),
                    codec=self._options.codec,
                    level=self._options.level,
                    producer_id=self._producer.producer_id,
                    producer_epoch=self._producer.epoch,
                    base_sequence=(first + at) % SEQUENCES,
                    transactional=self._producer.transactional_id is not None,
                ),
                record_count=len(part),
            )
            for at, part in ((0, rows[:middle]), (middle, rows[middle:]))
        ]


_SEQUENCE_AT: Final = 53  # in the header of a batch


def _with_given(lanes: bytearray, rows: Rows, count: int) -> bytearray:
    """Where a row says its partition, that is it."""
    numbers = memoryview(lanes).cast("i")
    assert rows.partitions is not None
    for row, partition in enumerate(rows.partitions.to_pylist()):
        if partition is None:
            continue
        if not 0 <= partition < count:
            raise SinkError(
                f"Invalid partition given with record: {partition} is not in the range"
                f" [0...{count}) of topic {rows.topic}"
            )
        numbers[row] = partition
    return lanes
