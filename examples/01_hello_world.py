"""Hello world: send a message, read it back.

It prints:

    sent: partition 0, offset 0
    read: Hello, world!
"""

from a_broker import a_broker, new_topic

from runnel.client import Consumer, ConsumerConfig, Producer, ProducerConfig

with a_broker() as servers:
    topic = new_topic(servers, "examples.hello")

    with Producer(ProducerConfig(servers)) as producer:
        delivery = producer.send(topic, "Hello, world!")
        print(f"sent: partition {delivery.partition}, offset {delivery.offset}")

    with Consumer(ConsumerConfig(servers)) as consumer:
        consumer.subscribe(topic)
        for message in consumer.until_end():  # `for message in consumer` would wait for more
            print("read:", message.text)
