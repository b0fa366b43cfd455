"""What is taken away while it is fetched is not handed out."""

import pytest
from confluent_kafka import Message as RawMessage

from runnel.client import Consumer, ConsumerConfig
from runnel.client.inbox import Inbox
from runnel.client.offsets import TopicPartition


class Rebalancing:
    """In librdkafka's place: the second call takes partition 0 away, and brings one message."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._answers = [
            [],
            [RawMessage(topic="t", partition=0, offset=5)],
            [RawMessage(topic="t", partition=1, offset=7)],
        ]

    def consume(self, _limit: int, _timeout_s: float) -> list[RawMessage]:
        answer = self._answers.pop(0)
        if not self._answers:
            self._inbox._forget([TopicPartition("t", 0)])
        return answer


def test_a_partition_that_goes_takes_what_was_fetched_of_it() -> None:
    """Its next owner begins there; committed here, it would take the group back."""
    inbox = Inbox(ConsumerConfig(group_id="g"))
    inbox._assignment.add([("t", 0), ("t", 1)])
    inbox._assignment.hand_over()
    inbox._is_subscribed = True
    inbox._raw = Rebalancing(inbox)  # type: ignore[assignment]  # as much of it as `fetch` uses
    assert [message.id for message in inbox.fetch(10, 1.0)] == ["t-1-7"]


class Interrupted:
    """In librdkafka's place: the second call of a fetch does not return."""

    def __init__(self) -> None:
        self._answers: list[list[RawMessage] | BaseException] = [
            [],
            [RawMessage(topic="t", partition=0, offset=5)],
            KeyboardInterrupt(),
        ]

    def consume(self, _limit: int, _timeout_s: float) -> list[RawMessage]:
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def test_what_came_before_an_interrupt_is_handed_out() -> None:
    consumer = Consumer(ConsumerConfig(group_id="g"))
    consumer._assignment.add([("t", 0)])
    consumer._assignment.hand_over()
    consumer._is_subscribed = True
    consumer._raw = Interrupted()  # type: ignore[assignment]  # as much of it as `fetch` uses
    with pytest.raises(KeyboardInterrupt):
        consumer.poll(1.0)
    assert [message.id for message in consumer.poll(0)] == ["t-0-5"]
