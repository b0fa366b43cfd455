"""Goal: a flood of lines is held back and counted, and hides nothing that is different."""

import logging
import time

import pytest

from runnel.cli import logs
from runnel.cli.log_limits import INTERVAL_S, PLACE_MAX, PLACES_MAX, SAME_MAX, RateLimit


def record(message: str, *args: object, created: float = 1.0, line: int = 1) -> logging.LogRecord:
    made = logging.LogRecord("runnel.x", logging.WARNING, "f.py", line, message, args, None)
    made.created = created
    return made


def test_the_same_line_passes_a_few_times_and_the_rest_is_told_once() -> None:
    limit = RateLimit()
    assert not limit.begin(1.0)
    passed = [limit.admits(record("%s is refused", "10.0.0.9")) for _ in range(1239)]
    assert passed.count(True) == SAME_MAX
    assert limit.admits(record("%s is refused", "10.0.0.5")), "another peer is not hidden by it"
    assert not limit.is_over(1.0 + INTERVAL_S - 0.1) and limit.is_over(1.0 + INTERVAL_S)
    (summary,) = limit.begin(1.0 + INTERVAL_S)
    assert summary.getMessage() == (
        "and 1,234 more like it within 10 s, the last: 10.0.0.9 is refused"
    )
    assert (summary.levelname, summary.name) == ("WARNING", "runnel.x")
    assert limit.admits(record("%s is refused", "10.0.0.9")), "a new interval"
    assert not limit.begin(100.0), "nothing was held back in it"


def test_different_lines_of_one_place_are_limited_too() -> None:
    limit = RateLimit()
    limit.begin(1.0)
    passed = [limit.admits(record("client %d", number)) for number in range(10_000)]
    assert passed.count(True) == PLACE_MAX
    assert limit.admits(record("something else", line=2))


def test_the_table_is_bounded() -> None:
    limit = RateLimit()
    limit.begin(1.0)
    for line in range(3 * PLACES_MAX):
        for text in ("one", "other"):
            limit.admits(record(text, line=line))
    seen = limit._places
    assert len(seen) <= PLACES_MAX + 1
    assert all(len(each.lines) <= PLACE_MAX for each in seen.values())


def test_a_clock_that_is_put_back_does_not_silence_the_log() -> None:
    limit = RateLimit()
    limit.begin(1000.0)
    assert limit.is_over(999.0)


def test_what_was_held_back_is_told_even_if_nothing_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "INTERVAL_S", 0.05)
    told: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    fanout = logs.Fanout([Kept()])
    for _ in range(8):
        fanout.handle(record("again", created=time.time()))
    deadline = time.monotonic() + 10
    while len(told) <= SAME_MAX and time.monotonic() < deadline:
        time.sleep(0.01)
    assert told == ["again"] * SAME_MAX + ["and 3 more like it within 10 s, the last: again"]
    fanout.close()
