"""The broker's own log: one line an event, safe to print, and never more than a reader can take.

What comes from the network (client ids, topic names) may hold line breaks or terminal codes:
they are escaped here, once, and long lines are cut. A message that repeats is let through a few
times a second and then counted.
"""

import json
import logging
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from runnel.config.settings import OwnLog

LINE_CHARACTERS_MAX: Final = 500
SAME_PER_SECOND_MAX: Final = 5


class OneLine(logging.Formatter):
    """`2026-01-31T12:00:00.123Z WARNING broker.listener: text`"""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        text = printable(record.getMessage())
        line = f"{self.stamp(record)} {record.levelname:<7} {_source(record)}: {text}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line

    def stamp(self, record: logging.LogRecord) -> str:
        return f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}Z"


class JsonLine(OneLine):
    """`{"time": "...", "level": "warning", "logger": "broker.listener", "message": "text"}`"""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": self.stamp(record),
            "level": record.levelname.lower(),
            "logger": _source(record),
            "message": printable(record.getMessage()),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def _source(record: logging.LogRecord) -> str:
    return record.name.removeprefix("runnel.")


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


class Fanout(logging.Handler):
    """One filter and one formatting for standard error and, where there is one, the file."""

    def __init__(self, targets: list[logging.Handler]) -> None:
        super().__init__()
        self._targets = targets
        self.addFilter(RateLimit())

    def emit(self, record: logging.LogRecord) -> None:
        for target in self._targets:
            target.handle(record)

    def close(self) -> None:
        for target in self._targets:
            target.close()
        super().close()


def configure(own: "OwnLog") -> None:
    """Log to standard error, and to the file if there is one, from here on. Raises ConfigError."""
    targets: list[logging.Handler] = [logging.StreamHandler()]
    if own.file is not None:
        from runnel.cli.log_file import RotatingFile  # most brokers have none

        targets.append(RotatingFile(own.file, own.file_max_bytes, own.file_retention_days))
    for target in targets:
        target.setFormatter(JsonLine() if own.format == "json" else OneLine())
    root = logging.getLogger("runnel")
    for old in root.handlers:
        old.close()
    root.handlers[:] = [Fanout(targets)]
    root.setLevel(own.level.upper())
    root.propagate = False
