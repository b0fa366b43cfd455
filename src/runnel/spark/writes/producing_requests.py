"""Produce requests that are sent now and answered later, so that encoding goes on meanwhile."""

from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from runnel.client.cluster import ClientError, Cluster, UnreachableError
from runnel.client.raw import ClosedError, WireClient, decode_reply
from runnel.errors import WireError
from runnel.spark.writes.transactional import IMPLICIT_SINCE, Producer
from runnel.wire.apis import ApiKey
from runnel.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

REQUEST_TIMEOUT_MS: Final = 30_000
NAMES_UNTIL: Final = 12  # from the next version on topics have ids


class Topic(Protocol):
    name: str
    topic_id: bytes


class Sendable(Protocol):
    @property
    def target(self) -> Topic: ...
    @property
    def partition(self) -> int: ...
    @property
    def data(self) -> bytearray: ...


_Batch = TypeVar("_Batch", bound=Sendable)


class Sent(Generic[_Batch]):
    """One request; `answers` waits for the response. A failure to send is told by it, too."""

    def __init__(self, batches: Sequence[_Batch]) -> None:
        self.batches = batches
        self.failure: ClientError | None = None
        self._cluster: Cluster | None = None
        self._connection: WireClient | None = None
        self._version = 0

    def begin(self, cluster: Cluster, node_id: int, request: ProduceRequest, newest: int) -> None:
        try:
            connection = cluster.connection(node_id)
            self._version = min(connection.version_of(ApiKey.PRODUCE), newest)
        except UnreachableError as error:
            self.failure = error
            return
        self._cluster, self._connection = cluster, connection
        try:
            connection.send(request, self._version, 0)
        except OSError as error:
            cluster.drop(connection)
            self.failure = UnreachableError(str(error))

    def answers(self) -> list[PartitionProduceResponse]:
        """In the order of the batches. Raises ClientError."""
        if self.failure is not None:
            raise self.failure
        assert self._connection is not None and self._cluster is not None
        try:
            frame = self._connection.receive_frame()
            _, response = decode_reply(ApiKey.PRODUCE, self._version, frame)
        except (OSError, ClosedError, WireError) as error:
            self._cluster.drop(self._connection)
            raise UnreachableError(str(error) or "no answer in time") from None
        found = {
            (topic.topic_id if self._version > NAMES_UNTIL else topic.name, row.index): row
            for topic in response.responses
            for row in topic.partition_responses
        }
        return [
            found[
                batch.target.topic_id if self._version > NAMES_UNTIL else batch.target.name,
                batch.partition,
            ]
            for batch in self.batches
        ]


def begin_produce(
    cluster: Cluster, node_id: int, batches: Sequence[_Batch], producer: Producer, acks: int
) -> Sent[_Batch]:
    topics: dict[str, TopicProduceData] = {}
    for batch in batches:
        name = batch.target.name
        if name not in topics:
            topics[name] = TopicProduceData(name=name, topic_id=batch.target.topic_id)
        row = PartitionProduceData(index=batch.partition, records=batch.data)
        topics[name].partition_data.append(row)
    request = ProduceRequest(
        transactional_id=producer.transactional_id,
        acks=acks,
        timeout_ms=REQUEST_TIMEOUT_MS,
        topic_data=list(topics.values()),
    )
    sent = Sent(batches)
    newest = 0x7FFF
    if producer.transactional_id is not None and not producer.implicit:
        newest = IMPLICIT_SINCE - 1
    sent.begin(cluster, node_id, request, newest)
    return sent
