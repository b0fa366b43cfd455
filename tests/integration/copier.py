"""A program of its own that copies a topic exactly once, with confluent-kafka, until it is ended.

    python -m tests.integration.copier BOOTSTRAP --name NAME --transactional-id ID ...

Each transaction takes up to so many messages of `input`, writes them to the same partition of
`output`, and commits the group's offsets with them. After an error that allows it, the transaction
is aborted and the messages are read again; after any other the program ends with status 3, and
whoever runs it starts it anew. So it does, with status 4, when nothing goes on for a while.
"""

import argparse
import os
import threading
import time
from typing import Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from runnel.client.librdkafka import for_transactions
from tests.support.reading import place_of

INPUT: Final = "input"
OUTPUT: Final = "output"
GROUP: Final = "exactly-once"
FENCED: Final = 3
STUCK: Final = 4
STUCK_AFTER_S: Final = 25.0
FAST: Final = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "log_level": 0}


class Watchdog:
    """Ends the program unless it is told often enough that something goes on."""

    def __init__(self) -> None:
        self.told_at = time.monotonic()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        last = time.monotonic()
        while True:
            time.sleep(0.5)
            now = time.monotonic()
            if now - last > 5:  # this process was stopped, and is not to be blamed
                self.told_at = now
            last = now
            if now - self.told_at > STUCK_AFTER_S:
                print("stuck", flush=True)
                os._exit(STUCK)


class Fatal:
    """An error after which a client does nothing any more; it is told by a callback alone."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None

    def told(self, error: KafkaError) -> None:
        if error.fatal() or error.code() == KafkaError._FATAL:
            self.error = error

    def ensure_none(self) -> None:
        if self.error is not None:
            raise KafkaException(self.error)


def take(consumer: Consumer, count: int, patience_s: float, fatal: Fatal) -> list[Message]:
    """Up to so many messages; fewer if none comes for a while."""
    taken: list[Message] = []
    deadline = time.monotonic() + patience_s
    while len(taken) < count and time.monotonic() < deadline:
        fatal.ensure_none()
        for message in consumer.consume(count - len(taken), 0.1):
            error = message.error()
            if error is None:
                taken.append(message)
            elif error.code() == KafkaError._FENCED or error.fatal():
                raise KafkaException(error)
    return taken


def next_positions(messages: list[Message]) -> list[TopicPartition]:
    after: dict[int, int] = {}
    for message in messages:
        place = place_of(message)
        after[place.partition] = place.offset + 1
    return [TopicPartition(INPUT, index, offset) for index, offset in sorted(after.items())]


def rewind(consumer: Consumer) -> None:
    """To what the group committed: the messages of an aborted transaction come again."""
    assigned = consumer.assignment()
    if assigned:
        for position in consumer.committed(assigned, 30):
            if position.offset < 0:
                position.offset = OFFSET_BEGINNING
            consumer.seek(position)


def retrying(producer: Producer, call: str, *arguments: object) -> None:
    while True:
        try:
            getattr(producer, call)(*arguments)
            return
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


def copy(consumer: Consumer, producer: Producer, per_transaction: int, fatal: Fatal) -> None:
    messages = take(consumer, per_transaction, 2.0, fatal)
    if not messages:
        return
    producer.begin_transaction()
    try:
        for message in messages:
            producer.produce(OUTPUT, message.value(), partition=place_of(message).partition)
            producer.poll(0)
        retrying(
            producer,
            "send_offsets_to_transaction",
            next_positions(messages),
            consumer.consumer_group_metadata(),
            30,
        )
        retrying(producer, "commit_transaction", 30)
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        retrying(producer, "abort_transaction", 30)
        rewind(consumer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("--name", required=True)
    parser.add_argument("--transactional-id", required=True)
    parser.add_argument("--instance-id")
    parser.add_argument("--protocol", choices=("classic", "consumer"), default="classic")
    parser.add_argument("--per-transaction", type=int, default=750)
    options = parser.parse_args()
    fatal = Fatal()
    settings: dict[str, object] = {
        "bootstrap.servers": options.bootstrap,
        "client.id": options.name,
        "group.id": GROUP,
        "group.protocol": options.protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "error_cb": fatal.told,
        **FAST,
    }
    if options.protocol == "classic":
        settings |= {"session.timeout.ms": 20_000, "heartbeat.interval.ms": 500}
    if options.instance_id:
        settings["group.instance.id"] = options.instance_id
    consumer = Consumer(settings)
    producer = Producer(
        {
            "bootstrap.servers": options.bootstrap,
            "client.id": options.name,
            "transactional.id": options.transactional_id,
            "transaction.timeout.ms": 20_000,
            "linger.ms": 2,
            **for_transactions(),
            **FAST,
        }
    )
    try:
        retrying(producer, "init_transactions", 30)
        consumer.subscribe([INPUT])
        watchdog = Watchdog()
        while True:
            copy(consumer, producer, options.per_transaction, fatal)
            watchdog.told_at = time.monotonic()
    except KafkaException as error:
        print(f"{options.name}: {error}", flush=True)
        os._exit(FENCED)  # what a fenced client would still say at its end is not waited for


if __name__ == "__main__":
    main()
