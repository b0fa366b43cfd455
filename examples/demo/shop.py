"""A shop on the web: its visitors' clicks and orders, a day of them and then as they come.

Few visitors come at night, most at noon and in the evening. They look at the start page,
at some items, put one into the basket, and some pay. One old till sends orders that nobody can
read, and yesterday something went wrong in one city; the demo finds out what.
"""

import json
import random
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from math import exp
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer

ORDERS, CLICKS = "orders", "clicks"
CITIES = {"Berlin": 8, "Lyon": 6, "Porto": 5, "Gdansk": 4, "Turin": 3}
ITEMS = {"tea": 4.9, "cups": 18.0, "kettle": 39.0, "honey": 7.5, "tray": 24.0, "teapot": 59.0}
CUSTOMERS = 5_000
LOOKS = (1, 1, 2, 2, 3, 5)  # at so many items
TO_BASKET, TO_CHECKOUT, PAYS = 0.4, 0.7, 0.9
UNREADABLE = 0.004  # of the orders
SEED = 20261116
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
OUTAGE_MS = 90 * MINUTE_MS
TICK_S = 0.02


class Outage(NamedTuple):
    """Whoever wants to pay there cannot; everything else goes on."""

    city: str
    start_ms: int
    end_ms: int


class Event(NamedTuple):
    topic: str
    key: str
    value: str
    at_ms: int


class Visitors:
    """Where the records come from: the same day for the same seed and the same moment."""

    def __init__(self, now_ms: int, outage_city: str = "Lyon") -> None:
        self._random = random.Random(SEED)
        self._orders = 0
        start_ms = _busy_hour(now_ms)
        self.outage = Outage(outage_city, start_ms, start_ms + OUTAGE_MS)

    def day(self, now_ms: int, visits: int) -> Iterator[Event]:
        """The 24 hours before, in order of time, about so many visits."""
        first = now_ms - DAY_MS
        minutes = [first + number * MINUTE_MS for number in range(DAY_MS // MINUTE_MS)]
        share = visits / sum(busyness(at) for at in minutes)
        left = 0.0
        for at in minutes:
            left += share * busyness(at)
            count, left = int(left), left % 1
            started = sorted(at + self._random.randrange(MINUTE_MS) for _ in range(count))
            for start in started:
                yield from self.visit(start, last_ms=now_ms)

    def visit(self, at_ms: int, last_ms: int) -> Iterator[Event]:
        """What one visitor does within a minute or two; not after `last_ms`."""
        pick = self._random
        city = pick.choices(list(CITIES), list(CITIES.values()))[0]
        customer = f"c{int(CUSTOMERS * pick.random() ** 2):04}"
        item = pick.choice(list(ITEMS))
        pages = ["start", *(["item"] * pick.choice(LOOKS))]
        if pick.random() < TO_BASKET:
            pages.append("basket")
            if pick.random() < TO_CHECKOUT:
                pages.append("checkout")
        for page in pages:
            at_ms = min(last_ms, at_ms + pick.randrange(500, 15_000))
            told = {"customer": customer, "city": city, "page": page, "item": item}
            yield Event(CLICKS, customer, json.dumps(told), at_ms)
        if pages[-1] == "checkout" and pick.random() < PAYS and not self._is_out(city, at_ms):
            yield self._order(customer, city, item, at_ms)

    def _is_out(self, city: str, at_ms: int) -> bool:
        return city == self.outage.city and self.outage.start_ms <= at_ms < self.outage.end_ms

    def _order(self, customer: str, city: str, item: str, at_ms: int) -> Event:
        self._orders += 1
        pieces = self._random.choice((1, 1, 1, 2, 3))
        told = {
            "order_id": self._orders,
            "customer": customer,
            "city": city,
            "item": item,
            "pieces": pieces,
            "amount": round(pieces * ITEMS[item], 2),
        }
        text = json.dumps(told)
        if self._random.random() < UNREADABLE:
            text = text[: len(text) // 2]  # the old till
        return Event(ORDERS, customer, text, at_ms)


def _busy_hour(now_ms: int) -> int:
    """The last noon that is some hours ago and less than a day, else the last evening."""
    midnight = now_ms // DAY_MS * DAY_MS
    for start_ms in (midnight + hour * HOUR_MS for hour in (12, -12, -5)):
        if now_ms - 23 * HOUR_MS < start_ms < now_ms - 3 * HOUR_MS:
            return start_ms
    return now_ms - 12 * HOUR_MS


def busyness(at_ms: int) -> float:
    """How many come at this time of the day (UTC), against the busiest: around noon and eight."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    hour = at.hour + at.minute / 60
    noon, evening = (exp(-(((hour - peak) / 2.6) ** 2)) for peak in (12.5, 20.0))
    return 0.08 + 0.75 * noon + 0.92 * evening


class Shop(threading.Thread):
    """Sends a day of records, then stays open: a thread that sends as visitors come."""

    def __init__(self, servers: str, visits_per_s: float) -> None:
        super().__init__(name="shop", daemon=True)
        self.sent = {ORDERS: 0, CLICKS: 0}  # acknowledged by the broker
        self.failed = 0
        self.opened_ms = 0  # the end of the day, after which visitors are many more
        self._visits_per_s = visits_per_s
        self._closed = threading.Event()
        self.visitors = Visitors(round(time.time() * 1000))
        # Idempotent: what is sent again because the broker was away is there once all the same.
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "linger.ms": 20,
                "compression.type": "lz4",
                "queue.buffering.max.messages": 1_000_000,
                "log_level": 0,
            }
        )

    def send_a_day(self, visits: int) -> None:
        self.opened_ms = round(time.time() * 1000)
        for number, event in enumerate(self.visitors.day(self.opened_ms, visits)):
            self._send(event)
            if number % 1000 == 0:
                self._producer.poll(0)
        self._flush()

    def run(self) -> None:
        began, visits = time.monotonic(), 0
        while not self._closed.wait(TICK_S):
            now_ms = round(time.time() * 1000)
            while visits < (time.monotonic() - began) * self._visits_per_s:
                visits += 1
                for event in self.visitors.visit(now_ms, last_ms=now_ms):
                    self._send(event)
            self._producer.poll(0)
        self._flush()

    def close(self) -> None:
        self._closed.set()
        self.join()

    def _send(self, event: Event) -> None:
        self._producer.produce(
            event.topic,
            event.value,
            event.key,
            timestamp=event.at_ms,
            on_delivery=self._delivered,
        )

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.sent[message.topic() or ""] += 1
        else:
            self.failed += 1

    def _flush(self) -> None:
        left = self._producer.flush(60)
        assert left == 0, f"{left} records were not acknowledged within a minute"
