"""What the tests of the client library share: a topic with numbers in it."""

from runnel.client import Producer, ProducerConfig
from runnel.testing import RunnelBroker


def numbers(count: int, first: int = 0) -> list[str]:
    return [str(number) for number in range(first, first + count)]


def filled(broker: RunnelBroker, topic: str, count: int, first: int = 0) -> list[int]:
    """So many numbers as text; where they are."""
    with Producer(ProducerConfig(broker.bootstrap_servers)) as producer:
        return producer.send_batch(topic, numbers(count, first))
