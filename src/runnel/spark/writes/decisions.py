"""Decisions of exactly-once writes: one compacted topic, one key per query.

A record says of a query's last batch that it is `decided`, with the transactions to be committed,
or that all of them are, `done`. It is written in a transaction of the query's own driver, so that a
driver whose query was started again elsewhere cannot decide any more. Whether a record counts is
told by the marker behind it: transactions of other queries may be open before and after it, and
are not waited for.
"""

import json
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from runnel.arrow.errors import SinkError
from runnel.client import admin
from runnel.client.cluster import Cluster, RefusedError
from runnel.client.partitioner import partition_of
from runnel.errors import ErrorCode
from runnel.native.columns import BatchRows, ControlType, Record
from runnel.native.encode import encode
from runnel.native.records import decode
from runnel.ports import Readable
from runnel.spark.writes.producing_requests import begin_produce
from runnel.spark.writes.transactional import OpenTransaction, Producer, bumps_epochs, end
from runnel.types import FileSlice
from runnel.wire.batch import TRANSACTIONAL
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData

FORMAT: Final = 1
FETCH_BYTES: Final = 4 << 20
PARTITIONS: Final = 1
CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}


class Decision(NamedTuple):
    """Of a query's last batch."""

    query: str  # Spark's id of the query, which is in its checkpoint
    batch_id: int
    transactions: tuple[OpenTransaction, ...]  # to be committed; none once it is done

    @property
    def is_done(self) -> bool:
        return not self.transactions


@dataclass(frozen=True)
class Token:
    """Who may decide. A later driver of the query has a later one, and this is worth nothing."""

    owner: OpenTransaction
    sequence: int = 0  # of its next record, in its epoch


class _Reading:
    """What is known of a partition so far. Kept by the process, as Spark uses it again."""

    def __init__(self, next_offset: int) -> None:
        self.next_offset = next_offset
        self.last: dict[str, Decision] = {}
        self._undecided: dict[int, list[Record]] = {}  # by producer, until its marker

    def take(self, batch: BatchRows, records: list[Record]) -> None:
        producer_id = batch.header.producer_id
        if batch.control is not None:
            waiting = self._undecided.pop(producer_id, [])
            if batch.control is ControlType.COMMIT:
                self._accept(waiting)
        elif batch.header.attributes & TRANSACTIONAL:
            self._undecided.setdefault(producer_id, []).extend(records)
        else:
            self._accept(records)  # an operator's own, above all a tombstone

    def _accept(self, records: list[Record]) -> None:
        for record in records:
            query_id = (record.key or b"").decode(errors="replace")
            if record.value is None:
                self.last.pop(query_id, None)
            else:
                self.last[query_id] = _decision_of(query_id, record.value)


_readings: Final[dict[tuple[bytes, int], _Reading]] = {}


