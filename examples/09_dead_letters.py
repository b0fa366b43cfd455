"""Dead letters: one message that cannot be handled must not stop all the others.

After a few tries it goes to another topic, with headers that say why and where it came from, and
the work goes on. When the fault is mended the dead letters are sent back, to be handled as usual.

It prints:

    paid 250 cents for tea
    paid 400 cents for cake
    in examples.bills.dlq: soup, which was at offset 1 of examples.bills
      given up after 3 tries: ValueError, invalid literal for int() with base 10: 'five euros'
    mended, and sent back: 1
    paid 500 cents for soup
"""

from a_broker import a_broker, new_topic

from runnel.client import (
    Backoff,
    Consumer,
    ConsumerConfig,
    DeadLetters,
    Message,
    Producer,
    ProducerConfig,
    replay,
)

words: dict[str, int] = {}  # prices in words that we understand


def pay(bill: Message) -> None:
    price = bill.text
    cents = words[price] if price in words else int(price)
    print(f"paid {cents} cents for {bill.key.decode()}")


def pay_all(servers: str, dead_letters: DeadLetters) -> None:
    with Consumer(ConsumerConfig(servers, group_id="examples.cashier")) as consumer:
        consumer.subscribe("examples.bills")
        for bill in consumer.until_end():
            dead_letters.handle(bill, pay)


with a_broker() as servers, Producer(ProducerConfig(servers)) as producer:
    topic = new_topic(servers, "examples.bills")
    aside = new_topic(servers, "examples.bills.dlq")
    for dish, price in (("tea", "250"), ("soup", "five euros"), ("cake", "400")):
        producer.send(topic, price, key=dish)
    producer.flush()

    dead_letters = DeadLetters(producer, tries=3, backoff=Backoff(first_ms=10))
    pay_all(servers, dead_letters)

    with Consumer(ConsumerConfig(servers)) as consumer:
        consumer.subscribe(aside)
        for letter in consumer.until_end():
            why = {name: letter.header(f"dlq.{name}") for name in ("tries", "error", "reason")}
            origin = f"offset {letter.header('dlq.offset')} of {letter.header('dlq.topic')}"
            print(f"in {aside}: {letter.key.decode()}, which was at {origin}")
            print("  given up after {tries} tries: {error}, {reason}".format(**why))

    words["five euros"] = 500  # the fault is mended
    with Consumer(ConsumerConfig(servers, group_id="examples.mender")) as consumer:
        consumer.subscribe(aside)
        print("mended, and sent back:", replay(consumer, producer, idle_timeout_s=2))
    pay_all(servers, dead_letters)
