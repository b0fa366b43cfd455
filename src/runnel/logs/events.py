"""One event of an application's log as the JSON that goes to a topic.

    {"ts": "2026-11-16T03:12:27.123Z", "level": "error", "service": "billing",
     "logger": "billing.cards", "message": "payment failed", "host": "web-1", "pid": 4711,
     "thread": "MainThread", "exception": "Traceback ...", "fields": {"user": 7}}

`exception` and `fields` are there if there is something to say. Whatever an application logs gives
one line: what JSON cannot hold is written as text, and what is too long is cut and marked.
"""

import json
import os
import socket
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

TEXT_CHARS_MAX: Final = 64_000  # of a message, of a traceback, of the fields of an event too large
EVENT_BYTES_MAX: Final = 400_000  # under the default of a topic's max.message.bytes
CUT: Final = "... (cut)"


class Origin(NamedTuple):
    """Who logs; the same for all events of a process."""

    service: str
    host: str
    pid: int


class Event(NamedTuple):
    """What happened. `created_s` is in seconds since 1970, as logging has it."""

    created_s: float
    level: str
    logger: str
    message: str
    thread: str
    exception: str | None
    fields: Mapping[str, object]


def origin_of(service: str | None) -> Origin:
    """Of this process; its service is named after the program unless it is told."""
    named = service or Path(sys.argv[0] or "python").stem or "python"
    return Origin(named, socket.gethostname(), os.getpid())


def encoded(event: Event, origin: Origin) -> bytes:
    """Never raises, whatever the fields are."""
    document = _document(event, origin)
    if event.fields:
        document["fields"] = {_as_text(name): value for name, value in event.fields.items()}
    data = _dumped(document)
    if data is None:
        document["fields"] = {
            _as_text(name): value if _dumped({"": value}) is not None else _as_text(value)
            for name, value in event.fields.items()
        }
        data = _dumped(document)
    if data is None or len(data) > EVENT_BYTES_MAX:
        document["fields"] = {"fields": cut(_as_text(event.fields))}
        document["message"] = cut(event.message)
        data = _dumped(document)
        assert data is not None, "nothing but texts and numbers"
    return data


def timestamp(created_s: float) -> str:
    """In UTC, to the millisecond."""
    try:
        moment = datetime.fromtimestamp(created_s, UTC)
    except (ValueError, OverflowError, OSError):
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else text[:TEXT_CHARS_MAX] + CUT


def _document(event: Event, origin: Origin) -> dict[str, object]:
    document: dict[str, object] = {
        "ts": timestamp(event.created_s),
        "level": event.level,
        "service": origin.service,
        "logger": event.logger,
        "message": event.message,
        "host": origin.host,
        "pid": origin.pid,
        "thread": event.thread,
    }
    if event.exception:
        document["exception"] = cut(event.exception)
    return document


def _dumped(document: Mapping[str, object]) -> bytes | None:
    """None for what is no JSON: a circle, a number that is none, a value that cannot be told."""
    try:
        text = json.dumps(document, default=_as_text, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError):
        return None
    return text.encode()


def _as_text(value: object) -> str:
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001  # of the application: a log line must not fail
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"
