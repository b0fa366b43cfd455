"""What a pipeline does now, for people and programs; written by its process, read by any."""

import json
import os
import time
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Self

from runnel.pipelines.home import Home
from runnel.pipelines.processes import is_alive, start_of

VERSION: Final = 1
ACTIVE: Final = ("starting", "running", "waiting", "retrying", "stopping")
SKIPPED_MAX: Final = 20
ERROR_CHARACTERS_MAX: Final = 2000
_NUMBERS: Final = ("started_at", "updated_at", "rows", "batches", "rows_per_second", "retries")


@dataclass(frozen=True)
class Status:
    """`state` is one of `ACTIVE`, or stopped, finished, failed; a reader may find it crashed."""

    name: str
    kind: str
    file: str
    state: str = "starting"
    every: str = "once"
    pid: int | None = None
    pid_started: str = ""
    started_at: float = 0.0
    updated_at: float = 0.0
    batch: int | None = None  # the last one that was finished
    batches: int = 0  # of this run
    rows: int = 0  # of this run
    rows_per_second: float = 0.0  # of the last batch
    batch_seconds: float = 0.0
    last_batch_at: float | None = None
    lag: int | None = None
    lag_by_partition: dict[str, int] = field(default_factory=dict)
    state_rows: int = 0
    state_bytes: int = 0
    watermark: str = ""
    retries: int = 0
    error: str = ""  # the last one, also if it has passed
    error_at: float | None = None
    note: str = ""  # of the work between batches, or of a turn
    skipped: tuple[str, ...] = ()  # ranges of offsets that had expired
    version: int = VERSION

    @classmethod
    def of_this_process(cls, name: str, kind: str, file: str, every: str) -> Self:
        now = time.time()
        pid = os.getpid()
        return cls(
            name, kind, file, every=every, pid=pid, pid_started=start_of(pid), started_at=now
        )

    @property
    def is_alive(self) -> bool:
        return is_alive(self.pid, self.pid_started)

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE

    def seen(self) -> "Status":
        """As another process sees it: what was killed could not say so."""
        if self.is_active and not self.is_alive:
            return replace(self, state="crashed")
        return self

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def write(home: Home, status: Status) -> None:
    home.write(home.status_file, status.as_dict())


def read(home: Home) -> Status | None:
    """As it is now, or None where nothing has run. Raises StatusError."""
    try:
        document = json.loads(home.status_file.read_text())
        if not isinstance(document, dict):
            raise ValueError("not a mapping")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StatusError(f"{home.status_file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise StatusError(f"{home.status_file} cannot be read: {error}; delete it") from None
    version = document.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise StatusError(
            f"{home.status_file} has version {version}, this Runnel knows {VERSION}: it was"
            " written by a newer one"
        )
    known = {name: document[name] for name in Status.__dataclass_fields__ if name in document}
    try:
        if "skipped" in known:
            known["skipped"] = tuple(known["skipped"])
        found = Status(**known)
        for name in _NUMBERS:
            if not isinstance(getattr(found, name), int | float):
                raise TypeError(name)
        return found.seen()
    except TypeError:
        raise StatusError(f"{home.status_file} cannot be read: no status; delete it") from None


class StatusError(Exception):
    """The file is not what this version writes; the message says what to do."""