class Decisions:
    """Those of one query. Raises ClientError, and SinkError for what is not as it should be."""

    def __init__(self, cluster: Cluster, topic: str, query_id: str) -> None:
        self.name = topic
        self.partition = 0
        self._cluster = cluster
        self._query_id = query_id
        self.topic_id = self._ensure_there()

    def last(self) -> Decision | None:
        """Up to the end of the topic as it is now."""
        at, key = self.partition, (self.topic_id, self.partition)
        end_offset = self._offset(admin.LATEST)
        reading = _readings.get(key)
        if reading is None or reading.next_offset > end_offset:  # or the topic was cut
            reading = _readings[key] = _Reading(self._offset(admin.EARLIEST))
        while reading.next_offset < end_offset:
            before = reading.next_offset
            data = self._fetched(before)
            columns = decode(
                data, from_offset=before, max_records=100_000, max_bytes=2 * FETCH_BYTES
            )
            records = list(columns.rows())
            for batch in columns.batches:
                reading.take(batch, records[batch.first_row : batch.first_row + batch.row_count])
            reading.next_offset = columns.next_offset
            if reading.next_offset == before:
                raise SinkError(f"{self.name}-{at} cannot be read at offset {before}")
        return reading.last.get(self._query_id)

    def write(self, token: Token, decision: Decision) -> Token:
        """Returns when it holds: the marker may be on its way, but nothing can take it back.

        Raises RefusedError if another driver has taken the query over.
        """
        producer = Producer(
            token.owner.producer_id,
            token.owner.epoch,
            token.owner.transactional_id,
            implicit=bumps_epochs(self._cluster),
        )
        data = encode(
            [Record(self._query_id.encode(), _text_of(decision))],
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=token.sequence,
            transactional=True,
        )
        self._produce(producer, data)
        owner = end(self._cluster, token.owner, commit=True)
        is_same = owner.epoch == token.owner.epoch and owner.producer_id == producer.producer_id
        return replace(token, owner=owner, sequence=token.sequence + 1 if is_same else 0)

    def _produce(self, producer: Producer, data: bytearray) -> None:
        def attempt() -> None:
            producer.add_partitions(self._cluster, [(self.name, self.partition)])
            node_id = self._cluster.leaders(self.name, [self.partition])[self.partition]
            batch = _Batch(self, self.partition, data)
            (row,) = begin_produce(self._cluster, node_id, [batch], producer, -1).answers()
            if row.error_code not in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                where = f"{self.name}-{self.partition}"
                raise RefusedError(row.error_code, row.error_message, where)

        self._cluster.retried(attempt, reconnect=True)

    def _fetched(self, offset: int) -> Readable:
        row = self._cluster.retried(lambda: self._fetch(offset), reconnect=True)
        data = row.records or b""
        assert not isinstance(data, FileSlice), "only a broker has slices"
        return data

    def _fetch(self, offset: int) -> PartitionData:
        node_id = self._cluster.leaders(self.name, [self.partition])[self.partition]
        partition = FetchPartition(
            partition=self.partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=FETCH_BYTES,
            topics=[FetchTopic(topic=self.name, topic_id=self.topic_id, partitions=[partition])],
        )
        response = self._cluster.call(request, node_id=node_id)
        rows = [row for topic in response.responses for row in topic.partitions]
        code = response.error_code or (rows[0].error_code if rows else 0)
        if not code and (not rows or (response.throttle_time_ms and not rows[0].records)):
            code = ErrorCode.THROTTLING_QUOTA_EXCEEDED  # so Kafka answers where a quota is used up
        if code:
            raise RefusedError(code, None, f"{self.name}-{self.partition}")
        row: PartitionData = rows[0]
        return row

    def _offset(self, timestamp: int) -> int:
        wanted = {self.partition: timestamp}
        return self._cluster.retried(
            lambda: admin.list_offsets(self._cluster, self.name, wanted), reconnect=True
        )[self.partition]

    def _ensure_there(self) -> bytes:
        try:
            topic = self._cluster.retried(lambda: self._cluster.topic(self.name), reconnect=True)
        except RefusedError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            self._create()
            topic = self._cluster.topic(self.name, create=True)
        self.partition = partition_of(self._query_id.encode(), len(topic.partitions))
        if (topic.topic_id, self.partition) not in _readings:
            self._check_policy()
        return topic.topic_id

    def _create(self) -> None:
        try:
            admin.create_topic(self._cluster, self.name, PARTITIONS, configs=CONFIGS)
        except RefusedError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # by another query, just now
                raise SinkError(
                    f"the topic of decisions, {self.name}, is not there and cannot be made:"
                    f" {error}; make it, with cleanup.policy=compact, or name another one by the"
                    " option decisionsTopic"
                ) from None

    def _check_policy(self) -> None:
        key = "cleanup.policy"
        kind = admin.ResourceType.TOPIC
        rows = self._cluster.retried(
            lambda: admin.describe_configs(self._cluster, kind, self.name, [key]), reconnect=True
        )
        policy = rows[0].value if rows else "compact"
        if policy != "compact":
            raise SinkError(
                f"the topic of decisions, {self.name}, has cleanup.policy={policy}: a decision"
                " could be deleted while it is needed. Set it to compact"
            )


class _Batch(NamedTuple):
    target: Decisions
    partition: int
    data: bytearray


def _text_of(decision: Decision) -> bytes:
    told = {
        "version": FORMAT,
        "state": "done" if decision.is_done else "decided",
        "query": decision.query,
        "batch": decision.batch_id,
        "transactions": [list(each) for each in decision.transactions],
    }
    return json.dumps(told, separators=(",", ":")).encode()


def _decision_of(query_id: str, text: bytes) -> Decision:
    try:
        told = json.loads(text)
        if told["version"] > FORMAT:
            raise SinkError(
                f"the decision of query {query_id} is in format {told['version']}, which a newer"
                " Runnel has written; update this one"
            )
        rows = tuple(OpenTransaction(*row) for row in told["transactions"])
        return Decision(told["query"], told["batch"], rows)
    except (ValueError, KeyError, TypeError) as error:
        raise SinkError(f"the decision of query {query_id} cannot be read: {error}") from None
