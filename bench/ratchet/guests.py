"""Whom the broker has to know before the counted requests: members of a group, a fetch session.

A guest says what it sends until it is settled; then its rounds are made of what it knows by then.
"""

from collections.abc import Callable
from typing import Any, Protocol

from bench.members import ClassicMember, ConsumerMember, commit_request
from runnel.client.raw import Topic, encode_frame
from runnel.wire.apis import APIS
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from runnel.wire.schema import schema_of

HEARTBEAT_VERSION = 4
CONSUMER_HEARTBEAT_VERSION = 1
COMMIT_VERSION = 9  # by the topic's name
FETCH_VERSION = 18
IDLE_WAIT_MS = 8  # longer than a round takes under callgrind: the broker has to sleep for it
MAX_BYTES = 50 << 20
PARTITION_MAX_BYTES = 1 << 20


class Guest(Protocol):
    """As `bench.members.Member`, of which the script needs no more than this."""

    def request(self) -> object:
        """What is to be sent next."""

    def on_reply(self, reply: Any) -> bool:  # noqa: ANN401  # of the request before
        """Whether something more is to be sent before it is settled."""


class IdleConsumer:
    """Waits for records of partitions that get none, in a session that it opens first."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._session_id = 0

    def request(self) -> object:
        rows = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=PARTITION_MAX_BYTES)
            for index in range(self._topic.partition_count)
        ]
        topic = FetchTopic(topic=self._topic.name, topic_id=self._topic.topic_id, partitions=rows)
        return self._fetch(0, [topic])

    def on_reply(self, reply: Any) -> bool:  # noqa: ANN401  # see the protocol
        assert reply.session_id, reply
        self._session_id = reply.session_id
        return False

    def idle(self, count: int) -> list[bytes]:
        return [
            encode_frame(self._fetch(epoch, []), FETCH_VERSION) for epoch in range(1, count + 1)
        ]

    def _fetch(self, epoch: int, topics: list[FetchTopic]) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=IDLE_WAIT_MS,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            session_id=self._session_id,
            session_epoch=epoch,
            topics=topics,
        )


class Committing(ClassicMember):
    """Sends what its group has read, and no heartbeats: a commit is a sign of life as well."""

    def commit(self) -> bytes:
        return encode_frame(commit_request(self, self._topic), COMMIT_VERSION)


def classic(topic: Topic) -> ClassicMember:
    return ClassicMember("classic", topic)


def committing(topic: Topic) -> Committing:
    return Committing("committing", topic)


def consumer(topic: Topic) -> ConsumerMember:
    member = ConsumerMember("consumer", topic)
    member.member_id = "00000000-0000-0000-0000-000000000001"  # the same in every run
    return member


def newest(request: object) -> bytes:
    """The frame in the newest version, for what is not counted."""
    key = schema_of(type(request)).api_key
    assert key is not None, request
    return encode_frame(request, APIS[key].versions[-1])


NewGuest = Callable[[Topic], Guest]
