"""The broker's own log: one line an event, safe to print, and never more than a reader can take.

People read the text, programs the fields: whoever logs puts all that a person needs into the
message, and what a program would search for (topic, partition, client_id, peer, ...) also into
`extra=`. What comes from the network (client ids, topic names) may hold line breaks, terminal codes
or secrets: they are escaped and hidden here, once, and long values are cut.
"""

import json
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TextIO

from runnel.cli.log_limits import INTERVAL_S, RateLimit
from runnel.cli.log_secrets import Secrets

if TYPE_CHECKING:
    from runnel.config.settings import OwnLog

LINE_CHARACTERS_MAX: Final = 500
EXAMINED_CHARACTERS_MAX: Final = 4 * LINE_CHARACTERS_MAX  # for secrets, before the text is cut
STACK_CHARACTERS_MAX: Final = 16_000
FIELDS_MAX: Final = 32

# What every record has; the rest is what its caller gave as `extra`.
_OWN_ATTRIBUTES: Final = frozenset(logging.makeLogRecord({}).__dict__) | {
    *("message", "asctime", "taskName", "time", "level", "logger", "exception"),
}
_NO_SECRETS: Final = Secrets({})
_everywhere: Final[dict[str, object]] = {}  # of a process, as the loggers are: broker and cluster


class OneLine(logging.Formatter):
    """`2026-01-31T12:00:00.123Z WARNING broker.listener: text`"""

    converter = staticmethod(time.gmtime)

    def __init__(self, secrets: Secrets = _NO_SECRETS) -> None:
        super().__init__()
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        text = self.safe(record.getMessage())
        line = f"{self.stamp(record)} {record.levelname:<7} {_source(record)}: {text}"
        for indented in self.stack(record):
            line += f"\n    {indented}"  # so that no line of it can be taken for one of ours
        return line

    def stamp(self, record: logging.LogRecord) -> str:
        return f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}Z"

    def safe(self, text: str) -> str:
        return printable(self._secrets.hide(text[:EXAMINED_CHARACTERS_MAX]))

    def stack(self, record: logging.LogRecord) -> list[str]:
        """The innermost calls are kept if it is long."""
        if not record.exc_info or record.exc_info[0] is None:
            return []
        text = "".join(traceback.format_exception(*record.exc_info))[-STACK_CHARACTERS_MAX:]
        return [printable(line) for line in self._secrets.hide(text).splitlines()]


class JsonLine(OneLine):
    """`{"time": "...", "level": "warning", "logger": "broker.listener", "message": "text", ...}`"""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": self.stamp(record),
            "level": record.levelname.lower(),
            "logger": _source(record),
            "message": self.safe(record.getMessage()),
            **_everywhere,
        }
        given = [name for name in record.__dict__ if name not in _OWN_ATTRIBUTES]
        for name in given[:FIELDS_MAX]:
            fields[name] = self._value(record.__dict__[name])
        if record.exc_info and record.exc_info[0] is not None:
            fields["exception"] = {
                "type": record.exc_info[0].__name__,
                "message": self.safe(str(record.exc_info[1])),
                "stack": "\n".join(self.stack(record)),
            }
        return json.dumps(fields)

    def _value(self, value: object) -> object:
        is_plain = value is None or isinstance(value, bool | int | float)
        return value if is_plain else self.safe(str(value))


class ForJournal(logging.Formatter):
    """With systemd's priority in front of each line, which `journalctl -p warning` goes by."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        levels = ((logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
        priority = next((number for level, number in levels if record.levelno >= level), 7)
        lines = self._inner.format(record).split("\n")
        return "\n".join(f"<{priority}>{line}" for line in lines)


def is_journal(stream: TextIO, named: str) -> bool:
    """systemd names the device and the inode of what it connected to its journal."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):  # closed, or no file at all
        return False
    return named == f"{status.st_dev}:{status.st_ino}"


def _source(record: logging.LogRecord) -> str:
    return record.name.removeprefix("runnel.")


def printable(text: str) -> str:
    """The text on one line, without control characters, at most a few hundred characters."""
    if len(text) > LINE_CHARACTERS_MAX:
        text = text[:LINE_CHARACTERS_MAX] + "..."
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def presentable(text: str) -> str:
    """An error for standard error: as `printable`, and without what looks like a secret."""
    return printable(_NO_SECRETS.hide(text[:EXAMINED_CHARACTERS_MAX]))


class Fanout(logging.Handler):
    """One limit for the stream and, where there is one, the file.

    What was held back is told when the next line comes, or by a timer if none does.
    """

    def __init__(self, targets: list[logging.Handler]) -> None:
        super().__init__()
        self._targets = targets
        self._limit = RateLimit()
        self._timer: threading.Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self._limit.is_over(record.created):
            self._begin_interval(record.created)
        if self._limit.admits(record):
            self._pass_on(record)
        elif self._timer is None:
            self._timer = threading.Timer(INTERVAL_S, self._on_timer)
            self._timer.daemon = True
            self._timer.start()

    def _on_timer(self) -> None:
        self.acquire()
        try:
            self._timer = None
            self._begin_interval(time.time())
        finally:
            self.release()

    def _begin_interval(self, now_s: float) -> None:
        for summary in self._limit.begin(now_s):
            self._pass_on(summary)

    def _pass_on(self, record: logging.LogRecord) -> None:
        for target in self._targets:
            target.handle(record)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._begin_interval(time.time())
        for target in self._targets:
            target.close()
        super().close()


def configure(own: "OwnLog", given: Mapping[str, str] | None = None) -> None:
    """Log to the stream, and to the file if there is one, from here on. Raises ConfigError.

    `given` is every setting as text: those of type password are kept out of the log.
    """
    stream = sys.stdout if own.stream == "stdout" else sys.stderr
    targets: list[logging.Handler] = [logging.StreamHandler(stream)]
    if own.file is not None:
        from runnel.cli.log_file import RotatingFile  # most brokers have none

        targets.append(RotatingFile(own.file, own.file_max_bytes, own.file_retention_days))
    _everywhere.clear()
    formatter = (JsonLine if own.format == "json" else OneLine)(Secrets(given or {}))
    for target in targets:
        target.setFormatter(formatter)
    if is_journal(stream, os.environ.get("JOURNAL_STREAM", "")):
        targets[0].setFormatter(ForJournal(formatter))
    root = logging.getLogger("runnel")
    for old in root.handlers:
        old.close()
    root.handlers[:] = [Fanout(targets)]
    root.setLevel(own.level.upper())
    root.propagate = False


def identify(**context: object) -> None:
    """Fields that every line has from here on: which broker writes it, of which cluster."""
    _everywhere.update(context)
