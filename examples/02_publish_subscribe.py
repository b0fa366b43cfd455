"""Publish and subscribe: every group gets every message, at its own pace, in the same order.

A topic is a log. Reading takes nothing away: each group remembers the offset that it reads next,
and a subscriber that comes late, or wants to see something again, finds what is still kept.

It prints:

    published 5 prices, offsets 0 to 4
    dashboard: 0 = 10.0, 1 = 10.5, 2 = 11.0, 3 = 11.5, 4 = 12.0
    archive: 0 = 10.0, 1 = 10.5, 2 = 11.0, 3 = 11.5, 4 = 12.0
    dashboard: nothing new
    dashboard again from offset 3: 3 = 11.5, 4 = 12.0
"""

from a_broker import a_broker, new_topic

from runnel.client import Consumer, ConsumerConfig, Message, Producer, ProducerConfig


def told(messages: list[Message]) -> str:
    prices = [f"{message.offset} = {message.text}" for message in messages]
    return ", ".join(prices) or "nothing new"


with a_broker() as servers:
    topic = new_topic(servers, "examples.prices")

    with Producer(ProducerConfig(servers)) as producer:
        offsets = producer.send_batch(topic, [str(10 + n / 2) for n in range(5)])
        print(f"published {len(offsets)} prices, offsets {offsets[0]} to {offsets[-1]}")

    for group in ("dashboard", "archive", "dashboard"):
        with Consumer(ConsumerConfig(servers, group_id=f"examples.{group}")) as consumer:
            consumer.subscribe(topic)
            print(f"{group}: {told(list(consumer.until_end()))}")

    with Consumer(ConsumerConfig(servers, group_id="examples.dashboard")) as consumer:
        consumer.subscribe(topic, [0])
        consumer.seek(topic, 0, 3)
        print(f"dashboard again from offset 3: {told(list(consumer.until_end()))}")
