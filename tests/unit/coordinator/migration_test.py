"""From the classic protocol to the new one and back, in a group that goes on working."""

from dataclasses import replace
from typing import Any

import pytest

from runnel.config.coordination import GroupSettings
from runnel.coordinator.groups.caller import Caller
from runnel.coordinator.groups.classic_group import ClassicGroup, ClassicState
from runnel.coordinator.groups.embedded import assigned_parts, read_assignment, write_assignment
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.compiler import codec_for
from runnel.wire.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from runnel.wire.messages.heartbeat import HeartbeatRequest
from runnel.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from runnel.wire.messages.leave_group import MemberIdentity
from runnel.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.consumer_members import Member, group_of
from tests.support.shards import GroupStage, now

CALLER = Caller("old client", "/127.0.0.1", 9)
Owned = dict[str, list[int]]


@pytest.fixture
def stage() -> GroupStage:
    stage = GroupStage(GroupSettings(group_consumer_assignment_interval_ms=0))
    stage.topics.set(t=4)
    return stage


class Classic:
    """A cooperative consumer of the classic protocol: it keeps what it has while it joins."""

    def __init__(self, stage: GroupStage, instance_id: str | None = None) -> None:
        self.stage = stage
        self.instance_id = instance_id
        self.member_id = ""
        self.generation_id = -1
        self.owned: Owned = {}

    def join(self) -> Any:  # noqa: ANN401  # the answer, or what will be it
        owned = [TopicPartition(topic=t, partitions=each) for t, each in self.owned.items()]
        message = ConsumerProtocolSubscription(topics=["t"], owned_partitions=owned)
        metadata = b"\0\1" + codec_for(ConsumerProtocolSubscription, 1).write(message)
        return self.stage.machine.classic.join(
            JoinGroupRequest(
                group_id="g",
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=30_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="cooperative", metadata=metadata)],
            ),
            CALLER,
        )

    def joined(self, answer: Any) -> None:  # noqa: ANN401
        response = now(answer)
        assert response.error_code == 0, response
        self.member_id, self.generation_id = response.member_id, response.generation_id

    def join_now(self) -> None:
        answer = self.join()
        if now(answer).error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = now(answer).member_id
            answer = self.join()
        self.joined(answer)

    def sync(self, assignments: dict[str, bytes] | None = None) -> None:
        response = now(
            self.stage.machine.classic.sync(
                SyncGroupRequest(
                    group_id="g",
                    member_id=self.member_id,
                    group_instance_id=self.instance_id,
                    generation_id=self.generation_id,
                    assignments=[
                        SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                        for member_id, assignment in (assignments or {}).items()
                    ],
                )
            )
        )
        assert response.error_code == 0
        found = assigned_parts(read_assignment(response.assignment), self.stage.topics)
        self.owned = {"t": sorted(index for each in found.values() for index in each)}

    def beat(self) -> ErrorCode:
        request = HeartbeatRequest(
            group_id="g",
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            generation_id=self.generation_id,
        )
        return self.stage.machine.classic.heartbeat(request)

    @property
    def partitions(self) -> list[int]:
        return self.owned.get("t", [])


def assignment(stage: GroupStage, indexes: range) -> bytes:
    topic_id = stage.topics.id_of("t")
    assert topic_id is not None
    return write_assignment({topic_id: indexes}, 1, stage.topics)


def classic_group(stage: GroupStage, *members: Classic) -> None:
    """They join together, and the first of them gives each the same share."""
    for member in members:
        if member.instance_id is None:
            member.member_id = now(member.join()).member_id
    answers = [member.join() for member in members]
    stage.advance_ms(7_000)
    for member, answer in zip(members, answers, strict=True):
        member.joined(answer)
    share = 4 // len(members)
    assignments = {
        member.member_id: assignment(stage, range(share * place, share * (place + 1)))
        for place, member in enumerate(members)
    }
    leader = now(answers[0]).leader
    for member in sorted(members, key=lambda each: each.member_id != leader):
        member.sync(assignments if member.member_id == leader else None)


