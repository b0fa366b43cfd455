"""The consumer group protocol on a shard: who gets what, when, and who is sent away."""

from typing import Any

import pytest

from runnel.config.coordination import GroupSettings
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from tests.support.consumer_members import Member, beat, group_of, settle
from tests.support.shards import GroupStage


@pytest.fixture
def stage() -> GroupStage:
    stage = GroupStage()
    stage.topics.set(t=6, u=4)
    return stage


def refusal(stage: GroupStage, **fields: Any) -> tuple[ErrorCode, str]:  # noqa: ANN401
    before = len(stage.journal.records)
    with pytest.raises(RunnelError) as raised:
        beat(stage, **fields)
    assert len(stage.journal.records) == before, "who is refused changes nothing"
    return raised.value.code, str(raised.value)


JOIN: dict[str, Any] = {
    "member_id": "a",
    "member_epoch": 0,
    "rebalance_timeout_ms": 1000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"instance_id": " "}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"topic_partitions": [ConsumerGroupHeartbeatRequestTopicPartitions(partitions=[1])]},
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_what_makes_no_sense_is_refused(
    stage: GroupStage, fields: dict[str, Any], why: str
) -> None:
    assert refusal(stage, **{**JOIN, **fields}) == (ErrorCode.INVALID_REQUEST, why)


def test_an_assignor_must_be_one_of_the_brokers(stage: GroupStage) -> None:
    code, why = refusal(stage, **{**JOIN, "server_assignor": "best"})
    assert code is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert why == "ServerAssignor best is not supported. Supported assignors: uniform, range."


def test_a_group_may_be_full() -> None:
    stage = GroupStage(GroupSettings(group_consumer_max_size=1))
    stage.topics.set(t=2)
    beat(stage, **JOIN)
    assert refusal(stage, **{**JOIN, "member_id": "b"}) == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The consumer group has reached its maximum capacity of 1 members.",
    )
    assert beat(stage, **JOIN).member_epoch == 2, "who is in may join again"


def test_epochs_that_are_not_the_members(stage: GroupStage) -> None:
    a, b = Member(stage, "a"), Member(stage, "b")
    a.join()
    a.follow()
    stage.advance_ms(2_000)
    b.join()
    settle(stage, [a, b])
    assert (a.epoch, b.epoch) == (3, 3)
    code, why = refusal(stage, member_id="a", member_epoch=4)
    assert code is ErrorCode.FENCED_MEMBER_EPOCH
    assert "greater member epoch (4) than the one known by the group coordinator (3)" in why
    code, why = refusal(stage, member_id="a", member_epoch=1, topic_partitions=None)
    assert code is ErrorCode.FENCED_MEMBER_EPOCH
    assert "smaller member epoch (1)" in why
    assert refusal(stage, member_id="x", member_epoch=1) == (
        ErrorCode.UNKNOWN_MEMBER_ID,
        "Member x is not a member of group g.",
    )


def test_the_epoch_before_is_taken_while_its_answer_may_be_lost(stage: GroupStage) -> None:
    a, b = Member(stage, "a"), Member(stage, "b")
    a.join()
    a.follow()
    stage.advance_ms(2_000)
    b.join()
    a.beat()
    a.follow()
    a.beat()
    assert a.epoch == 3
    a.epoch = 2  # it did not hear of it
    assert a.beat().member_epoch == 3


def test_static_members_come_back_to_what_they_had(stage: GroupStage) -> None:
    a, b = Member(stage, "a", instance_id="i"), Member(stage, "b", instance_id="j")
    a.join()
    stage.advance_ms(2_000)
    b.join()
    settle(stage, [a, b])
    had, epoch = a.owned, group_of(stage).epoch
    again = Member(stage, "a2", instance_id="i")
    code, why = refusal(stage, **{**JOIN, "member_id": "a2", "instance_id": "i"})
    assert code is ErrorCode.UNRELEASED_INSTANCE_ID
    assert why == (
        "Static member a2 with instance id i cannot join the group because the instance id is "
        "owned by a member."
    )
    a.leave(epoch=-2)
    assert group_of(stage).members["a"].epoch == -2
    stage.restart()
    again.join()
    assert again.told == had
    assert group_of(stage).epoch == epoch, "nobody else noticed"
    code, why = refusal(stage, member_id="a", member_epoch=epoch, instance_id="i")
    assert code is ErrorCode.FENCED_INSTANCE_ID
    assert why == "Static member a with instance id i was fenced by member a2."
    assert refusal(stage, member_id="z", member_epoch=1, instance_id="z") == (
        ErrorCode.UNKNOWN_MEMBER_ID,
        "Instance id z is unknown.",
    )


def test_a_static_member_that_stays_away_loses_its_partitions(stage: GroupStage) -> None:
    a, b = Member(stage, "a", instance_id="i"), Member(stage, "b")
    a.join()
    stage.advance_ms(2_000)
    b.join()
    settle(stage, [a, b])
    a.leave(epoch=-2)
    for _ in range(25):
        settle(stage, [b], rounds=1)
    assert set(group_of(stage).members) == {"b"}
    assert len(b.owned) == 6


