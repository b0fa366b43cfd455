"""What is committed: only what was handled, whichever way it was handed out."""

from confluent_kafka import Message as RawMessage

from runnel.client import Message
from runnel.client.handout import Handout
from runnel.client.message import received

A, B = ("a", 0), ("b", 0)


def batch(*places: tuple[str, int]) -> list[Message]:
    raws = [RawMessage(topic=topic, partition=0, offset=offset) for topic, offset in places]
    return received(raws, None) or []


def test_a_batch_counts_when_the_next_is_asked_for() -> None:
    handout = Handout()
    handout.put(batch(("a", 0), ("a", 1), ("b", 7)))
    assert len(handout.take(10)) == 3
    handout.settle()
    assert handout.uncommitted == {}, "it is still in hand"
    assert handout.positions() == {A: 2, B: 8}
    handout.all_is_handled()
    handout.put([])
    assert handout.uncommitted == {A: 2, B: 8}


def test_topics_with_the_same_partition_are_kept_apart() -> None:
    handout = Handout()
    handout.topics = {"a", "b"}
    handout.put(batch(("a", 0), ("b", 7), ("a", 1), ("b", 8)))
    handout.take(10)
    assert handout.positions() == {A: 2, B: 9}


def test_partitions_of_the_only_topic_are_kept_apart() -> None:
    handout = Handout()
    handout.topics = {"a"}
    places = [(0, 5), (1, 3), (1, 4), (0, 6), (2, 0)]
    raws = [RawMessage(topic="a", partition=at, offset=offset) for at, offset in places]
    handout.put(received(raws, None) or [])
    handout.take(10)
    assert handout.positions() == {("a", 0): 7, ("a", 1): 5, ("a", 2): 1}


def test_one_by_one_counts_all_but_the_last() -> None:
    handout = Handout()
    handout.put(batch(("a", 0), ("a", 1), ("a", 2)))
    handout.take_one()
    handout.take_one()
    handout.settle()
    assert handout.uncommitted == {A: 1}
    handout.all_is_handled()
    handout.settle()
    assert handout.uncommitted == {A: 2}
    assert [message.offset for message in handout.take(10)] == [2]


def test_take_gives_no_more_than_asked_for() -> None:
    handout = Handout()
    handout.put(batch(("a", 0), ("a", 1), ("a", 2)))
    assert [message.offset for message in handout.take(2)] == [0, 1]
    assert not handout.is_empty
    assert [message.offset for message in handout.take(2)] == [2]
    assert handout.is_empty


def test_a_partition_that_is_gone_is_neither_handed_out_nor_committed() -> None:
    handout = Handout()
    handout.put(batch(("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)))
    handout.take_one()
    handout.take_one()
    handout.take(2)
    handout.drop([A])
    assert [message.topic for message in handout.take(10)] == ["b"]
    handout.all_is_handled()
    handout.settle()
    assert handout.uncommitted == {B: 3}
    assert handout.positions() == {B: 3}


def test_what_waits_can_be_taken_back() -> None:
    handout = Handout()
    handout.put(batch(("a", 5), ("a", 6), ("b", 0), ("a", 7)))
    handout.take_one()
    assert handout.take_back_waiting([A]) == {A: 6}
    assert [message.topic for message in handout.take(10)] == ["b"]
    handout.all_is_handled()
    handout.settle()
    assert handout.uncommitted == {A: 6, B: 1}, "the one in hand still counts"