def go_on(stage: GroupStage, classic: list[Classic], consumers: list[Member]) -> None:
    """Everybody sends heartbeats and does as it is told; nobody owns what another does."""
    for _ in range(10):
        stage.advance_ms(1_000)
        for old in classic:
            if old.beat() == ErrorCode.REBALANCE_IN_PROGRESS:
                old.join_now()
                old.sync()
        for new in consumers:
            new.beat()
            new.follow()
        owned = [index for old in classic for index in old.partitions]
        owned += [index for new in consumers for _, index in new.owned]
        assert len(owned) == len(set(owned))
    assert sorted(owned) == [0, 1, 2, 3]


def test_a_classic_group_moves_over_and_back(stage: GroupStage) -> None:
    first, second = Classic(stage), Classic(stage)
    classic_group(stage, first, second)
    new = Member(stage, "new")
    new.join()
    group = group_of(stage)
    assert set(group.members) == {first.member_id, second.member_id, "new"}
    assert group.members[first.member_id].classic is not None
    assert (first.partitions, new.told) == ([0, 1], set()), "nobody has let go yet"
    go_on(stage, [first, second], [new])
    assert len(new.owned) == 1
    described = stage.machine.consumer.describe("g")
    assert sorted(member.member_type for member in described.members) == [0, 0, 1]
    stage.restart()
    go_on(stage, [first, second], [new])
    new.leave()
    classic = stage.machine.groups["g"]
    assert isinstance(classic, ClassicGroup)
    assert classic.state is ClassicState.PREPARING_REBALANCE
    assert first.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    answers = [first.join(), second.join()]
    for member, answer in zip((first, second), answers, strict=True):
        member.joined(answer)
    leader = first if now(answers[0]).leader == first.member_id else second
    leader.sync({first.member_id: assignment(stage, range(4))})
    assert isinstance(stage.machine.groups["g"], ClassicGroup)
    stage.restart()
    assert isinstance(stage.machine.groups["g"], ClassicGroup)


def test_the_last_classic_member_leaves_a_consumer_group_behind(stage: GroupStage) -> None:
    old, new = Classic(stage), Member(stage, "new")
    classic_group(stage, old)
    new.join()
    go_on(stage, [old], [new])
    identity = MemberIdentity(member_id=old.member_id)
    answers = stage.machine.classic.leave("g", [identity, MemberIdentity(member_id="x")])
    codes = [answer.error_code for answer in answers]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    go_on(stage, [], [new])


def test_members_that_wait_in_a_classic_group_are_told_to_join_anew(stage: GroupStage) -> None:
    old, waiting = Classic(stage), Classic(stage)
    classic_group(stage, old)
    waiting.member_id = now(waiting.join()).member_id
    answer = waiting.join()  # begins a rebalance, and waits for the other
    new = Member(stage, "new")
    new.join()
    assert now(answer).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    waiting.join_now()
    waiting.sync()
    go_on(stage, [old, waiting], [new])


def test_a_classic_member_that_is_silent_or_does_not_join_is_fenced(stage: GroupStage) -> None:
    old, new = Classic(stage), Member(stage, "new")
    classic_group(stage, old)
    new.join()
    for _ in range(20):  # it is alive, but ignores what it is told
        stage.advance_ms(2_000)
        new.beat()
        new.follow()
        if old.member_id in group_of(stage).members:
            old.beat()
    assert set(group_of(stage).members) == {"new"}
    go_on(stage, [], [new])


def test_a_static_member_changes_its_protocol_and_keeps_its_partitions(stage: GroupStage) -> None:
    old, other = Classic(stage, "one"), Classic(stage, "two")
    classic_group(stage, old, other)
    new = Member(stage, "new", instance_id="one")
    new.join()
    assert len(group_of(stage).members) == 2
    assert new.told == {(b"---------------t", index) for index in old.partitions}
    go_on(stage, [other], [new])
    again = Classic(stage, "one")
    again.join_now()
    assert isinstance(stage.machine.groups["g"], ClassicGroup), "nobody speaks the new one now"


