"""Offset tracking: commit what is done, go on there after a restart, know how far behind you are.

A committed offset is the next one to read. What was handled and not committed when a consumer ends
is read again. So commit after the work, and no message is ever lost.

It prints:

    first start: handled 0 1 2 3, committed offset 4, behind by 6
    handled 4, and crashed before the commit
    after the restart: handled 4 5 6 7 8 9, behind by 0
    read again from offset 8: 8 9
"""

from a_broker import a_broker, new_topic

from runnel.client import Consumer, ConsumerConfig, Producer, ProducerConfig

with a_broker() as servers:
    topic = new_topic(servers, "examples.invoices")
    with Producer(ProducerConfig(servers)) as producer:
        producer.send_batch(topic, [f"invoice {n}" for n in range(10)])

    # With enable_auto_commit, the default, commits happen by themselves: every few seconds and at
    # the end. Here we say when.
    config = ConsumerConfig(servers, group_id="examples.billing", enable_auto_commit=False)

    with Consumer(config) as consumer:
        consumer.subscribe(topic)
        handled = consumer.poll(timeout_s=10, max_records=4)
        consumer.commit()
        print("first start: handled", *[message.offset for message in handled], end=", ")
        print(f"committed offset {consumer.committed()[topic, 0]}", end=", ")
        print(f"behind by {sum(consumer.lag().values())}")

        for message in consumer.poll(max_records=1):
            print(f"handled {message.offset}, and crashed before the commit")

    with Consumer(config) as consumer:
        consumer.subscribe(topic)
        handled = list(consumer.until_end())
        consumer.commit()
        print("after the restart: handled", *[message.offset for message in handled], end=", ")
        print(f"behind by {sum(consumer.lag().values())}")

        consumer.seek(topic, 0, 8)  # or "earliest", "latest"
        print("read again from offset 8:", *[message.offset for message in consumer.until_end()])
