"""A group changes its protocol while it lives, member by member, up and down again."""

from dataclasses import replace

import pytest

from runnel.config.coordination import GroupSettings
from runnel.coordinator.groups.classic_group import ClassicGroup
from runnel.coordinator.groups.consumer_group import ConsumerGroup
from runnel.coordinator.groups.embedded import assigned_parts, read_assignment, write_assignment
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.compiler import codec_for
from runnel.wire.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from runnel.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.support.classic_members import JOIN_DELAY_MS, REBALANCE_MS, SESSION_MS, Members
from tests.support.consumer_members import Member, group_of
from tests.support.shards import GroupStage, now, waits

PARTITIONS = 6
ALL = set(range(PARTITIONS))


class Consumer:
    """A consumer of the classic protocol that keeps what it owns while it joins (cooperative)."""

    def __init__(
        self, stage: GroupStage, instance_id: str | None = None, assignor: str = "coop"
    ) -> None:
        self.stage = stage
        self.assignor = assignor
        self.members = Members(stage)
        self.instance_id = instance_id
        self.member_id = ""
        self.generation_id = -1
        self.owned: set[int] = set()

    def ask(self) -> object:
        """To join: the answer, or what will be it."""
        owned = [TopicPartition(topic="t", partitions=sorted(self.owned))] if self.owned else []
        said = ConsumerProtocolSubscription(topics=["t"], owned_partitions=owned)
        metadata = b"\0\1" + codec_for(ConsumerProtocolSubscription, 1).write(said)
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=self.assignor, metadata=metadata)],
        )
        answer = self.members.ask_to_join(request)
        if not waits(answer) and now(answer).error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = now(answer).member_id
            return self.ask()
        return answer

    def joined(self, answer: object) -> None:
        said = now(answer)
        assert said.error_code == 0, ErrorCode(said.error_code)
        self.member_id, self.generation_id = said.member_id, said.generation_id

    def take(self, answer: object) -> None:
        said = now(answer)
        assert said.error_code == 0, ErrorCode(said.error_code)
        topic_id = self.stage.topics.id_of("t")
        assert topic_id is not None
        self.owned = set(
            assigned_parts(read_assignment(said.assignment), self.stage.topics).get(topic_id, ())
        )

    def sync(self) -> None:
        self.take(
            self.members.sync(
                self.member_id, self.generation_id, group_instance_id=self.instance_id
            )
        )

    def beat(self) -> ErrorCode:
        """As clients do: if there is something to do, join and sync."""
        code = self.members.heartbeat(self.member_id, self.generation_id, self.instance_id)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.joined(self.ask())
            self.sync()
        return code


def stage_with(**settings: object) -> GroupStage:
    given = replace(GroupSettings(), group_consumer_assignment_interval_ms=0, **settings)  # type: ignore[arg-type]  # as the fields are
    stage = GroupStage(given)
    stage.topics.set(t=PARTITIONS)
    return stage


def classic_group(stage: GroupStage, count: int) -> list[Consumer]:
    """Stable, in generation 1; each owns its share, from the first partition on."""
    consumers = [Consumer(stage) for _ in range(count)]
    answers = [consumer.ask() for consumer in consumers]
    while waits(answers[0]):
        stage.advance_ms(JOIN_DELAY_MS)
    topic_id = stage.topics.id_of("t")
    assert topic_id is not None
    plan = {}
    for number, (consumer, answer) in enumerate(zip(consumers, answers, strict=True)):
        consumer.joined(answer)
        share = range(number, PARTITIONS, count)
        plan[consumer.member_id] = write_assignment({topic_id: share}, 1, stage.topics)
    members = Members(stage)
    syncs = [members.sync(each.member_id, 1) for each in consumers[1:]]
    for consumer, answer in zip(
        consumers, [members.sync(consumers[0].member_id, 1, plan), *syncs], strict=True
    ):
        consumer.take(answer)
    return consumers


def settle(stage: GroupStage, olds: list[Consumer], news: list[Member]) -> None:
    """Everybody does what it is told until there is nothing more to do; one owner at any time."""
    for _ in range(12):
        for old in olds:
            old.beat()
        for new in news:
            new.beat()
            new.owned = new.told
        owned = [index for old in olds for index in old.owned]
        owned += [index for new in news for _, index in new.owned]
        assert len(owned) == len(set(owned)), "two owners"
        stage.advance_ms(100)
    assert set(owned) == ALL


def indexes(member: Member) -> set[int]:
    return {index for _, index in member.owned}


