"""The bytes of a range, fetched from the partition's leader one answer ahead.

The next request is on its way before the last answer is looked into: the broker works while this
process decodes and Spark takes rows. One request is under way at most, on one connection.

A leader that moved, a broker that restarts or a connection that breaks is waited for, as long as
`kafkaConsumer.pollTimeoutMs` goes by without any progress. Offsets that are gone are a loss, which
`failOnDataLoss` decides about.
"""

import time
from collections.abc import Generator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from runnel.arrow import connections
from runnel.arrow.losses import ReadError, report_loss
from runnel.arrow.ranges import Range, Scan
from runnel.client.admin import EARLIEST, LATEST, ResourceType, describe_configs, list_offsets
from runnel.client.cluster import (
    PASSING,
    ClientError,
    Cluster,
    MisdirectedError,
    RefusedError,
    UnreachableError,
    UnsupportedError,
)
from runnel.client.raw import ClosedError, WireClient, decode_reply
from runnel.errors import ErrorCode, WireError
from runnel.types import NO_TOPIC_ID, FileSlice
from runnel.wire.apis import ApiKey
from runnel.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

PARTITION_BYTES: Final = 8 << 20  # per answer, unless `max.partition.fetch.bytes` says otherwise
LIKELY_RECORD_BYTES: Final = 1 << 10  # before the first answer tells
SMALL_FETCH_BYTES: Final = 64 << 10
MAX_WAIT_MS: Final = 500
EMPTY_ANSWERS_MAX: Final = 3  # of a compacted log, below the high watermark: nothing is there
UNKNOWN_TOPIC_S: Final = 5.0  # a broker that has just started may not know its topics yet
BACKOFF_S: Final = 0.05
BACKOFF_MAX_S: Final = 1.0
REQUEST_TIMEOUT_MS: Final = 30_000

_UNKNOWN: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
_SPAN: Final = Struct(">qi11xi")  # base offset, length, last offset delta of a batch
_HEADER_BYTES: Final = 61
_LOG_OVERHEAD: Final = 12


class Fetched(NamedTuple):
    """Whole batches, and perhaps a part of one at the end; gone when the next is asked for."""

    data: memoryview
    from_offset: int
    aborted: Sequence[AbortedTransaction] | None


def fetched(scan: Scan, piece: Range) -> Generator[Fetched]:
    """All answers that it takes to read the range. Raises ReadError."""
    if piece.start >= piece.end:
        return
    cluster = connections.take(scan.client, scan.poll_timeout_ms)
    fetcher = _Fetcher(cluster, scan, piece)
    done = False
    try:
        yield from fetcher.answers()
        done = True
    finally:
        if done or fetcher.is_idle:
            connections.give_back(scan.client, cluster)
        else:
            cluster.close()


