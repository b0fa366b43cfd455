"""Those who work during the tour: a shop that sends orders, and cooks who share them as a group."""

import itertools
import json
import threading
import time
from functools import partial

from runnel.client import Consumer, ConsumerConfig, Delivery, Message, Producer, ProducerConfig
from runnel.client.cluster import ClientError, Cluster, addresses_of
from runnel.client.group_lag import Lag, lags_of
from runnel.client.groups import describe_group

TOPIC, GROUP = "orders", "kitchen"
DISHES = ("tea", "cake", "tea", "soup", "coffee")
TABLES = 20
ORDERS_PER_S = 100
PREPARING_S = 0.025


class Shop(threading.Thread):
    """Sends a hundred orders a second, and remembers which ones the broker has acknowledged."""

    def __init__(self, servers: str) -> None:
        super().__init__(name="shop", daemon=True)
        self.acknowledged: set[int] = set()
        self._producer = Producer(ProducerConfig(servers, client_id="shop"))
        self._is_closed = threading.Event()

    def run(self) -> None:
        with self._producer as producer:  # the end waits for all that is on its way
            for number in itertools.count(1):
                if self._is_closed.wait(1 / ORDERS_PER_S):
                    break
                order = json.dumps({"order": number, "dish": DISHES[number % len(DISHES)]})
                remember = partial(self._remember, number)
                producer.send(TOPIC, order, f"table {number % TABLES}", on_delivery=remember)

    def _remember(self, number: int, delivery: Delivery) -> None:
        if delivery.error is None:
            self.acknowledged.add(number)

    def stop(self) -> None:
        self._is_closed.set()
        self.join()


class Cook(threading.Thread):
    """Prepares what its partitions hold, one after the other, forty a second."""

    def __init__(self, servers: str, number: int) -> None:
        super().__init__(name=f"cook {number}", daemon=True)
        self.done: set[int] = set()
        config = ConsumerConfig(
            servers,
            group_id=GROUP,
            client_id=f"cook-{number}",
            auto_commit_interval_ms=500,
            extra={"heartbeat.interval.ms": 500},  # notices a new cook soon
        )
        self._consumer = Consumer(config)

    def run(self) -> None:
        with self._consumer as consumer:  # the end commits what was done, and leaves the group
            consumer.subscribe(TOPIC)
            consumer.start_consuming(self._prepare)

    def _prepare(self, order: Message) -> None:
        time.sleep(PREPARING_S)
        self.done.add(order.json()["order"])

    def stop(self) -> None:
        self._consumer.stop()
        self.join()


def lags(servers: str) -> list[Lag]:
    """What each partition holds and how much of it is done; nothing while nobody answers."""
    try:
        with Cluster(addresses_of(servers)) as cluster:
            return lags_of(cluster, describe_group(cluster, GROUP))
    except ClientError:
        return []
