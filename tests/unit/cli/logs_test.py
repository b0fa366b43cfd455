"""Goal: a log line is one line, whatever a client put into it, and a flood of them is held back."""

import logging

import pytest

from runnel.cli.logs import LINE_CHARACTERS_MAX, SAME_PER_SECOND_MAX, OneLine, RateLimit, printable


def record(message: str, *args: object, created: float = 0.0) -> logging.LogRecord:
    made = logging.LogRecord("runnel.broker.x", logging.INFO, "f", 1, message, args, None)
    made.created = created
    return made


@pytest.mark.parametrize(
    "hostile", ["a\nb", "a\r\nINFO forged", "\x1b[2J", "tab\there", "\u202eevil"]
)
def test_what_a_client_sends_cannot_start_a_line_or_move_the_cursor(hostile: str) -> None:
    line = OneLine().format(record("client id %s", hostile))
    assert line.isprintable()
    assert "runnel" not in line.split(": ")[0], "the package is left out of the name"


def test_long_lines_are_cut() -> None:
    assert len(printable("x" * 10_000)) <= LINE_CHARACTERS_MAX + 3


def test_a_repeated_message_is_held_back_and_counted() -> None:
    limit = RateLimit()
    passed = [limit.filter(record("connection refused", created=5.0)) for _ in range(100)]
    assert passed.count(True) == SAME_PER_SECOND_MAX
    assert limit.filter(record("something else", created=5.5))
    later = record("connection refused", created=6.0)
    assert limit.filter(later)
    assert f"{100 - SAME_PER_SECOND_MAX} similar lines held back" in later.getMessage()
