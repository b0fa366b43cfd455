"""What a user's tests look like: a topic, a client, data that comes back."""

from confluent_kafka import Consumer, Producer

from runnel.testing import RunnelBroker


def send(broker: RunnelBroker, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(10) == 0


def read(broker: RunnelBroker, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "orders",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    try:
        return [message.value() for message in consumer.consume(count, timeout=10)]
    finally:
        consumer.close()


def test_an_order_comes_back(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    send(runnel_broker, runnel_topic, "tea", "cake")
    assert read(runnel_broker, runnel_topic, 2) == [b"tea", b"cake"]


def test_the_broker_is_the_same_and_the_topic_another(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    send(runnel_broker, runnel_topic, "bread")
    assert read(runnel_broker, runnel_topic, 1) == [b"bread"]
