"""Members of groups as a client library has them, without sockets and time: requests and replies.

A member says what it would send next; whoever drives it brings the reply. It does as little as a
member may: it reads nothing, and commits what it owns when it is told to.
"""

import uuid
from collections.abc import Callable
from typing import Any, Protocol

from runnel.bench.pipeline import LoadError
from runnel.client.groups import owned_of
from runnel.client.raw import Topic
from runnel.errors import ErrorCode
from runnel.wire.compiler import codec_for
from runnel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from runnel.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from runnel.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from runnel.wire.messages.heartbeat import HeartbeatRequest
from runnel.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from runnel.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from runnel.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from runnel.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

SESSION_TIMEOUT_MS = 45_000
REBALANCE_TIMEOUT_MS = 300_000
LEAVING = -1  # the epoch that says so
PROTOCOL_VERSION = 1
_PREFIX = PROTOCOL_VERSION.to_bytes(2, "big")
_REJOIN = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.MEMBER_ID_REQUIRED,
    }
)
_AGAIN = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Member(Protocol):
    """`epoch` is the generation in the classic protocol; 0 or less before the first assignment."""

    group: str
    member_id: str
    epoch: int
    owned: frozenset[int]

    def request(self) -> object:
        """What is to be sent next."""

    def on_reply(self, reply: Any) -> bool:  # noqa: ANN401  # of the request before
        """Whether the next request is due at once. Raises LoadError."""

    def leave(self) -> object:
        """The request of one who goes."""


def commit_request(member: Member, topic: Topic) -> OffsetCommitRequest:
    """Of all that it owns."""
    rows = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=member.epoch)
        for index in sorted(member.owned)
    ]
    return OffsetCommitRequest(
        group_id=member.group,
        generation_id_or_member_epoch=member.epoch,
        member_id=member.member_id,
        topics=[OffsetCommitRequestTopic(name=topic.name, partitions=rows)],
    )


class ClassicMember:
    """Joins, syncs, and then sends heartbeats; the leader deals partitions out like cards."""

    def __init__(self, group: str, topic: Topic) -> None:
        self.group = group
        self.member_id = ""
        self.epoch = 0
        self.owned: frozenset[int] = frozenset()
        self._topic = topic
        self._step: Callable[[], object] = self._join
        self._assignments: list[SyncGroupRequestAssignment] = []
        subscription = ConsumerProtocolSubscription(topics=[topic.name])
        codec = codec_for(ConsumerProtocolSubscription, PROTOCOL_VERSION)
        self._metadata = _PREFIX + codec.write(subscription)

    def request(self) -> object:
        return self._step()

    def on_reply(self, reply: Any) -> bool:  # noqa: ANN401  # see the protocol
        code = reply.error_code
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = reply.member_id
        if code in _REJOIN:
            self._step = self._join
            return True
        if code in _AGAIN:
            return False
        if code:
            raise LoadError(f"a member of {self.group}: {ErrorCode(code).name}")
        if isinstance(reply, JoinGroupResponse):
            self._on_joined(reply)
            return True
        if isinstance(reply, SyncGroupResponse):
            self.owned = frozenset(owned_of(reply.assignment).get(self._topic.name, ()))
            self._step = self._heartbeat
        return False

    def leave(self) -> object:
        return LeaveGroupRequest(
            group_id=self.group, members=[MemberIdentity(member_id=self.member_id)]
        )

    def _join(self) -> object:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="cards", metadata=self._metadata)],
        )

    def _on_joined(self, reply: JoinGroupResponse) -> None:
        self.member_id, self.epoch = reply.member_id, reply.generation_id
        ids = sorted(row.member_id for row in reply.members)  # empty but for the leader
        self._assignments = [
            SyncGroupRequestAssignment(
                member_id=name,
                assignment=_dealt(self._topic, range(at, self._topic.partition_count, len(ids))),
            )
            for at, name in enumerate(ids)
        ]
        self._step = self._sync

    def _sync(self) -> object:
        return SyncGroupRequest(
            group_id=self.group,
            generation_id=self.epoch,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="cards",
            assignments=self._assignments,
        )

    def _heartbeat(self) -> object:
        return HeartbeatRequest(
            group_id=self.group, generation_id=self.epoch, member_id=self.member_id
        )


class ConsumerMember:
    """Of KIP-848: one kind of request, which says what has changed and nothing else."""

    def __init__(self, group: str, topic: Topic) -> None:
        self.group = group
        self.member_id = str(uuid.uuid4())
        self.epoch = 0
        self.owned: frozenset[int] = frozenset()
        self._topic = topic
        self._tells_owned = True

    def request(self) -> object:
        request = self._request(self.epoch)
        if self.epoch == 0:
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
            request.subscribed_topic_names = [self._topic.name]
        if self._tells_owned:
            mine = ConsumerGroupHeartbeatRequestTopicPartitions(
                topic_id=self._topic.topic_id, partitions=sorted(self.owned)
            )
            request.topic_partitions = [mine] if self.owned else []
        return request

    def on_reply(self, reply: Any) -> bool:  # noqa: ANN401  # see the protocol
        if reply.error_code in _AGAIN:
            return False
        if reply.error_code:
            name = ErrorCode(reply.error_code).name
            raise LoadError(f"a member of {self.group}: {name} {reply.error_message}")
        self.epoch = reply.member_epoch
        self._tells_owned = reply.assignment is not None
        if reply.assignment is not None:
            rows = reply.assignment.topic_partitions
            self.owned = frozenset(index for row in rows for index in row.partitions)
        return self._tells_owned

    def leave(self) -> object:
        return self._request(LEAVING)

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=epoch,
            topic_partitions=None,
        )


def _dealt(topic: Topic, indexes: range) -> bytes:
    rows = [TopicPartition(topic=topic.name, partitions=list(indexes))]
    codec = codec_for(ConsumerProtocolAssignment, PROTOCOL_VERSION)
    return _PREFIX + codec.write(ConsumerProtocolAssignment(assigned_partitions=rows))
