"""How much of one kind is written: the same line a few times, one place of the code some more.

Within an interval the same line passes a few times, and different lines of the same place (a
hundred clients that are turned away) some more often. What is held back is counted, and told once
at the end of the interval with the last of it as an example. The table is bounded: places are
lines of our own code, and of each line only a hash is kept.
"""

import logging
from typing import Final

INTERVAL_S: Final = 10.0
SAME_MAX: Final = 5
PLACE_MAX: Final = 100
PLACES_MAX: Final = 1000

Place = tuple[str, int]
_OTHERS: Final[Place] = ("", 0)


class _Seen:
    __slots__ = ("held_back", "last", "lines", "passed")

    def __init__(self) -> None:
        self.lines: dict[int, int] = {}
        self.passed = 0
        self.held_back = 0
        self.last: logging.LogRecord | None = None


class RateLimit:
    """Time is what the records say, so that a burst is judged by when it happened."""

    def __init__(self) -> None:
        self._began_s = 0.0
        self._places: dict[Place, _Seen] = {}

    def is_over(self, now_s: float) -> bool:
        """Also after the clock was put back."""
        return not self._began_s <= now_s < self._began_s + INTERVAL_S

    def admits(self, record: logging.LogRecord) -> bool:
        place: Place = (record.pathname, record.lineno)
        seen = self._places.get(place)
        if seen is None:
            if len(self._places) >= PLACES_MAX:
                place = _OTHERS
            seen = self._places.setdefault(place, _Seen())
        if seen.passed < PLACE_MAX:
            line = hash(record.getMessage())
            count = seen.lines.get(line, 0) + 1
            seen.lines[line] = count
            if count <= SAME_MAX:
                seen.passed += 1
                return True
        seen.held_back += 1
        seen.last = record
        return False

    def begin(self, now_s: float) -> list[logging.LogRecord]:
        """A new interval; what there is to tell of the last one."""
        held = [seen for seen in self._places.values() if seen.last is not None]
        self._places = {}
        self._began_s = now_s
        return [_summary(seen.last, seen.held_back) for seen in held if seen.last is not None]


def _summary(last: logging.LogRecord, count: int) -> logging.LogRecord:
    told = logging.makeLogRecord(last.__dict__)
    told.msg = f"and {count:,} more like it within {INTERVAL_S:.0f} s, the last: %s"
    told.args = (last.getMessage(),)
    told.exc_info = told.exc_text = told.stack_info = None
    told.__dict__["held_back"] = count
    return told
