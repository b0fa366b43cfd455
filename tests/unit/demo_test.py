"""The parts of `make demo` without a broker: the shop's day, what is found in it, its picture."""

import json
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "examples" / "demo"))

from findings import Day, Slot, find_out
from plot import Found, Panel, blocks, hours, svg
from shop import CLICKS, DAY_MS, HOUR_MS, ORDERS, OUTAGE_MS, Visitors

NOW_MS = 1_795_000_000_000


def test_a_day_is_in_order_and_the_same_for_the_same_moment() -> None:
    events = list(Visitors(NOW_MS).day(NOW_MS, 2000))
    assert events == list(Visitors(NOW_MS).day(NOW_MS, 2000))
    assert min(event.at_ms for event in events) >= NOW_MS - DAY_MS
    assert max(event.at_ms for event in events) <= NOW_MS
    counts = Counter(event.topic for event in events)
    assert counts[CLICKS] > 4 * counts[ORDERS] > 800
    hour = [event.at_ms // HOUR_MS % 24 for event in events]
    assert hour.count(20) > 5 * hour.count(4), "nights are quiet"


def test_nobody_pays_where_it_is_out() -> None:
    visitors = Visitors(NOW_MS)
    out = visitors.outage
    paid, clicked = Counter[str](), Counter[str]()
    for event in visitors.day(NOW_MS, 20_000):
        if not out.start_ms <= event.at_ms < out.end_ms:
            continue
        if event.topic == CLICKS:
            clicked[json.loads(event.value)["city"]] += 1
        elif event.value.endswith("}"):  # else it is of the old till
            paid[json.loads(event.value)["city"]] += 1
    assert clicked[out.city] > 100 and paid[out.city] == 0
    assert len(paid) == 4


@pytest.mark.parametrize("hour", range(24))
def test_the_outage_is_within_the_day(hour: int) -> None:
    now_ms = NOW_MS // DAY_MS * DAY_MS + hour * HOUR_MS + 123_456
    outage = Visitors(now_ms).outage
    assert now_ms - DAY_MS < outage.start_ms and outage.start_ms + OUTAGE_MS < now_ms


def test_what_is_found_is_where_most_could_not_pay() -> None:
    good, out, quiet = Slot(9, 8), Slot(9, 0), Slot(1, 0)
    cities = {"Porto": [good, quiet, quiet, good, good], "Lyon": [good, good, out, out, good]}
    starts = [12 * HOUR_MS + number * 600_000 for number in range(5)]
    city, found = find_out(Day(starts, [0] * 5, [0] * 5, cities))
    assert (city, found.first, found.end) == ("Lyon", 2, 4)
    assert found.note == "Lyon, 12:20 to 12:40: 18 at the checkout, not one order"


def test_the_pictures() -> None:
    starts = [number * 600_000 for number in range(144)]
    values = [float(number % 12) for number in range(144)]
    text = svg("A <day>", starts, [Panel("n", "#000", values)], Found(3, 6, "a & b"))
    drawn = ET.fromstring(text)
    assert len(drawn.findall("{http://www.w3.org/2000/svg}rect")) == 145
    chart = blocks([0, 1, 2, 4], columns=4, rows=2)
    assert chart == ["   █", " ▄██"]
    assert hours(starts, 72).split() == [
        "00:00",
        "03:00",
        "06:00",
        "09:00",
        "12:00",
        "15:00",
        "18:00",
        "21:00",
    ]