def test_who_is_not_a_classic_member_is_told_so(stage: GroupStage) -> None:
    old, new = Classic(stage), Member(stage, "new")
    classic_group(stage, old)
    new.join()
    stray = Classic(stage)
    stray.member_id, stray.generation_id = "new", 2
    for attempt in (stray.beat, stray.sync):
        with pytest.raises(RunnelError) as raised:
            attempt()
        assert raised.value.code is ErrorCode.UNKNOWN_MEMBER_ID
    old.generation_id += 5
    with pytest.raises(RunnelError) as raised:
        old.beat()
    assert raised.value.code is ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("policy", "goes_up", "goes_down"),
    [
        ("disabled", False, False),
        ("UPGRADE", True, False),
        ("downgrade", False, True),
        ("bidirectional", True, True),
    ],
)
def test_the_policy_decides(stage: GroupStage, policy: str, goes_up: bool, goes_down: bool) -> None:
    old, new = Classic(stage), Member(stage, "new")
    classic_group(stage, old)
    stage.settings = replace(stage.settings, group_consumer_migration_policy=policy)
    if goes_up:
        new.join()
    else:
        with pytest.raises(RunnelError) as raised:
            new.join()
        assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND
        assert str(raised.value) == (
            "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
        )
        assert isinstance(stage.machine.groups["g"], ClassicGroup)
        stage.settings = replace(stage.settings, group_consumer_migration_policy="upgrade")
        new.join()
        stage.settings = replace(stage.settings, group_consumer_migration_policy=policy)
    refused = now(Classic(stage).join()).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert refused == (policy == "disabled")
    new.leave()
    assert isinstance(stage.machine.groups["g"], ClassicGroup) == goes_down


def test_what_two_members_were_given_has_one_owner(stage: GroupStage) -> None:
    """Their leader made a mistake; the group that it becomes must not repeat it."""
    first, second = Classic(stage), Classic(stage)
    classic_group(stage, first, second)
    members = stage.machine.groups["g"]
    assert isinstance(members, ClassicGroup)
    members.members[second.member_id].assignment = assignment(stage, range(4))
    Member(stage, "new").join()
    owned = [
        index
        for member in group_of(stage).members.values()
        for epochs in member.assigned.values()
        for index in epochs
    ]
    assert sorted(owned) == [0, 1, 2, 3]


def test_a_classic_member_is_not_sent_round_while_the_next_target_is_not_due() -> None:
    stage = GroupStage(GroupSettings(group_consumer_assignment_interval_ms=60_000))
    stage.topics.set(t=4)
    old, new, late = Classic(stage), Member(stage, "new"), Member(stage, "late")
    classic_group(stage, old)
    new.join()
    assert old.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    old.join_now()
    old.sync()
    old.join_now()
    old.sync()
    late.join()
    assert group_of(stage).epoch > group_of(stage).target_epoch
    assert old.beat() == ErrorCode.NONE


def test_words_that_cannot_be_read_are_no_reason_to_fall_over(stage: GroupStage) -> None:
    old = Classic(stage)
    old.member_id = now(old.join()).member_id
    answer = old.join()
    stage.advance_ms(4_000)
    old.joined(answer)
    with pytest.raises(Exception):  # noqa: B017  # the member itself cannot read it either
        old.sync({old.member_id: b"\0\1\0\0\0\7"})
    with pytest.raises(RunnelError) as raised:
        Member(stage, "new").join()
    assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(stage.machine.groups["g"], ClassicGroup)


def test_an_administrator_removes_members_of_the_new_protocol(stage: GroupStage) -> None:
    """As Kafka 4.3 answers: each by what it was called in the request."""
    for member in (Member(stage, "moving"), Member(stage, "staying", instance_id="cell")):
        member.join()
    asked = [
        MemberIdentity(member_id="", group_instance_id="elsewhere"),
        MemberIdentity(member_id="moving", group_instance_id="cell"),
        MemberIdentity(member_id="moving"),
        MemberIdentity(member_id="", group_instance_id="cell"),
    ]
    answers = stage.machine.classic.leave("g", asked)
    assert [(each.member_id, each.group_instance_id) for each in answers] == [
        (each.member_id, each.group_instance_id) for each in asked
    ]
    assert [each.error_code for each in answers] == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]
    assert not group_of(stage).members
