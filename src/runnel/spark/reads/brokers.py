"""What the driver asks of a cluster: topics, and offsets of many partitions in one round.

A round of ListOffsets is one request to each broker that leads any of the partitions, however many
there are. A broker that is away is waited for as long as `kafka.default.api.timeout.ms`: an
exception in a driver's call would end the query, and Spark does not try again by itself. Unless
that is set, the first contact waits less, as then the address is likely to be wrong.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeVar

from runnel.arrow.errors import GoneError, OptionError, SourceError, UnansweredError
from runnel.client.admin import CONSUMER, EARLIEST, LATEST
from runnel.client.cluster import (
    ClientError,
    Cluster,
    RefusedError,
    UnreachableError,
    addresses_of,
)
from runnel.errors import ErrorCode
from runnel.spark.reads.assignment import TopicFound
from runnel.spark.reads.offsets import OffsetMap
from runnel.storage.checkpoints import encode_id
from runnel.types import NO_TOPIC_ID, TopicPartition
from runnel.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from runnel.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from runnel.wire.messages.metadata import MetadataResponseTopic

CLIENT_ID: Final = "runnel-spark"
API_TIMEOUT: Final = "default.api.timeout.ms"
API_TIMEOUT_MS: Final = 60_000
FIRST_CONTACT_S: Final = 10.0
_GONE: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_Result = TypeVar("_Result")


class Brokers:
    """One per reader on the driver; connects when it is first asked."""

    def __init__(self, client: Mapping[str, str], *, read_committed: bool) -> None:
        self._bootstrap = client["bootstrap.servers"]
        self._timeout_s = api_timeout_s(client)
        self._committed = read_committed
        self._cluster = Cluster(
            addresses_of(self._bootstrap),
            client_id=client.get("client.id") or CLIENT_ID,
            timeout_s=self._timeout_s if API_TIMEOUT in client else FIRST_CONTACT_S,
        )
        self._leaders: dict[TopicPartition, int] = {}

    def topics(self, names: Collection[str] | None) -> list[TopicFound]:
        """One request. Topics that are not there are left out. Raises SourceError."""
        rows = self._asked(lambda: self._topics(names))
        self._cluster.timeout_s = self._timeout_s
        return [
            TopicFound(
                row.name or "",
                "" if row.topic_id == NO_TOPIC_ID else encode_id(row.topic_id),
                [partition.partition_index for partition in row.partitions],
                row.is_internal,
            )
            for row in rows
        ]

    def earliest(self, partitions: Collection[TopicPartition]) -> OffsetMap:
        return self._list_offsets(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Collection[TopicPartition]) -> OffsetMap:
        return self._list_offsets(dict.fromkeys(partitions, LATEST))

    def at_timestamps(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        # Times before 1970 are other questions to a broker; no record is that old.
        asked = {at: ms if ms >= 0 else EARLIEST for at, ms in timestamps_ms.items()}
        found = self._list_offsets(asked)
        return {at: offset if offset >= 0 else None for at, offset in found.items()}

    def bytes_of(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Asks each leader once. Raises SourceError, above all where it may not be asked."""
        return self._asked(lambda: self._bytes_of(partitions)) if partitions else {}

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    def close(self) -> None:
        self._cluster.close()

    def _asked(self, attempt: Callable[[], _Result]) -> _Result:
        try:
            return self._cluster.retried(attempt, reconnect=True)
        except UnreachableError as error:
            raise UnansweredError(
                f"kafka.bootstrap.servers={self._bootstrap}: no broker answers within"
                f" {self._cluster.timeout_s:g} s: {error}; start one, or correct the option"
            ) from None
        except ClientError as error:
            is_gone = isinstance(error, RefusedError) and error.code in _GONE
            kind = GoneError if is_gone else SourceError
            raise kind(f"kafka.bootstrap.servers={self._bootstrap}: {error}") from None

    def _topics(self, names: Collection[str] | None) -> list[MetadataResponseTopic]:
        rows = [
            row
            for row in self._cluster.metadata(names).topics
            if row.error_code not in _GONE and row.name is not None
        ]
        for row in rows:
            if row.error_code:
                raise RefusedError(row.error_code, None, f"topic {row.name}")
            for partition in row.partitions:
                at = TopicPartition(row.name or "", partition.partition_index)
                self._leaders[at] = partition.leader_id
        return rows

    def _list_offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return self._asked(lambda: self._listed(wanted)) if wanted else {}

    def _listed(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        try:
            for node_id, here in self._by_leader(wanted).items():
                found |= self._listed_by(node_id, {at: wanted[at] for at in here})
        except ClientError:
            self._leaders.clear()  # one may have moved: look again before the next try
            raise
        return found

    def _listed_by(
        self, node_id: int, wanted: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        topics: defaultdict[str, list[ListOffsetsPartition]] = defaultdict(list)
        for at, timestamp in wanted.items():
            row = ListOffsetsPartition(partition_index=at.index, timestamp=timestamp)
            topics[at.topic].append(row)
        request = ListOffsetsRequest(
            replica_id=CONSUMER,
            isolation_level=int(self._committed),
            topics=[ListOffsetsTopic(name=name, partitions=rows) for name, rows in topics.items()],
            timeout_ms=int(self._cluster.timeout_s * 1000),
        )
        found: dict[TopicPartition, int] = {}
        for topic in self._cluster.call(request, node_id=node_id).topics:
            for answer in topic.partitions:
                if answer.error_code:
                    where = f"{topic.name}-{answer.partition_index}"
                    raise RefusedError(answer.error_code, None, where)
                found[TopicPartition(topic.name, answer.partition_index)] = answer.offset
        return found

    def _by_leader(self, partitions: Collection[TopicPartition]) -> dict[int, list[TopicPartition]]:
        if any(at not in self._leaders for at in partitions):
            self._topics(sorted({at.topic for at in partitions}))
        found: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for at in partitions:
            leader = self._leaders.get(at)
            if leader is None:
                raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, f"{at}")
            if leader < 0:
                raise RefusedError(ErrorCode.LEADER_NOT_AVAILABLE, None, f"{at} has no leader")
            found[leader].append(at)
        return found

    def _bytes_of(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for node_id, here in self._by_leader(partitions).items():
            topics: defaultdict[str, list[int]] = defaultdict(list)
            for at in here:
                topics[at.topic].append(at.index)
            request = DescribeLogDirsRequest(
                topics=[
                    DescribableLogDirTopic(topic=name, partitions=rows)
                    for name, rows in topics.items()
                ]
            )
            answer: DescribeLogDirsResponse = self._cluster.call(request, node_id=node_id)
            _check_log_dirs(answer)
            found |= {
                TopicPartition(topic.name, row.partition_index): row.partition_size
                for folder in answer.results
                for topic in folder.topics
                for row in topic.partitions
                if not row.is_future_key
            }
        return found


def _check_log_dirs(answer: DescribeLogDirsResponse) -> None:
    for code in (answer.error_code, *(folder.error_code for folder in answer.results)):
        if code:
            why = "maxBytesPerTrigger asks for the size of logs (DescribeLogDirs)"
            raise RefusedError(code, None, why)


def api_timeout_s(client: Mapping[str, str]) -> float:
    """Raises OptionError."""
    text = client.get(API_TIMEOUT, str(API_TIMEOUT_MS))
    if not text.isdecimal() or not 0 < int(text) <= 0x7FFFFFFF:
        raise OptionError(
            f"kafka.{API_TIMEOUT}={text} is not a time in milliseconds; write for example 60000"
        )
    return int(text) / 1000
