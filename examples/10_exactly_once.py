"""Exactly once: read, work, write, and every result is there once, whatever fails in between.

What is sent in a transaction appears together with the offsets of what it was made from, or not at
all. Here two attempts fail half-way; their messages are read again as if nothing had happened.

It prints:

    attempt 1: 40 receipts, committed
    attempt 2: failed at 20, nothing of it counts
    attempt 3: 40 receipts, committed
    attempt 4: failed at 10, nothing of it counts
    attempt 5: 20 receipts, committed
    100 payments made 100 receipts, 100 of them different
    whoever reads uncommitted messages sees 130
"""

from a_broker import a_broker, new_topic

from runnel.client import Consumer, ConsumerConfig, IsolationLevel, Producer, ProducerConfig

FAILS_AT = {2: 20, 4: 10}  # attempt: after so many receipts


def read_all(servers: str, topic: str, level: IsolationLevel) -> list[str]:
    with Consumer(ConsumerConfig(servers, isolation_level=level)) as consumer:
        consumer.subscribe(topic)
        return [message.text for message in consumer.until_end()]


with a_broker() as servers:
    payments = new_topic(servers, "examples.payments")
    receipts = new_topic(servers, "examples.receipts")
    with Producer(ProducerConfig(servers)) as producer:
        producer.send_batch(payments, [f"payment {n}" for n in range(100)])

    # The id is what makes it safe: a second copier of the same id shuts the first one out.
    sending = ProducerConfig(servers, transactional_id="examples.copier")
    reading = ConsumerConfig(servers, group_id="examples.copier", enable_auto_commit=False)
    with Producer(sending) as producer, Consumer(reading) as consumer:
        consumer.subscribe(payments)
        attempt = done = 0
        while done < 100:
            attempt += 1
            try:
                with producer.transaction(consumer):
                    batch = consumer.poll(timeout_s=10, max_records=40)
                    for number, message in enumerate(batch):
                        if number == FAILS_AT.get(attempt):
                            producer.flush()  # they are in the log, and yet nobody sees them
                            raise RuntimeError(f"failed at {number}")
                        producer.send(receipts, f"receipt of {message.text}")
                done += len(batch)
                print(f"attempt {attempt}: {len(batch)} receipts, committed")
            except RuntimeError as error:
                print(f"attempt {attempt}: {error}, nothing of it counts")

    found = read_all(servers, receipts, IsolationLevel.READ_COMMITTED)
    print(f"{done} payments made {len(found)} receipts, {len(set(found))} of them different")
    everything = read_all(servers, receipts, IsolationLevel.READ_UNCOMMITTED)
    print(f"whoever reads uncommitted messages sees {len(everything)}")
