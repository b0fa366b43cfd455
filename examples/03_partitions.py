"""Partitions: a topic in several parts, so that several can write and read it at once.

The key decides the partition. What has the same key stays in order; what has not may be read in any
order. So: choose as the key whatever has to stay in order, here the account.

It prints:

    alice is in partition 0, dave is in partition 1, carol is in partition 2
    alice: +100 -20 -30 = 50
    carol: +70 -70 +1 = 1
    dave: +50 -5 +10 = 55
    partition 1 alone: +50 -5 +10
"""

from collections import defaultdict

from a_broker import a_broker, new_topic

from runnel.client import Consumer, ConsumerConfig, Producer, ProducerConfig

BOOKINGS = [
    *(("alice", "+100"), ("dave", "+50"), ("carol", "+70")),
    *(("alice", "-20"), ("dave", "-5"), ("carol", "-70")),
    *(("alice", "-30"), ("dave", "+10"), ("carol", "+1")),
]

with a_broker() as servers:
    topic = new_topic(servers, "examples.bookings", partitions=3)

    with Producer(ProducerConfig(servers)) as producer:
        sent = {name: producer.send(topic, amount, key=name) for name, amount in BOOKINGS}
        print(", ".join(f"{name} is in partition {sent[name].partition}" for name in sent))

    accounts: defaultdict[str, list[str]] = defaultdict(list)
    with Consumer(ConsumerConfig(servers)) as consumer:
        consumer.subscribe(topic)
        for message in consumer.until_end():
            accounts[message.key.decode()].append(message.text)
    for name, amounts in sorted(accounts.items()):
        print(f"{name}: {' '.join(amounts)} = {sum(map(int, amounts))}")

    # Whoever wants certain partitions names them.
    with Consumer(ConsumerConfig(servers)) as consumer:
        consumer.subscribe(topic, [1])
        print("partition 1 alone:", *[message.text for message in consumer.until_end()])
