"""Reading the partitions of one topic, for tools: blocking, without a group.

Records of transactions that were aborted or are still open are among what is read, as by a
consumer with `isolation.level=read_uncommitted`, unless only what is committed is asked for; the
markers that end transactions never are.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from runnel.client.aborted import Aborted
from runnel.client.admin import EARLIEST, LATEST, list_offsets
from runnel.client.cluster import (
    BACKOFF_S,
    PASSING,
    ClientError,
    Cluster,
    RefusedError,
    UnreachableError,
)
from runnel.errors import ErrorCode, RunnelError
from runnel.native.columns import Record
from runnel.native.records import MAX_OFFSET, decode
from runnel.types import FileSlice
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData

FETCH_BYTES: Final = 16 << 20
PARTITION_BYTES: Final = 4 << 20
DECODED_RECORDS_MAX: Final = 10_000
DECODED_BYTES_MAX: Final = 32 << 20
MAX_WAIT_MS: Final = 500
READ_UNCOMMITTED, READ_COMMITTED = 0, 1  # isolation levels


class Found(NamedTuple):
    partition: int
    record: Record


class Reader:
    """Goes through the partitions from `starts` up to `ends`; without ends it follows them."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        starts: Mapping[int, int],
        ends: Mapping[int, int] | None = None,
        *,
        committed: bool = False,
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._ends = ends
        self._isolation_level = READ_COMMITTED if committed else READ_UNCOMMITTED
        self._positions = dict(starts)
        self._next = {
            partition: offset
            for partition, offset in starts.items()
            if ends is None or offset < ends[partition]
        }

    @property
    def next_offsets(self) -> dict[int, int]:
        """Of the partitions that are not read to their end."""
        return dict(self._next)

    @property
    def positions(self) -> dict[int, int]:
        """Where each partition would be read on, after the pages that were taken."""
        return dict(self._positions)

    def pages(self) -> Iterator[list[Found]]:
        """Records in the order of each partition; an empty page if none came for a moment.

        Raises ClientError, also if the cluster stays without an answer for its time-out.
        """
        failed_since: float | None = None
        leaders = self._cluster.leaders(self._topic, self._next)
        topic = self._cluster.topic(self._topic)
        while self._next:
            failure: ClientError | None = None
            nodes = sorted({leaders[at] for at in self._next})
            for node_id in nodes:
                here = [at for at in self._next if leaders[at] == node_id]
                try:
                    rows = self._fetch(node_id, topic.topic_id, here, MAX_WAIT_MS // len(nodes))
                except UnreachableError as error:
                    failure = error
                    continue
                for row in rows:
                    failure = self._failure(row) or failure
                    if not row.error_code:
                        yield from self._records(row)
            if failure is None:
                failed_since = None
                yield []
                continue
            failed_since = failed_since or time.monotonic()
            if time.monotonic() - failed_since > self._cluster.timeout_s:
                raise failure
            self._cluster.wait(failure, failed_since, BACKOFF_S)
            leaders = self._cluster.leaders(self._topic, self._next, reconnect=True)
            topic = self._cluster.topic(self._topic)

    def _fetch(
        self, node_id: int, topic_id: bytes, partitions: list[int], max_wait_ms: int
    ) -> list[PartitionData]:
        rows = [
            FetchPartition(
                partition=at,
                fetch_offset=self._next[at],
                partition_max_bytes=PARTITION_BYTES,
            )
            for at in partitions
        ]
        # The first partition gets the bytes first: begin with another one the next time.
        first = partitions[0]
        self._next[first] = self._next.pop(first)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=self._isolation_level,
            topics=[FetchTopic(topic=self._topic, topic_id=topic_id, partitions=rows)],
        )
        response = self._cluster.call(request, node_id=node_id)
        if response.error_code:
            raise RefusedError(response.error_code, None, f"topic {self._topic}")
        return [row for answer in response.responses for row in answer.partitions]

    def _records(self, row: PartitionData) -> Iterator[list[Found]]:
        """What was fetched of one partition, in pages of a bounded size."""
        partition, data, position = row.partition_index, row.records or b"", 0
        end = MAX_OFFSET if self._ends is None else self._ends[partition]
        assert not isinstance(data, FileSlice), "only a broker has slices"
        aborted = Aborted(row.aborted_transactions)
        while partition in self._next:
            offset = self._next[partition]
            try:
                columns = decode(
                    data,
                    position=position,
                    from_offset=offset,
                    up_to_offset=end,
                    max_records=DECODED_RECORDS_MAX,
                    max_bytes=DECODED_BYTES_MAX,
                )
            except RunnelError as error:
                where = f"{self._topic}-{partition}"
                raise RefusedError(error.code, str(error), where) from None
            if columns.next_offset == offset:
                break
            position, self._next[partition] = columns.position, columns.next_offset
            self._positions[partition] = min(columns.next_offset, end)
            if columns.next_offset >= end:
                del self._next[partition]
            page = [Found(partition, record) for record in aborted.visible(columns)]
            if page:
                yield page

    def _failure(self, row: PartitionData) -> RefusedError | None:
        """What is likely to pass; raises what is not."""
        if not row.error_code:
            return None
        at, message = row.partition_index, None
        if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:  # the answer itself tells no range
            start, end = (
                list_offsets(self._cluster, self._topic, {at: edge})[at]
                for edge in (EARLIEST, LATEST)
            )
            message = (
                f"partition {at} of {self._topic} has no offset {self._next[at]}; it has {start} to"
                f" {end}"
            )
        error = RefusedError(row.error_code, message, f"{self._topic}-{at}")
        if error.code not in PASSING:
            raise error
        return error
