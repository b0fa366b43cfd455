"""The broker's own log: one line an event, safe to print, and never more than a reader can take.

What comes from the network (client ids, topic names) may hold line breaks or terminal codes:
they are escaped here, once, and long lines are cut. A message that repeats is let through a few
times a second and then counted.
"""

import logging
import time
from typing import Final

LINE_CHARACTERS_MAX: Final = 500
SAME_PER_SECOND_MAX: Final = 5
LEVELS: Final = ("debug", "info", "warning", "error")


class OneLine(logging.Formatter):
    """`2026-01-31T12:00:00.123Z WARNING broker.listener: text`"""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        stamp = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        name = record.name.removeprefix("runnel.")
        text = printable(record.getMessage())
        line = f"{stamp}.{int(record.msecs):03d}Z {record.levelname:<7} {name}: {text}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def printable(text: str) -> str:
    """The text on one line, without control characters, at most a few hundred characters."""
    if len(text) > LINE_CHARACTERS_MAX:
        text = text[:LINE_CHARACTERS_MAX] + "..."
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


class RateLimit(logging.Filter):
    """Lets the same message through a few times a second; says afterwards how many it held back."""

    def __init__(self) -> None:
        super().__init__()
        self._second = 0
        self._seen: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        second = int(record.created)
        if second != self._second:
            held_back = sum(
                count - SAME_PER_SECOND_MAX
                for count in self._seen.values()
                if count > SAME_PER_SECOND_MAX
            )
            self._second = second
            self._seen.clear()
            if held_back:
                record.msg = f"{record.msg} ({held_back} similar lines held back)"
        key = str(record.msg)
        self._seen[key] = self._seen.get(key, 0) + 1
        return self._seen[key] <= SAME_PER_SECOND_MAX


def configure(level: str) -> None:
    """Log to standard error from here on."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine())
    handler.addFilter(RateLimit())
    root = logging.getLogger("runnel")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
