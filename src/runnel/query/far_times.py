"""Times beyond the years 1 to 9999, which Python's datetime does not have, as texts."""

from datetime import UTC, datetime, timedelta
from typing import Final

CYCLE_YEARS: Final = 400  # after which the calendar begins anew
CYCLE_US: Final = 146_097 * 86_400 * 1_000_000
BEGIN: Final = datetime(1970, 1, 1, tzinfo=UTC)


def time_text(us: int, digits: str = "milliseconds") -> str:
    """Microseconds since 1970 in ISO 8601, in UTC; `digits` as `isoformat` takes them."""
    cycles, rest_us = divmod(us, CYCLE_US)
    moment = BEGIN + timedelta(microseconds=rest_us)
    text = moment.isoformat(timespec=digits).replace("+00:00", "Z")
    year = moment.year + CYCLE_YEARS * cycles
    return f"{'-' if year < 0 else ''}{abs(year):04}{text[4:]}"
