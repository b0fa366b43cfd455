"""Members of the benchmark's crowds: what they send after which reply."""

import pytest

from bench.crowd import is_settled
from bench.members import ClassicMember, ConsumerMember, commit_request
from runnel.bench.pipeline import LoadError
from runnel.client.raw import Topic
from runnel.errors import ErrorCode
from runnel.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from runnel.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from runnel.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from runnel.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

TOPIC = Topic("orders", b"\1" * 16, 5)


def joined(member: ClassicMember, generation: int, *others: str) -> SyncGroupRequest:
    members = [JoinGroupResponseMember(member_id=name) for name in ("me", *others) if others]
    reply = JoinGroupResponse(member_id="me", generation_id=generation, members=members)
    assert member.on_reply(reply)
    request = member.request()
    assert isinstance(request, SyncGroupRequest)
    return request


def test_a_classic_member_joins_syncs_and_stays_until_it_is_told() -> None:
    member = ClassicMember("g", TOPIC)
    assert isinstance(member.request(), JoinGroupRequest)
    code = ErrorCode.MEMBER_ID_REQUIRED
    assert member.on_reply(JoinGroupResponse(error_code=code, member_id="me"))
    request = member.request()
    assert isinstance(request, JoinGroupRequest) and request.member_id == "me"

    sync = joined(member, 1, "you")
    dealt = {row.member_id: row.assignment for row in sync.assignments}
    assert set(dealt) == {"me", "you"}
    assert not member.on_reply(SyncGroupResponse(assignment=dealt["me"]))
    assert member.owned == {0, 2, 4} and member.epoch == 1
    assert isinstance(member.request(), HeartbeatRequest)
    assert not member.on_reply(HeartbeatResponse())

    assert member.on_reply(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert isinstance(member.request(), JoinGroupRequest)
    assert joined(member, 2).assignments == []  # another one leads now


def test_a_consumer_tells_what_it_owns_when_that_has_changed() -> None:
    member = ConsumerMember("g", TOPIC)
    first = member.request()
    assert isinstance(first, ConsumerGroupHeartbeatRequest)
    assert (first.subscribed_topic_names, first.topic_partitions) == (["orders"], [])
    rows = [
        ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=TOPIC.topic_id, partitions=[1, 3])
    ]
    reply = ConsumerGroupHeartbeatResponse(
        member_epoch=4, assignment=Assignment(topic_partitions=rows)
    )
    assert member.on_reply(reply)
    told = member.request()
    assert isinstance(told, ConsumerGroupHeartbeatRequest)
    assert told.subscribed_topic_names is None and told.topic_partitions is not None
    assert [row.partitions for row in told.topic_partitions] == [[1, 3]]
    assert not member.on_reply(ConsumerGroupHeartbeatResponse(member_epoch=4, assignment=None))
    quiet = member.request()
    assert isinstance(quiet, ConsumerGroupHeartbeatRequest) and quiet.topic_partitions is None
    (topic,) = commit_request(member, TOPIC).topics
    assert [row.partition_index for row in topic.partitions] == [1, 3]


@pytest.mark.parametrize("kind", [ClassicMember, ConsumerMember])
def test_what_a_member_cannot_mend_ends_the_load(
    kind: type[ClassicMember] | type[ConsumerMember],
) -> None:
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    reply = HeartbeatResponse if kind is ClassicMember else ConsumerGroupHeartbeatResponse
    with pytest.raises(LoadError, match="GROUP_AUTHORIZATION_FAILED"):
        kind("g", TOPIC).on_reply(reply(error_code=code))


def test_settled_means_one_epoch_and_one_owner_for_each_partition() -> None:
    first, second = ClassicMember("g", TOPIC), ClassicMember("g", TOPIC)
    first.epoch = second.epoch = 2
    first.owned, second.owned = frozenset({0, 1, 2}), frozenset({3, 4})
    assert is_settled([first, second], 5)
    second.owned = frozenset({2, 3})
    assert not is_settled([first, second], 5)  # one twice, one not at all
    second.owned = frozenset({3, 4})
    second.epoch = 1
    assert not is_settled([first, second], 5)