class _Fetcher:
    def __init__(self, cluster: Cluster, scan: Scan, piece: Range) -> None:
        self._cluster = cluster
        self._scan = scan
        self._piece = piece
        self._position = piece.start
        self._connection: WireClient | None = None
        self._topic_id = b""
        self._version = 0
        self._correlation_id = 1 << 20  # apart from those of calls on the same connection
        self._under_way = False
        self._memory = bytearray()
        self._record_bytes = float(LIKELY_RECORD_BYTES)
        self._empty_answers = 0
        self._compacted: bool | None = None  # None: not asked yet
        client = scan.client
        limit = connections.integer(client, "max.partition.fetch.bytes", PARTITION_BYTES, 1)
        self._bytes_max = min(limit, connections.integer(client, "fetch.max.bytes", limit, 1))
        wait_ms = connections.integer(client, "fetch.max.wait.ms", MAX_WAIT_MS)
        self._wait_ms = min(wait_ms, scan.poll_timeout_ms // 4)
        timeout_ms = connections.integer(client, "request.timeout.ms", REQUEST_TIMEOUT_MS, 1)
        self._timeout_ms = self._wait_ms + min(timeout_ms, scan.poll_timeout_ms)

    @property
    def is_idle(self) -> bool:
        """Whether no answer is left to be read."""
        return not self._under_way

    def answers(self) -> Generator[Fetched]:
        end = self._piece.end
        progress_at = time.monotonic()
        backoff_s = BACKOFF_S
        while self._position < end:
            try:
                row, throttled_ms = self._next_answer()
                found = self._taken(row, throttled_ms, progress_at)
            except (MisdirectedError, UnsupportedError) as error:
                raise self._failure(error) from None
            except ClientError as error:
                self._disconnect()
                waited_s = time.monotonic() - progress_at
                if self._is_final(error, waited_s + backoff_s):
                    raise self._failure(error) from None
                time.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)
                continue
            if found is not None:
                yield found
                progress_at, backoff_s = time.monotonic(), BACKOFF_S  # Spark's time is not ours

    def _next_answer(self) -> tuple[PartitionData, int]:
        if not self._under_way:
            self._send()
        assert self._connection is not None
        try:
            self._memory, frame = self._connection.receive_frame_into(self._memory)
            correlation_id, response = decode_reply(ApiKey.FETCH, self._version, frame)
        except (OSError, ClosedError, WireError) as error:
            raise UnreachableError(str(error) or "the connection was closed") from None
        assert correlation_id == self._correlation_id, "a reply out of order"
        self._under_way = False
        return self._row_of(response), response.throttle_time_ms

    def _row_of(self, response: FetchResponse) -> PartitionData:
        if response.error_code:
            raise RefusedError(response.error_code, None, self._where)
        rows = [row for answer in response.responses for row in answer.partitions]
        if len(rows) != 1:
            raise UnreachableError(f"an answer about {len(rows)} partitions instead of one")
        return rows[0]

    def _taken(self, row: PartitionData, throttled_ms: int, progress_at: float) -> Fetched | None:
        """What an answer brings; the next one is asked for if it can be. Raises ClientError."""
        if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._skip_what_is_gone()
            return None
        if row.error_code:
            raise RefusedError(row.error_code, None, self._where)
        data = row.records or b""
        assert not isinstance(data, FileSlice), "only a broker has slices"
        view = memoryview(data)
        next_offset = next_offset_after(view)
        if next_offset is None or next_offset <= self._position:
            self._wait_at_the_end(row, len(view), throttled_ms, progress_at)
            return None
        found = Fetched(view, self._position, row.aborted_transactions)
        span = max(1, next_offset - self._position)
        self._record_bytes = len(view) / span
        self._empty_answers = 0
        self._position = next_offset
        if self._position < self._piece.end:
            self._send_ahead()
        return found

    def _send_ahead(self) -> None:
        """Whether it can be sent or not, what has come already is given first."""
        try:
            self._send()
        except UnreachableError:
            self._disconnect()

    def _send(self) -> None:
        try:
            if self._connection is None:
                self._connect()
            assert self._connection is not None
            self._correlation_id += 1
            self._connection.send(self._request(), self._version, self._correlation_id)
        except (OSError, ClosedError) as error:
            raise UnreachableError(str(error) or "the connection was closed") from None
        self._under_way = True

    def _connect(self) -> None:
        piece, cluster = self._piece, self._cluster
        topic = cluster.topic(piece.topic)
        leaders = {row.partition_index: row.leader_id for row in topic.partitions}
        leader = leaders.get(piece.partition)
        if leader is None:
            raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, self._where)
        if leader < 0:
            raise RefusedError(ErrorCode.LEADER_NOT_AVAILABLE, None, self._where)
        if NO_TOPIC_ID not in (piece.topic_id, topic.topic_id) and topic.topic_id != piece.topic_id:
            # A broker that lags behind may still tell of the one before: that passes.
            raise RefusedError(ErrorCode.INCONSISTENT_TOPIC_ID, None, self._where)
        self._topic_id = topic.topic_id
        self._connection = cluster.connection(leader)
        self._connection.sock.settimeout(self._timeout_ms / 1000)
        self._version = self._connection.version_of(ApiKey.FETCH)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._cluster.drop(self._connection)
        self._connection, self._under_way = None, False

    def _request(self) -> FetchRequest:
        piece = self._piece
        likely = int((piece.end - self._position) * self._record_bytes * 1.1) + SMALL_FETCH_BYTES
        size = min(likely, self._bytes_max)
        row = FetchPartition(
            partition=piece.partition, fetch_offset=self._position, partition_max_bytes=size
        )
        return FetchRequest(
            max_wait_ms=self._wait_ms,
            min_bytes=1,
            max_bytes=size,
            isolation_level=int(self._scan.read_committed),
            topics=[FetchTopic(topic=piece.topic, topic_id=self._topic_id, partitions=[row])],
        )

    def _wait_at_the_end(
        self, row: PartitionData, size: int, throttled_ms: int, progress_at: float
    ) -> None:
        """An answer without a whole batch: wait, unless no record can come.

        Below what readers may see, an empty answer of a compacted log says that nothing is left
        there. Of any other it says that the records could not be had in time, as those that Kafka
        keeps in remote storage.
        """
        end = self._piece.end
        limit = row.last_stable_offset if self._scan.read_committed else row.high_watermark
        if limit >= end and size == 0:
            if throttled_ms == 0:
                self._empty_answers += 1
            if self._empty_answers >= EMPTY_ANSWERS_MAX:
                if self._is_compacted():
                    self._position = end
                    return
                time.sleep(BACKOFF_S)  # whoever answers so may not have waited
        if size:
            raise ReadError(
                f"{self._where} from offset {self._position} on: {size} bytes hold no whole batch;"
                " raise kafka.max.partition.fetch.bytes"
            )
        if (time.monotonic() - progress_at) * 1000 < self._scan.poll_timeout_ms:
            return
        if limit < end <= row.high_watermark:
            raise ReadError(
                f"{self._where} from offset {self._position} on: an open transaction keeps readers"
                f" of what is committed before offset {limit}; end it, or read to that offset"
            )
        if limit >= end and throttled_ms:  # they are there: to pass over them would be wrong
            quota = RefusedError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, None, self._where)
            raise self._failure(quota)
        why = f"the partition ends at {row.high_watermark}"
        if limit >= end:
            why += f", but the broker gives none of them within {self._scan.poll_timeout_ms} ms"
        report_loss(self._scan, self._piece, self._position, end, why)
        self._position = end

    def _is_compacted(self) -> bool:
        """Whether records may be missing. Raises ClientError where it is to be asked again."""
        if self._compacted is None:
            topic, key = self._piece.topic, "cleanup.policy"
            try:
                rows = describe_configs(self._cluster, ResourceType.TOPIC, topic, [key])
            except (RefusedError, UnsupportedError) as error:
                if isinstance(error, RefusedError) and error.code in PASSING:
                    raise
                rows = []  # who may not ask does not pass over records either
            self._compacted = any("compact" in (row.value or "") for row in rows)
        return self._compacted

    def _skip_what_is_gone(self) -> None:
        """To the first offset that is there. Raises DataLossError, ClientError."""
        piece = self._piece
        first, last = (
            list_offsets(self._cluster, piece.topic, {piece.partition: what})[piece.partition]
            for what in (EARLIEST, LATEST)
        )
        target = min(first, piece.end) if self._position < first else piece.end
        why = f"the partition has offsets {first} to {last - 1}" if last > first else "it is empty"
        report_loss(self._scan, piece, self._position, target, why)
        self._position = target

    def _is_final(self, error: ClientError, waited_s: float) -> bool:
        """Whether to give up; a topic that stays unknown is a loss, perhaps a permitted one."""
        if isinstance(error, RefusedError):
            if error.code in _UNKNOWN:
                if waited_s * 1000 < min(self._scan.poll_timeout_ms, UNKNOWN_TOPIC_S * 1000):
                    return False
                self._report_unknown(error)
                return False
            if error.code not in PASSING:
                return True
        return waited_s * 1000 >= self._scan.poll_timeout_ms

    def _report_unknown(self, error: RefusedError) -> None:
        why = "there is no such topic or partition"
        if error.code == ErrorCode.INCONSISTENT_TOPIC_ID:
            why = "the topic was deleted and made anew"
        report_loss(self._scan, self._piece, self._position, self._piece.end, why)
        self._position = self._piece.end

    def _failure(self, error: ClientError) -> ReadError:
        advice = "check kafka.bootstrap.servers and that the broker runs"
        if isinstance(error, RefusedError):
            advice = "the broker refused it"
            if error.code in PASSING:
                advice = "raise kafkaConsumer.pollTimeoutMs if the cluster needs longer"
        servers = self._scan.client.get(connections.BOOTSTRAP, "")
        return ReadError(
            f"{self._where} from offset {self._position} on cannot be read from {servers} within"
            f" kafkaConsumer.pollTimeoutMs={self._scan.poll_timeout_ms}: {error}; {advice}"
        )

    @property
    def _where(self) -> str:
        return f"{self._piece.topic}-{self._piece.partition}"


def next_offset_after(data: memoryview) -> int | None:
    """That after the last whole batch; None if there is none. Lengths are not trusted."""
    position, found, size = 0, None, len(data)
    unpack = _SPAN.unpack_from
    while position + _HEADER_BYTES <= size:
        base_offset, length, last_delta = unpack(data, position)
        position += length + _LOG_OVERHEAD
        if length < _HEADER_BYTES - _LOG_OVERHEAD or position > size:
            break
        found = base_offset + last_delta + 1
    return found