def test_a_new_member_turns_the_group_into_a_consumer_group() -> None:
    stage = stage_with()
    olds = classic_group(stage, 2)
    new = Member(stage, "new")
    new.join()
    group = group_of(stage)
    assert group.epoch == 2
    assert set(group.members) == {"new", *(old.member_id for old in olds)}
    assert not new.told, "all partitions still belong to the others"
    assert olds[0].members.heartbeat(olds[0].member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    settle(stage, olds, [new])
    assert [len(old.owned) for old in olds] == [2, 2]
    assert len(new.owned) == 2
    assert olds[0].beat() is ErrorCode.NONE


def test_what_was_upgraded_comes_back_after_a_restart() -> None:
    stage = stage_with()
    olds = classic_group(stage, 2)
    new = Member(stage, "new")
    new.join()
    stage.restart()
    settle(stage, olds, [new])
    before = {each: group_of(stage).members[each] for each in group_of(stage).members}
    stage.restart()
    assert group_of(stage).members == before
    assert olds[1].beat() is ErrorCode.NONE


def test_the_last_new_member_leaves_and_the_group_is_classic_again() -> None:
    stage = stage_with()
    olds = classic_group(stage, 2)
    new = Member(stage, "new")
    new.join()
    settle(stage, olds, [new])
    generation_id = group_of(stage).epoch
    new.leave()
    group = stage.machine.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert group.state_name == "PreparingRebalance"
    assert group.generation_id == generation_id
    for old in olds:
        code = old.members.heartbeat(old.member_id, generation_id)
        assert code is ErrorCode.REBALANCE_IN_PROGRESS
    answers = [old.ask() for old in olds]
    for old, answer in zip(olds, answers, strict=True):
        old.joined(answer)
        assert old.generation_id == generation_id + 1
    assert {each.member_id for each in now(answers[0]).members} == {old.member_id for old in olds}


def test_a_downgraded_group_comes_back_after_a_restart() -> None:
    stage = stage_with()
    olds = classic_group(stage, 2)
    new = Member(stage, "new")
    new.join()
    settle(stage, olds, [new])
    epoch = group_of(stage).epoch
    new.leave()
    stage.restart()
    group = stage.machine.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert (group.state_name, group.generation_id) == ("Stable", epoch)
    assert set(group.members) == {old.member_id for old in olds}
    for old in olds:
        owned = old.owned
        old.sync()
        assert old.owned == owned


def test_the_session_of_the_last_new_member_ends() -> None:
    stage = stage_with()
    (old,) = classic_group(stage, 1)
    new = Member(stage, "new")
    new.join()
    settle(stage, [old], [new])
    for _ in range(50):
        stage.advance_ms(1_000)
        if isinstance(stage.machine.groups["g"], ClassicGroup):
            break
        old.beat()
    assert isinstance(stage.machine.groups["g"], ClassicGroup)
    answer = old.ask()
    old.joined(answer)


def test_all_old_members_are_replaced_one_by_one() -> None:
    stage = stage_with()
    olds, news = classic_group(stage, 3), []
    for number in range(3):
        new = Member(stage, f"new-{number}")
        new.join()
        news.append(new)
        settle(stage, olds, news)
        old = olds.pop()
        assert old.members.leave(old.member_id) is ErrorCode.NONE
        settle(stage, olds, news)
    group = group_of(stage)
    assert set(group.members) == {"new-0", "new-1", "new-2"}
    assert [len(new.owned) for new in news] == [2, 2, 2]


def test_a_classic_consumer_joins_a_consumer_group() -> None:
    stage = stage_with()
    new = Member(stage, "new")
    new.join()
    settle(stage, [], [new])
    old = Consumer(stage)
    old.joined(old.ask())
    old.sync()
    assert old.owned == set(), "the other has not given up anything yet"
    settle(stage, [old], [new])
    assert len(old.owned) == len(new.owned) == 3


def test_a_classic_member_that_does_not_join_again_in_time_is_fenced() -> None:
    stage = stage_with()
    (old,) = classic_group(stage, 1)
    new = Member(stage, "new")
    new.join()
    for _ in range(REBALANCE_MS // 1_000):
        code = old.members.heartbeat(old.member_id, 1)
        assert code is ErrorCode.REBALANCE_IN_PROGRESS
        new.beat()
        stage.advance_ms(1_000)
    assert old.members.heartbeat(old.member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    settle(stage, [], [new])


def test_a_static_member_moves_up_and_down() -> None:
    stage = stage_with()
    old = Consumer(stage, "one")
    answer = old.ask()
    stage.advance_ms(JOIN_DELAY_MS)
    old.joined(answer)
    topic_id = stage.topics.id_of("t")
    assert topic_id is not None
    plan = {old.member_id: write_assignment({topic_id: ALL}, 1, stage.topics)}
    old.take(old.members.sync(old.member_id, 1, plan, group_instance_id="one"))
    other = Consumer(stage, "two")
    waiting = other.ask()
    old.joined(old.ask())
    other.joined(waiting)
    halves = {
        old.member_id: write_assignment({topic_id: [0, 1, 2]}, 1, stage.topics),
        other.member_id: write_assignment({topic_id: [3, 4, 5]}, 1, stage.topics),
    }
    old.take(old.members.sync(old.member_id, 2, halves, group_instance_id="one"))
    other.sync()
    new = Member(stage, "new", instance_id="one")
    new.join()
    settle(stage, [other], [new])
    assert indexes(new) == {0, 1, 2}, "it has what it had before"
    back = Consumer(stage, "one")
    back.joined(back.ask())
    assert isinstance(stage.machine.groups["g"], ClassicGroup)
    back.sync()
    assert back.owned == {0, 1, 2}
    assert other.beat() is ErrorCode.NONE, "nobody had to rebalance"


def refusal(stage: GroupStage) -> ErrorCode:
    try:
        Member(stage, "new").join()
    except RunnelError as error:
        return error.code
    return ErrorCode.NONE


def test_the_policy_and_what_cannot_be_read_keep_a_group_as_it_is() -> None:
    for policy in ("disabled", "DOWNGRADE"):
        stage = stage_with(group_consumer_migration_policy=policy)
        classic_group(stage, 1)
        assert refusal(stage) is ErrorCode.GROUP_ID_NOT_FOUND
        assert isinstance(stage.machine.groups["g"], ClassicGroup)
    stage = stage_with()
    members = Members(stage)
    member_id, answer = members.enter()
    stage.advance_ms(JOIN_DELAY_MS)
    members.sync(member_id, now(answer).generation_id, {member_id: b"?"})
    assert refusal(stage) is ErrorCode.GROUP_ID_NOT_FOUND
    assert members.heartbeat(member_id, 1) is ErrorCode.NONE
    stage = stage_with(group_consumer_migration_policy="upgrade")
    (old,) = classic_group(stage, 1)
    new = Member(stage, "new")
    new.join()
    settle(stage, [old], [new])
    new.leave()
    assert isinstance(stage.machine.groups["g"], ConsumerGroup)
    settle(stage, [old], [])


def test_whoever_waits_in_the_classic_group_is_told_to_join_again() -> None:
    stage = stage_with()
    (old,) = classic_group(stage, 1)
    other = Consumer(stage)
    waiting = other.ask()
    assert waits(waiting)
    Member(stage, "new").join()
    assert now(waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    other.joined(other.ask())
    other.sync()
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_journal_refuses_and_the_group_stays_what_it_is() -> None:
    stage = stage_with()
    (old,) = classic_group(stage, 1)
    stage.journal.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    assert refusal(stage) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert old.beat() is ErrorCode.NONE
    stage.journal.refusal = None
    new = Member(stage, "new")
    new.join()
    settle(stage, [old], [new])
    stage.journal.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(RunnelError):
        new.leave()
    assert isinstance(stage.machine.groups["g"], ConsumerGroup)


@pytest.mark.parametrize(
    ("assignor", "code"),
    [("their own", ErrorCode.GROUP_ID_NOT_FOUND), ("cooperative-sticky", ErrorCode.NONE)],
)
def test_what_a_custom_assignor_said_would_be_lost(assignor: str, code: ErrorCode) -> None:
    """What librdkafka's sticky one copies into the assignments is lost on nobody."""
    stage = stage_with()
    consumer = Consumer(stage, assignor=assignor)
    answer = consumer.ask()
    stage.advance_ms(JOIN_DELAY_MS)
    consumer.joined(answer)
    topic_id = stage.topics.id_of("t")
    assert topic_id is not None
    plain = write_assignment({topic_id: [0]}, 0, stage.topics)
    with_data = plain[:-4] + b"\0\0\0\1!"
    consumer.members.sync(
        consumer.member_id, consumer.generation_id, {consumer.member_id: with_data}
    )
    assert refusal(stage) is code


def test_an_administrator_removes_members_of_either_protocol() -> None:
    stage = stage_with()
    (old,) = classic_group(stage, 1)
    new, other = Member(stage, "new"), Member(stage, "other", instance_id="static")
    new.join()
    other.join()
    settle(stage, [old], [new, other])
    assert old.members.leave("stranger") is ErrorCode.UNKNOWN_MEMBER_ID
    assert old.members.leave("new", "static") is ErrorCode.FENCED_INSTANCE_ID
    assert old.members.leave("new") is ErrorCode.NONE
    assert old.members.leave(instance_id="static") is ErrorCode.NONE
    assert isinstance(stage.machine.groups["g"], ClassicGroup)


def test_a_static_member_that_moves_down_with_other_topics_begins_a_rebalance() -> None:
    stage = stage_with()
    new = Member(stage, "new", ["u"], instance_id="one")
    new.join()
    back = Consumer(stage, "one")
    back.joined(back.ask())
    group = stage.machine.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert group.state_name == "PreparingRebalance"
    assert back.members.sync(back.member_id, back.generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
