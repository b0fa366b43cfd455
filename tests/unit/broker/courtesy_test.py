"""Readers give way while somebody produces, and for no longer than it takes to know of it."""

from runnel.broker.courtesy import (
    LATELY_MS,
    LOOK_EVERY_MS,
    QUIET_TURN_BYTES_MAX,
    TURN_BYTES_MAX,
    Courtesy,
)
from runnel.metrics import PRODUCED_BYTES, Metrics
from tests.support.stores import ManualClock


def test_who_produces_now_is_given_way_for_a_second() -> None:
    clock, metrics = ManualClock(), Metrics()
    courtesy = Courtesy(clock, metrics)
    clock.advance(LOOK_EVERY_MS)
    metrics.slots[PRODUCED_BYTES] += 1
    assert courtesy.is_due()
    clock.advance(LATELY_MS - 1)
    assert courtesy.is_due()
    clock.advance(LOOK_EVERY_MS)
    assert not courtesy.is_due()


def test_what_was_produced_some_time_ago_delays_the_first_reader_by_one_look() -> None:
    clock, metrics = ManualClock(), Metrics()
    courtesy = Courtesy(clock, metrics)
    metrics.slots[PRODUCED_BYTES] += 1_000_000
    clock.advance(60_000)
    assert courtesy.is_due(), "it may have been just now"
    clock.advance(LOOK_EVERY_MS)
    assert not courtesy.is_due(), "it was not"


def test_who_goes_on_producing_is_given_way_from_the_first_look() -> None:
    clock, metrics = ManualClock(), Metrics()
    courtesy = Courtesy(clock, metrics)
    clock.advance(60_000)
    for _ in range(3):
        metrics.slots[PRODUCED_BYTES] += 1
        assert courtesy.is_due()
        clock.advance(LOOK_EVERY_MS)
    assert courtesy.is_due(), "within the second after the last look that saw it"


def test_much_is_sent_at_once_only_while_nobody_produces() -> None:
    clock, metrics = ManualClock(), Metrics()
    courtesy = Courtesy(clock, metrics)
    assert courtesy.warm_turn_bytes() == QUIET_TURN_BYTES_MAX
    clock.advance(LOOK_EVERY_MS)
    metrics.slots[PRODUCED_BYTES] += 1
    assert courtesy.warm_turn_bytes() == TURN_BYTES_MAX
