"""Poison messages: tried again, put aside with the reason, sent back."""

import pytest

from runnel.client import (
    Backoff,
    ConfigurationError,
    Consumer,
    ConsumerConfig,
    DeadLetters,
    JsonSerializer,
    Message,
    Producer,
    ProducerConfig,
    replay,
)
from runnel.testing import RunnelBroker

SOON = Backoff(first_ms=1, max_ms=2)


def test_poison_is_put_aside_and_the_rest_goes_on(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    servers = runnel_broker.bootstrap_servers
    config = ConsumerConfig(servers, group_id=runnel_topic, value_deserializer=JsonSerializer())
    handled: list[object] = []
    tries: list[str] = []

    def handle(message: Message) -> None:
        tries.append(message.id)
        handled.append(message.value)

    with Producer(ProducerConfig(servers)) as producer, Consumer(config) as consumer:
        producer.send(runnel_topic, "1")
        producer.send(runnel_topic, "{not JSON", "key", {"trace": "t"}, 1_700_000_000_000)
        producer.send(runnel_topic, "3")
        producer.flush()
        consumer.subscribe(runnel_topic)
        dead_letters = DeadLetters(producer, tries=3, backoff=SOON)
        consumer.start_consuming(dead_letters.guard(handle), idle_timeout_s=0.5)
        assert consumer.lag() == {(runnel_topic, 0): 0}
    assert handled == [1, 3]
    assert tries.count(f"{runnel_topic}-0-1") == 3
    with Consumer(ConsumerConfig(servers)) as consumer:
        consumer.subscribe(f"{runnel_topic}.dlq")
        (letter,) = consumer.until_end()
    assert (letter.key, letter.value) == (b"key", b"{not JSON")
    assert letter.timestamp == 1_700_000_000_000
    assert letter.header("trace") == "t"
    assert letter.header("dlq.topic") == runnel_topic
    assert (letter.header("dlq.partition"), letter.header("dlq.offset")) == ("0", "1")
    assert (letter.header("dlq.tries"), letter.header("dlq.error")) == ("3", "SerializationError")
    assert "could not be read" in (letter.header("dlq.reason") or "")
    assert int(letter.header("dlq.timestamp") or "0") > 1_700_000_000_000


def test_replay(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    servers = runnel_broker.bootstrap_servers
    dead = runnel_broker.create_topic()
    with Producer(ProducerConfig(servers)) as producer:
        dead_letters = DeadLetters(producer, topic=dead)
        message = Message(runnel_topic, "v", "k", {"trace": "t"}, partition=0, offset=7)
        dead_letters.put_aside(message, ValueError("x" * 5000))
        dead_letters.put_aside(message.with_value("w"), ValueError())
        for _ in range(2):  # the second time there is nothing left
            with Consumer(ConsumerConfig(servers, group_id=dead)) as letters:
                letters.subscribe(dead)
                replay(
                    letters,
                    producer,
                    idle_timeout_s=1.0,
                    select=lambda letter: letter.text == "v",
                )
    with Consumer(ConsumerConfig(servers)) as consumer:
        consumer.subscribe(runnel_topic)
        (back,) = consumer.until_end()
    assert (back.text, back.key) == ("v", b"k")
    assert back.headers == {"trace": b"t", "dlq.replays": b"1"}


def test_refused(runnel_broker: RunnelBroker) -> None:
    config = ProducerConfig(runnel_broker.bootstrap_servers, value_serializer=JsonSerializer())
    with pytest.raises(ConfigurationError, match="without serializers"):
        DeadLetters(Producer(config))
    with pytest.raises(ConfigurationError, match="at least one"):
        DeadLetters(Producer(), tries=0)


def test_what_the_exception_says_may_be_anything(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    """The name of a file that is no UTF-8, for one: Python has half characters for it."""
    servers = runnel_broker.bootstrap_servers
    with (
        Producer(ProducerConfig(servers)) as producer,
        Consumer(ConsumerConfig(servers)) as consumer,
    ):
        dead_letters = DeadLetters(producer, tries=1)
        dead_letters.put_aside(Message(runnel_topic, "x"), ValueError("no file \udcff"))
        consumer.subscribe(f"{runnel_topic}.dlq")
        (letter,) = consumer.until_end()
    assert letter.header("dlq.reason") == "no file ?"
