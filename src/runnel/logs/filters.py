"""Which lines are wanted: by time, level, service, fields and words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from runnel.logs.lines import Line, level_at_least, parsed
from runnel.logs.query import Query

# Fields by these names are what a line has anyway.
OWN_FIELDS: Final = ("service", "logger", "host", "pid", "thread", "level")


class LogRecord(NamedTuple):
    """A record and where it is."""

    partition: int
    offset: int
    timestamp_ms: int
    value: bytes


@dataclass(frozen=True)
class Filters:
    """All that is given has to hold."""

    query: Query = Query()  # noqa: RUF009  # a tuple, which nobody can change
    level: str | None = None  # at least
    services: tuple[str, ...] = ()  # one of them
    fields: Mapping[str, str] = field(default_factory=dict)
    since_ms: int | None = None
    until_ms: int | None = None  # exclusive

    def found(self, record: LogRecord) -> Line | None:
        """The line, if it is wanted."""
        if not self.is_in_time(record.timestamp_ms):
            return None
        line = parsed(record.value)
        return line if self.matches(line) else None

    def is_in_time(self, timestamp_ms: int) -> bool:
        if self.since_ms is not None and timestamp_ms < self.since_ms:
            return False
        return self.until_ms is None or timestamp_ms < self.until_ms

    def matches(self, line: Line) -> bool:
        """All but the time."""
        if self.level is not None and not level_at_least(line.level, self.level):
            return False
        if self.services and line.service not in self.services:
            return False
        if any(field_of(line, name) != text for name, text in self.fields.items()):
            return False
        return self.query.matches(searched(line))


def field_of(line: Line, name: str) -> str | None:
    """None if the line has no such field; what the application called a field goes first."""
    found = line.fields.get(name)
    if found is None and name in OWN_FIELDS:
        own: str = getattr(line, name)
        return own or None
    return found


def searched(line: Line) -> str:
    """The text that words are looked for in: message, fields as they are shown, exception."""
    if not line.fields and not line.exception:
        return line.message
    parts = [line.message, *(f"{name}={text}" for name, text in line.fields.items())]
    if line.exception:
        parts.append(line.exception)
    return "\n".join(parts)
