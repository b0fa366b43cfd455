"""Events of this process to a topic: what handler and processor have in common."""

import os
import time
from collections.abc import Mapping
from typing import Final

from runnel.logs.events import Event, Origin, encoded, origin_of
from runnel.logs.shipping import Shipper
from runnel.native.columns import Record

FLUSH_TIMEOUT_S: Final = 5.0
CREATED_S_MAX: Final = 253_402_300_800.0  # the year 10000


class Sending:
    """All records of a process have the same key, so they stay in one partition and in order, and
    the lines around one of them are those that the process wrote around it.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        service: str | None,
        fields: Mapping[str, object] | None,
        buffer_bytes: int,
        exit_timeout_s: float,
    ) -> None:
        self._origin = origin_of(service)
        self._fields = dict(fields or {})
        self.shipper = Shipper(
            bootstrap,
            topic,
            self._loss,
            buffer_bytes=buffer_bytes,
            exit_timeout_s=exit_timeout_s,
        )

    def send(self, event: Event) -> None:
        origin = self._origin
        if origin.pid != os.getpid():  # a child after a fork
            origin = self._origin = origin._replace(pid=os.getpid())
        if not 0 <= event.created_s < CREATED_S_MAX:  # a time of other units, or none at all
            event = event._replace(created_s=time.time())
        if self._fields:
            event = event._replace(fields={**self._fields, **event.fields})
        self.shipper.put(_record(event, origin))

    def _loss(self, count: int, why: str) -> Record:
        message = f"{count} log records were lost: the buffer was full, or they were refused"
        fields: dict[str, object] = {"lost": count}
        if why:
            fields["last_error"] = why
        name = "runnel.logs"
        event = Event(time.time(), "warning", name, message, name, None, fields)
        return _record(event, self._origin)


def _record(event: Event, origin: Origin) -> Record:
    key = f"{origin.host}/{origin.pid}".encode()
    return Record(key, encoded(event, origin), int(event.created_s * 1000))