def test_who_does_not_revoke_in_time_is_fenced(stage: GroupStage) -> None:
    a, b = Member(stage, "a"), Member(stage, "b")
    a.join()
    a.follow()
    stage.advance_ms(2_000)
    b.join()
    for _ in range(14):
        a.beat()  # it is alive, but keeps what it has
        settle(stage, [b], rounds=1)
        assert not b.owned
    settle(stage, [b], rounds=4)
    assert set(group_of(stage).members) == {"b"}
    assert len(b.owned) == 6
    assert refusal(stage, member_id="a", member_epoch=1)[0] is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("restarts", [False, True])
def test_a_silent_member_is_gone_after_its_session(stage: GroupStage, restarts: bool) -> None:
    Member(stage, "a").join()
    stage.advance_ms(44_000)
    if restarts:
        stage.restart()  # it gets a whole session anew
        stage.advance_ms(44_000)
    assert "a" in group_of(stage).members
    stage.advance_ms(2_000)
    assert group_of(stage).state_name == "Empty"


def test_a_fencing_that_is_not_written_is_tried_again(stage: GroupStage) -> None:
    Member(stage, "a").join()
    stage.journal.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    stage.advance_ms(60_000)
    assert "a" in group_of(stage).members
    stage.journal.refusal = None
    stage.advance_ms(2_000)
    assert not group_of(stage).members


def test_nothing_changes_if_the_journal_refuses(stage: GroupStage) -> None:
    a = Member(stage, "a")
    stage.journal.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(RunnelError) as raised:
        a.join()
    assert raised.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not stage.machine.groups
    stage.journal.refusal = None
    assert a.join().member_epoch == 2


def test_topics_that_appear_grow_and_vanish_are_assigned(stage: GroupStage) -> None:
    stage.topics.set(other=1)
    a = Member(stage, "a", ["t", "u"])
    a.join()
    assert (a.told, a.epoch) == (set(), 2)
    stage.topics.set(t=2)
    settle(stage, [a], rounds=2)
    assert (len(a.owned), a.epoch) == (2, 3)
    stage.topics.set(t=5)
    settle(stage, [a], rounds=2)
    assert (len(a.owned), a.epoch) == (5, 4)
    stage.topics.set(t=5, u=1)
    settle(stage, [a], rounds=2)
    assert (len(a.owned), a.epoch) == (6, 5)
    stage.topics.set(u=1)
    settle(stage, [a], rounds=3)
    assert (len(a.owned), a.epoch) == (1, 6)
    stage.topics.set(u=1, unrelated=7)
    settle(stage, [a], rounds=2)
    assert a.epoch == 6, "what nobody subscribes to changes nothing"


def test_a_member_that_unsubscribes_gives_up_at_once(stage: GroupStage) -> None:
    a = Member(stage, "a", ["t", "u"])
    a.join()
    a.follow()
    assert len(a.owned) == 10
    told = a.beat(subscribed_topic_names=["u"])
    assert told.assignment is not None
    assert len(a.told) == 4
    a.follow()
    settle(stage, [a], rounds=3)
    assert len(a.owned) == 4
    assert group_of(stage).state_name == "Stable"


def test_assignments_are_not_computed_more_often_than_the_interval(stage: GroupStage) -> None:
    a, b = Member(stage, "a"), Member(stage, "b")
    a.join()
    stage.advance_ms(500)
    joined = b.join()
    assert (joined.member_epoch, group_of(stage).state_name) == (2, "Assigning")
    stage.advance_ms(500)
    assert b.beat().member_epoch == 3


def test_describe_tells_targets_and_current_assignments(stage: GroupStage) -> None:
    a, b = Member(stage, "a", server_assignor="range", rack_id="r"), Member(stage, "b")
    a.join()
    a.follow()
    stage.advance_ms(2_000)
    b.join()
    described = stage.machine.consumer.describe("g")
    assert (described.group_state, described.group_epoch) == ("Reconciling", 3)
    assert (described.assignor_name, described.assignment_epoch) == ("range", 3)
    first, second = described.members
    assert first.target_assignment.topic_partitions[0].partitions == [0, 1, 2]
    assert first.assignment.topic_partitions[0].partitions == [0, 1, 2, 3, 4, 5]
    assert second.assignment.topic_partitions == []
    assert second.target_assignment.topic_partitions[0].topic_name == "t"
    assert (first.rack_id, first.member_type) == ("r", 1)
    with pytest.raises(RunnelError) as raised:
        stage.machine.consumer.describe("none")
    assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_begins_at_its_first_epoch_with_nothing_to_compute(stage: GroupStage) -> None:
    """As Kafka 4.3: without topics nothing but the member is written; the first topics begin the
    second epoch, and the interval between assignments does not delay it."""
    a = Member(stage, "a", topics=())
    assert a.join().member_epoch == 1
    assert (group_of(stage).epoch, group_of(stage).target_epoch) == (1, 1)
    joined = beat(stage, member_id="a", member_epoch=1, subscribed_topic_names=["t"])
    assert joined.member_epoch == 2
    assert joined.assignment is not None
