"""`RunnelHandler`: what an application logs with `logging`, in a topic."""

import logging
import traceback
from collections.abc import Mapping
from typing import Final

from runnel.logs.events import Event, cut
from runnel.logs.sending import FLUSH_TIMEOUT_S, Sending
from runnel.logs.shipping import BUFFER_BYTES, EXIT_TIMEOUT_S

_STANDARD: Final = frozenset(
    {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "exc_text"}
)


class RunnelHandler(logging.Handler):
    """Sends log records to a topic as JSON; `docs/logs.md` shows how.

    Emitting puts a record into a buffer of `buffer_bytes` and returns. If the broker is away for
    so long that the buffer is full, records are lost: `lost` counts them, and a record in the topic
    says so as soon as it can be written. At exit the handler waits up to `exit_timeout_s` for what
    is left in the buffer.

    With `logging.config.dictConfig`:

        "handlers": {"topic": {"class": "runnel.logs.RunnelHandler",
                               "bootstrap": "localhost:9092", "topic": "app-logs",
                               "service": "billing"}}
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        service: str | None = None,
        fields: Mapping[str, object] | None = None,
        level: int | str = logging.NOTSET,
        buffer_bytes: int = BUFFER_BYTES,
        exit_timeout_s: float = EXIT_TIMEOUT_S,
    ) -> None:
        """`service` is the program's name unless given; `fields` go with every record."""
        super().__init__(level)
        self._sending = Sending(bootstrap, topic, service, fields, buffer_bytes, exit_timeout_s)

    @property
    def lost(self) -> int:
        """How many records were not delivered and never will be."""
        return self._sending.shipper.lost

    @property
    def sent(self) -> int:
        """How many records the broker has acknowledged."""
        return self._sending.shipper.sent

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._sending.send(self._event(record))
        except Exception:  # noqa: BLE001  # as every handler: the application goes on
            self.handleError(record)

    def flush(self) -> None:
        """Waits, for a few seconds at most, until the broker has what was logged before."""
        self._sending.shipper.flush(FLUSH_TIMEOUT_S)

    def close(self) -> None:
        self._sending.shipper.close()
        super().close()

    def _event(self, record: logging.LogRecord) -> Event:
        return Event(
            record.created,
            record.levelname.lower(),
            record.name,
            cut(record.getMessage()),
            record.threadName or "",
            _exception(record),
            {name: value for name, value in vars(record).items() if name not in _STANDARD},
        )


def _exception(record: logging.LogRecord) -> str | None:
    parts = []
    if record.exc_info and record.exc_info[0] is not None:
        parts.append("".join(traceback.format_exception(*record.exc_info)).rstrip())
    elif record.exc_text:
        parts.append(record.exc_text)
    if record.stack_info:
        parts.append(record.stack_info)
    return "\n".join(parts) or None
