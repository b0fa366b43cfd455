"""The client library, `runnel.client`, against a broker whose address is given: Kafka's, too."""

import asyncio
import sys

from runnel.client import (
    AsyncConsumer,
    AsyncProducer,
    Backoff,
    ClientError,
    Consumer,
    ConsumerConfig,
    DeadLetters,
    FencedError,
    Message,
    Producer,
    ProducerConfig,
)
from tests.compat.checks import PATIENCE_S, Checks, topic_name

COUNT = 200


class Suite:
    def __init__(self, servers: str) -> None:
        self.servers = servers

    def texts(self, topic: str) -> list[str]:
        with Consumer(ConsumerConfig(self.servers)) as consumer:
            consumer.subscribe(topic)
            return [message.text for message in consumer.until_end(PATIENCE_S)]

    def send_and_read(self) -> None:
        topic = topic_name("library", "send")
        with Producer(ProducerConfig(self.servers)) as producer:
            offsets = producer.send_batch(topic, [str(number) for number in range(COUNT)])
            sent = producer.send(topic, "last", "key", {"a": "b"}, 1_700_000_000_000)
            assert (offsets, sent.offset) == (list(range(COUNT)), COUNT)
        with Consumer(ConsumerConfig(self.servers)) as consumer:
            consumer.subscribe(topic)
            *_, last = consumer.until_end(PATIENCE_S)
        assert (last.text, last.key, last.headers) == ("last", b"key", {"a": b"b"})
        assert (last.timestamp, last.offset) == (1_700_000_000_000, COUNT)

    def go_on_in_a_group(self, protocol: str) -> None:
        topic = topic_name("library", f"group-{protocol}")
        with Producer(ProducerConfig(self.servers)) as producer:
            producer.send_batch(topic, [str(number) for number in range(10)])
        config = ConsumerConfig(
            self.servers,
            group_id=topic,
            group_protocol=protocol,  # type: ignore[arg-type]  # one of the two
            enable_auto_commit=False,
        )
        with Consumer(config) as consumer:
            consumer.subscribe(topic)
            first = consumer.poll(PATIENCE_S, max_records=4)
            consumer.commit()
            assert consumer.committed() == {(topic, 0): len(first)}
        with Consumer(config) as consumer:
            consumer.subscribe(topic)
            rest = [message.text for message in consumer.until_end(PATIENCE_S)]
            assert rest == [str(number) for number in range(len(first), 10)]
            consumer.seek(topic, 0, 7)
            assert consumer.lag() == {(topic, 0): 3}
            again = consumer.consume_one(PATIENCE_S)
            assert again is not None and again.text == "7"

    def copy_exactly_once(self) -> None:
        topic, copy = topic_name("library", "from"), topic_name("library", "to")
        sending = ProducerConfig(self.servers, transactional_id=topic)
        reading = ConsumerConfig(self.servers, group_id=topic, enable_auto_commit=False)
        failures = 0
        with Producer(ProducerConfig(self.servers)) as producer:
            producer.send_batch(topic, ["a", "b", "c"])
        with Producer(sending) as producer, Consumer(reading) as consumer:
            consumer.subscribe(topic)
            while not consumer.assignment() or any(consumer.lag().values()):
                try:
                    with producer.transaction(consumer):
                        for message in consumer.poll(PATIENCE_S):
                            producer.send(copy, message.value)
                        if not failures:
                            failures += 1
                            raise RuntimeError("the first time")
                except RuntimeError:
                    continue
        assert self.texts(copy) == ["a", "b", "c"]

    def fence_a_zombie(self) -> None:
        topic = topic_name("library", "zombie")
        config = ProducerConfig(self.servers, transactional_id=topic)
        old = Producer(config).start()
        with Producer(config) as new, new.transaction():
            new.send(topic, "new")
        try:
            with old.transaction():
                old.send(topic, "old")
        except FencedError:
            return
        finally:
            old.close()
        raise AssertionError("the old producer was not fenced")

    def put_poison_aside(self) -> None:
        topic = topic_name("library", "poison")

        def handle(message: Message) -> None:
            int(message.text)

        with (
            Producer(ProducerConfig(self.servers)) as producer,
            Consumer(ConsumerConfig(self.servers)) as consumer,
        ):
            producer.send_batch(topic, ["1", "two", "3"])
            consumer.subscribe(topic)
            dead_letters = DeadLetters(producer, tries=2, backoff=Backoff(first_ms=1))
            for message in consumer.until_end(PATIENCE_S):
                dead_letters.handle(message, handle)
        assert self.texts(f"{topic}.dlq") == ["two"]

    def await_everything(self) -> None:
        asyncio.run(self._await_everything())

    async def _await_everything(self) -> None:
        topic = topic_name("library", "asyncio")
        async with AsyncProducer(ProducerConfig(self.servers)) as producer:
            assert (await producer.send_and_wait(topic, "0")).offset == 0
            many = [await producer.send(topic, str(number)) for number in range(1, COUNT)]
            settled = await asyncio.gather(*many)
            assert [delivery.offset for delivery in settled] == list(range(1, COUNT))
        async with AsyncConsumer(ConsumerConfig(self.servers, group_id=topic)) as consumer:
            await consumer.subscribe(topic)
            read = [message.text async for message in consumer.until_end(PATIENCE_S)]
        assert read == [str(number) for number in range(COUNT)]


def main() -> None:
    suite = Suite(sys.argv[1])
    checks = Checks((ClientError,))
    checks.check("send, batches, read to the end", suite.send_and_read)
    for protocol in ("classic", "consumer"):
        checks.check(
            f"a group goes on, commits, seeks, {protocol} protocol",
            lambda protocol=protocol: suite.go_on_in_a_group(protocol),  # type: ignore[misc]  # early bound
        )
    checks.check("copy exactly once after a failure", suite.copy_exactly_once)
    checks.check("a zombie is fenced", suite.fence_a_zombie)
    checks.check("poison goes to the dead letters", suite.put_poison_aside)
    checks.check("asyncio", suite.await_everything)
    checks.end()


if __name__ == "__main__":
    main()
