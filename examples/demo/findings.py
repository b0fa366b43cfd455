"""What is asked of the table and of the topics, with `runnel sql`, and what comes out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from plot import Found
from shop import ORDERS, Shop
from tour import Tour

COUNTED = "clicks_by_city"
LAKE = ("--lake", "sales=lake/orders")
DEAD = ("--lake", "unread=lake/orders__dlq")
SLOT_MS = 600_000

BY_CITY = """\
select city, count(*) as orders, round(sum(amount)) as revenue
from sales group by city order by revenue desc"""
PAID = f"""\
select city, hour, checkouts, coalesce(orders, 0) as orders
from (select city, from_ms // 3600000 % 24 as hour, sum(checkouts) as checkouts
      from {COUNTED} group by all)
left join (select city, epoch_ms(ordered_at) // 3600000 % 24 as hour, count(*) as orders
      from sales group by all) using (city, hour)
where checkouts >= 10 order by coalesce(orders, 0) / checkouts limit 3"""
SLOTS = f"""\
with paid as (
  select city, epoch_ms(ordered_at) // {SLOT_MS} * {SLOT_MS} as from_ms, count(*) as orders
  from sales group by all)
select from_ms, city, clicks, checkouts, coalesce(orders, 0) as orders
from {COUNTED} left join paid using (city, from_ms) order by from_ms, city"""


@dataclass(frozen=True)
class Slot:
    checkouts: int
    orders: int


@dataclass(frozen=True)
class Day:
    """Figures for every ten minutes."""

    starts_ms: Sequence[int]
    clicks: Sequence[int]
    orders: Sequence[int]
    cities: Mapping[str, Sequence[Slot]]

    def orders_of(self, city: str) -> list[int]:
        return [slot.orders for slot in self.cities[city]]


def look_at(tour: Tour, topic: str) -> None:
    tour.type("sql", f"select timestamp, city, item, amount from {topic} limit 3", seconds=2)


def account(tour: Tour, shop: Shop) -> None:
    """Every order that was acknowledged is in the table or among the dead letters, and once."""
    (table,) = _asked(tour, "select count(*) as n, count(distinct order_id) as d from sales", *LAKE)
    (dead,) = _asked(tour, "select count(*) as n from unread", *DEAD)
    sent = shop.sent[ORDERS]
    lost, twice = sent - table["d"] - dead["n"], table["n"] - table["d"]
    tour.result(
        f"{sent:,} orders were acknowledged: {table['n']:,} are in the table, {dead['n']:,} that"
        f" nobody can read\nwere set aside. Lost: {lost}. Twice: {twice}."
    )
    if lost or twice:
        raise RuntimeError("this must not happen; please tell us")


def ask(tour: Tour) -> None:
    tour.chapter(
        "SQL", "Over the table and over topics; no Spark runs any more, nothing was loaded."
    )
    tour.type("sql", BY_CITY, *LAKE, seconds=3)
    tour.say("", "Both together: where did most people at the checkout not pay?")
    tour.type("sql", PAID, *LAKE, seconds=3)


def read_day(tour: Tour, shop: Shop) -> Day:
    asked = _asked(tour, SLOTS, *LAKE)
    rows = [row for row in asked if row["from_ms"] + SLOT_MS <= shop.opened_ms]
    first, last = rows[0]["from_ms"], rows[-1]["from_ms"]
    starts = list(range(first, last + 1, SLOT_MS))
    cities = sorted({row["city"] for row in rows})
    by_place = {(row["city"], row["from_ms"]): row for row in rows}
    empty = {"clicks": 0, "checkouts": 0, "orders": 0}

    def figures(city: str, start: int) -> dict[str, Any]:
        return by_place.get((city, start), empty)

    return Day(
        starts,
        [sum(figures(city, start)["clicks"] for city in cities) for start in starts],
        [sum(figures(city, start)["orders"] for city in cities) for start in starts],
        {
            city: [
                Slot(figures(city, start)["checkouts"], figures(city, start)["orders"])
                for start in starts
            ]
            for city in cities
        },
    )


def find_out(day: Day) -> tuple[str, Found]:
    """The city and the time at which most people were at the checkout and nobody could pay."""
    worst, city = (0, 0, 0), ""
    for name, slots in day.cities.items():
        first = checkouts = 0
        for index, slot in enumerate([*slots, Slot(0, 1)]):
            if slot.orders == 0:
                checkouts += slot.checkouts
                continue
            if checkouts > worst[0]:
                worst, city = (checkouts, first, index), name
            first, checkouts = index + 1, 0
    checkouts, first, end = worst
    times = (day.starts_ms[first], day.starts_ms[end - 1] + SLOT_MS)
    start, until = (f"{datetime.fromtimestamp(at / 1000, UTC):%H:%M}" for at in times)
    note = f"{city}, {start} to {until}: {checkouts} at the checkout, not one order"
    return city, Found(first, end, note)


def _asked(tour: Tour, query: str, *arguments: str) -> list[dict[str, Any]]:
    printed = tour.run("sql", query, *arguments, "--format", "json").strip()
    if printed.startswith("["):
        found: list[dict[str, Any]] = json.loads(printed)
        return found
    return [json.loads(line) for line in printed.splitlines()]
