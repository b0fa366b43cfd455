"""Subscription by regular expression: RE2, looked up in steps, hostile patterns and all."""

import time

import pytest

from runnel.coordinator.groups.consumer_regex import REGEXES_MAX
from runnel.coordinator.groups.offset_deletion import delete_group
from runnel.coordinator.regex import PATTERN_CHARACTERS_MAX, compile_regex
from runnel.errors import ErrorCode, RunnelError
from tests.support.consumer_members import Member, group_of, settle
from tests.support.shards import GroupStage, VirtualClock


@pytest.fixture
def stage() -> GroupStage:
    stage = GroupStage()
    stage.topics.set(orders=2, orders_old=2, bills=3)
    return stage


def names(member: Member) -> set[str]:
    return {topic_id.lstrip(b"-").decode() for topic_id, _ in member.owned}


def test_an_expression_stands_for_topics_that_match_as_a_whole(stage: GroupStage) -> None:
    a = Member(stage, "a", [], subscribed_topic_regex="orders.*")
    joined = a.join()
    assert (joined.member_epoch, a.told) == (1, set()), "nobody has looked it up yet"
    settle(stage, [a], rounds=2)
    assert names(a) == {"orders", "orders_old"}
    b = Member(stage, "b", [], subscribed_topic_regex="rder")
    b.join()
    settle(stage, [a, b], rounds=12)
    assert b.owned == set()
    assert group_of(stage).resolved["orders.*"].topics == {"orders", "orders_old"}
    assert group_of(stage).is_subscribed_to("orders")


def test_new_topics_are_found_and_old_ones_leave(stage: GroupStage) -> None:
    a = Member(stage, "a", ["bills"], subscribed_topic_regex="orders.*")
    a.join()
    settle(stage, [a], rounds=2)
    assert names(a) == {"orders", "orders_old", "bills"}
    stage.topics.set(orders=2, orders_new=1, bills=3)
    settle(stage, [a], rounds=10)
    assert names(a) == {"orders", "orders_new", "bills"}
    stage.restart()
    settle(stage, [a], rounds=10)
    assert names(a) == {"orders", "orders_new", "bills"}
    stage.topics.set(orders=2, orders_new=1, orders_newer=1)
    settle(stage, [a], rounds=10)
    assert names(a) == {"orders", "orders_new", "orders_newer"}


def test_an_expression_is_forgotten_with_its_last_subscriber(stage: GroupStage) -> None:
    a = Member(stage, "a", [], subscribed_topic_regex="orders.*")
    b = Member(stage, "b", [], subscribed_topic_regex="orders.*")
    a.join()
    settle(stage, [a], rounds=2)
    b.join()
    settle(stage, [a, b])
    assert len(a.owned) == len(b.owned) == 2
    a.beat(subscribed_topic_regex="bills")
    settle(stage, [a, b], rounds=12)
    assert set(group_of(stage).resolved) == {"orders.*", "bills"}
    assert (names(a), len(b.owned)) == ({"bills"}, 4)
    b.leave()
    assert set(group_of(stage).resolved) == {"bills"}
    a.beat(subscribed_topic_regex="")
    settle(stage, [a], rounds=3)
    assert (group_of(stage).resolved, a.owned) == ({}, set())
    before = sorted(stage.machine.consumer.describe("g").members[0].subscribed_topic_names)
    stage.restart()
    assert sorted(stage.machine.consumer.describe("g").members[0].subscribed_topic_names) == before


def test_nothing_is_kept_of_a_group_that_is_gone(stage: GroupStage) -> None:
    member = Member(stage, "a", [], subscribed_topic_regex="orders.*")
    member.join()
    settle(stage, [member], rounds=2)
    assert names(member) == {"orders", "orders_old"}
    member.leave()
    assert list(delete_group(stage.machine, "g")) == []
    assert stage.machine.groups == {}
    held = vars(stage.machine.consumer._epochs.regexes).values()
    assert [each for each in held if isinstance(each, set | dict) and each] == []


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("[", "missing closing ]"),
        ("(", "missing closing )"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("(?!a)", "invalid or unsupported Perl syntax"),
        ("(?=a)b", "invalid or unsupported Perl syntax"),
        (r"(a)\1", "invalid escape sequence"),
        ("a{1001}", "invalid repeat count"),
        ("(((a{100}){100}){100})", "invalid repeat count"),
        ("((a{30}){30}b){10}", "invalid repeat count"),
        ("(a?){200}" * 20, "expression too large"),
    ],
)
def test_what_is_no_expression_is_refused(stage: GroupStage, pattern: str, why: str) -> None:
    before = len(stage.journal.records)
    with pytest.raises(RunnelError) as raised:
        Member(stage, "a", [], subscribed_topic_regex=pattern).join()
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert str(raised.value) == (
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {why}."
    )
    assert len(stage.journal.records) == before


def test_length_and_number_are_limited(stage: GroupStage) -> None:
    with pytest.raises(RunnelError) as raised:
        compile_regex("a" * (PATTERN_CHARACTERS_MAX + 1))
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    for number in range(REGEXES_MAX):
        Member(stage, f"m{number}", [], subscribed_topic_regex=f"t{number}").join()
    with pytest.raises(RunnelError) as raised:
        Member(stage, "one more", [], subscribed_topic_regex="more").join()
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    Member(stage, "the same", [], subscribed_topic_regex="t1").join()


HOSTILE = [
    "(a+)+b",
    "(a|aa)*b",
    "(.*)*(.*)*(.*)*b",
    "(?i)" + "(a?){200}" * 2 + "b",
    "(?:" + "|".join(f"[a-z]*{number}.*x" for number in range(120)) + ")",
    "(x*[a-z]*){300}b",
    ".*" * 2000 + "b",
]


class RunningClock(VirtualClock):
    """Shows that a step ends when its time is up."""

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


@pytest.mark.parametrize("pattern", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_expression_does_not_stall_the_loop(pattern: str) -> None:
    """Thousands of the longest names; no turn takes 100 ms."""
    stage = GroupStage(clock=RunningClock())
    stage.topics.set(**{"a" * 244 + f"{number:05}": 1 for number in range(2_000)})
    began = time.process_time()
    Member(stage, "a", [], subscribed_topic_regex=pattern).join()
    longest = time.process_time() - began
    turns = 0
    while not group_of(stage).resolved:
        began = time.process_time()
        stage.timers.run_due(stage.clock.monotonic_ms())
        longest = max(longest, time.process_time() - began)
        turns += 1
    assert turns > 1
    assert longest < 0.5  # far less, where nothing else runs


def test_many_hostile_expressions_do_not_stall_the_loop_either() -> None:
    stage = GroupStage(clock=RunningClock())
    stage.topics.set(**{"a" * 240 + f"{number}": 1 for number in range(20)})
    longest = 0.0
    for number in range(REGEXES_MAX):
        began = time.process_time()
        pattern = "(?i)" + "(a?){150}" * 2 + f"b{number}"
        Member(stage, f"m{number}", [], subscribed_topic_regex=pattern).join()
        longest = max(longest, time.process_time() - began)
    while len(group_of(stage).resolved) < REGEXES_MAX:
        stage.clock.now_ms += 11_000  # so that what came later is looked up, too
        Member(stage, "m0", [], subscribed_topic_regex="(?i)" + "(a?){150}" * 2 + "b0").join()
        for _ in range(1_000):
            began = time.process_time()
            stage.timers.run_due(stage.clock.monotonic_ms())
            longest = max(longest, time.process_time() - began)
            time.sleep(0.0005)
            if len(group_of(stage).resolved) == REGEXES_MAX:
                break
    assert longest < 0.5
