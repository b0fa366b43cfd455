"""Any order of joins, heartbeats, revocations, departures, silences, restarts and changing topics:
a partition never has two owners, epochs only grow, and in the end all is assigned (R39)."""

from collections import Counter

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runnel.coordinator.groups.consumer_group import ConsumerGroup
from runnel.errors import ErrorCode, RunnelError
from tests.support.consumer_members import Member, group_of
from tests.support.shards import GroupStage

SUBSCRIPTIONS = (["t"], ["u"], ["t", "u"], ["t", "u", "v"])
FENCED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}
names = st.sampled_from("abcde")


class GroupOfMembers(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stage = GroupStage()
        self.counts = {"t": 3, "u": 2}
        self.stage.topics.set(**self.counts)
        self.members: dict[str, Member] = {}
        self.epoch = self.target_epoch = 0

    @property
    def group(self) -> ConsumerGroup | None:
        found = self.stage.machine.groups.get("g")
        return found if isinstance(found, ConsumerGroup) else None

    @rule(
        name=names,
        topics=st.sampled_from(SUBSCRIPTIONS),
        assignor=st.sampled_from(("uniform", "range")),
    )
    def join(self, name: str, topics: list[str], assignor: str) -> None:
        member = self.members.get(name)
        if member is None:
            member = self.members[name] = Member(self.stage, name, server_assignor=assignor)
        member.topics = topics
        member.join()

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        self._beat(data.draw(st.sampled_from(sorted(self.members))))

    def _beat(self, name: str) -> None:
        member = self.members[name]
        before = member.epoch
        try:
            member.beat()
        except RunnelError as error:
            assert error.code in FENCED
            member.join()  # it has given up all that it had
        else:
            assert member.epoch >= before

    @precondition(lambda self: self.members)
    @rule(data=st.data(), topics=st.sampled_from(SUBSCRIPTIONS))
    def subscribe(self, data: st.DataObject, topics: list[str]) -> None:
        member = self.members[data.draw(st.sampled_from(sorted(self.members)))]
        try:
            member.beat(subscribed_topic_names=topics)
            member.topics = topics
        except RunnelError as error:
            assert error.code in FENCED
            del self.members[member.member_id]

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def follow(self, data: st.DataObject) -> None:
        self.members[data.draw(st.sampled_from(sorted(self.members)))].follow()

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.members)))
        try:
            self.members.pop(name).leave()
        except RunnelError as error:
            assert error.code in FENCED

    @rule(milliseconds=st.sampled_from((300, 2_000, 10_000, 31_000, 46_000)))
    def wait(self, milliseconds: int) -> None:
        self._pass(milliseconds)

    def _pass(self, milliseconds: int) -> None:
        """A client that was not heard of for so long has stopped reading, too."""
        self.stage.advance_ms(milliseconds)
        group = self.group
        for name, member in list(self.members.items()):
            if group is None or name not in group.members:
                member.owned, member.told = set(), set()

    @rule(counts=st.fixed_dictionaries({}, optional={n: st.integers(1, 6) for n in "tuv"}))
    def change_topics(self, counts: dict[str, int]) -> None:
        for name, count in self.counts.items():
            if name in counts:
                counts[name] = max(count, counts[name])  # topics do not shrink
        self.counts = counts
        self.stage.topics.set(**counts)

    @rule()
    def restart(self) -> None:
        before = None if self.group is None else _lasting(self.group)
        self.stage.restart()
        assert before == (None if self.group is None else _lasting(self.group))

    @invariant()
    def nobody_owns_what_another_owns(self) -> None:
        owners = Counter(each for member in self.members.values() for each in member.owned)
        assert all(count == 1 for count in owners.values()), owners

    @invariant()
    def epochs_only_grow(self) -> None:
        group = self.group
        if group is not None:
            assert group.epoch >= self.epoch
            assert group.target_epoch >= self.target_epoch
            assert group.target_epoch <= group.epoch
            self.epoch, self.target_epoch = group.epoch, group.target_epoch

    def teardown(self) -> None:
        """When nothing more happens, every topic that somebody reads is read completely."""
        for _ in range(12):
            self._pass(2_000)
            for name in list(self.members):
                self._beat(name)
                self.members[name].follow()
                self.nobody_owns_what_another_owns()
        if not self.members:
            return
        names = set(self.members)
        group = group_of(self.stage)
        self.stage.advance_ms(0)
        if set(group.members) == names:
            assert group.state_name == "Stable"
        wanted = {
            (self.stage.topics.id_of(topic), index)
            for member in self.members.values()
            for topic in member.topics
            for index in range(self.counts.get(topic, 0))
        }
        others = {
            (topic_id, index)
            for name, member in group.members.items()
            if name not in names
            for topic_id, epochs in member.assigned.items()
            for index in epochs
        }
        owned = {each for member in self.members.values() for each in member.owned}
        assert owned | others >= wanted, (wanted - owned, others)


def _lasting(group: ConsumerGroup) -> dict[str, object]:
    soft = {"checked_revision", "_subscribed", "_regexes"}
    return {
        name: value for name, value in vars(group).items() if name not in soft and name != "_owners"
    } | {"_owners": {each: owners for each, owners in group._owners.items() if owners}}


TestGroupOfMembers = GroupOfMembers.TestCase
TestGroupOfMembers.settings = settings(
    max_examples=200,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
