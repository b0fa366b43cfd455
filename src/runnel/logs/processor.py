"""`RunnelProcessor`: what an application logs with structlog, in a topic."""

import sys
import threading
import time
import traceback
from collections.abc import Mapping, MutableMapping
from datetime import datetime
from types import TracebackType
from typing import Any, Final

from runnel.logs.events import Event, cut
from runnel.logs.sending import FLUSH_TIMEOUT_S, Sending
from runnel.logs.shipping import BUFFER_BYTES, EXIT_TIMEOUT_S

_TAKEN: Final = frozenset(
    {"event", "level", "logger", "timestamp", "exc_info", "exception", "stack", "stack_info"}
)
_LEVELS: Final = {"warn": "warning", "exception": "error", "fatal": "critical", "msg": "info"}


class RunnelProcessor:
    """A structlog processor that sends every event to a topic, and hands it on as it came.

        structlog.configure(processors=[
            structlog.processors.add_log_level,
            RunnelProcessor("localhost:9092", "app-logs", service="billing"),
            structlog.dev.ConsoleRenderer(),
        ])

    It belongs before the renderer. With `only=True` it is the last one: the event goes to the topic
    and nowhere else. Buffer, loss and exit are as with `RunnelHandler`.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        service: str | None = None,
        fields: Mapping[str, object] | None = None,
        only: bool = False,
        buffer_bytes: int = BUFFER_BYTES,
        exit_timeout_s: float = EXIT_TIMEOUT_S,
    ) -> None:
        self._sending = Sending(bootstrap, topic, service, fields, buffer_bytes, exit_timeout_s)
        self._only = only

    @property
    def lost(self) -> int:
        """How many events were not delivered and never will be."""
        return self._sending.shipper.lost

    @property
    def sent(self) -> int:
        """How many events the broker has acknowledged."""
        return self._sending.shipper.sent

    def __call__(
        self,
        logger: object,
        method_name: str,
        event_dict: MutableMapping[str, Any],
    ) -> MutableMapping[str, Any]:
        self._sending.send(_event(logger, method_name, event_dict))
        if self._only:
            from structlog import DropEvent

            raise DropEvent
        return event_dict

    def flush(self) -> bool:
        """Waits, for a few seconds at most; whether the broker has all that was logged before."""
        return self._sending.shipper.flush(FLUSH_TIMEOUT_S)

    def close(self) -> None:
        self._sending.shipper.close()


def _event(logger: object, method_name: str, found: Mapping[str, Any]) -> Event:
    level = str(found.get("level") or method_name).lower()
    name = found.get("logger") or getattr(logger, "name", None) or ""
    return Event(
        _created_s(found.get("timestamp")),
        _LEVELS.get(level, level),
        str(name),
        cut(str(found.get("event", ""))),
        threading.current_thread().name,
        _exception(found),
        {key: value for key, value in found.items() if key not in _TAKEN},
    )


def _created_s(stamp: object) -> float:
    """As TimeStamper writes it, seconds or ISO 8601; else it is now."""
    try:
        if isinstance(stamp, int | float):
            return float(stamp)
        if isinstance(stamp, str):
            return datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError):
        pass
    return time.time()


def _exception(found: Mapping[str, Any]) -> str | None:
    """Rendered already, or what structlog takes as `exc_info`: True, an exception, three things."""
    parts = [str(found[key]) for key in ("exception", "stack") if found.get(key)]
    given = found.get("exc_info")
    if not parts and given:
        if isinstance(given, BaseException):
            parts = traceback.format_exception(given)
        else:
            parts = _formatted(given if isinstance(given, tuple) else sys.exc_info())
    return "".join(parts).rstrip() or None


def _formatted(
    info: tuple[type[BaseException] | None, BaseException | None, TracebackType | None],
) -> list[str]:
    return [] if info[0] is None else traceback.format_exception(*info)
