"""A log file that is put aside when it is full, and deleted when it is old.

`broker.log` grows to its limit and becomes `broker.log.20260131T120000.123`; the next line begins
a new one. Files put aside go after some days, and the oldest go first when there are too many: a
broker that complains a lot must not fill its disk. A write that fails is told of once on standard
error and the line is lost: the log is no reason to stop a broker.
"""

import contextlib
import logging
import re
import sys
import time
from pathlib import Path
from typing import Final

from runnel.config.definition import ConfigError

KEPT_MAX: Final = 20
SECONDS_PER_DAY: Final = 86_400
_ASIDE = re.compile(r"\.\d{8}T\d{6}\.\d{3}")


class RotatingFile(logging.Handler):
    def __init__(self, path: str, max_bytes: int, retention_days: int) -> None:
        """Raises ConfigError if the file cannot be opened for appending."""
        super().__init__()
        self._path = Path(path).absolute()
        self._max_bytes = max_bytes
        self._retention_s = retention_days * SECONDS_PER_DAY
        self._failed = False
        try:
            self._open()
        except OSError as error:
            raise ConfigError(
                f"runnel.log.file: cannot write {path}: {error.strerror}; choose another file"
            ) from None
        self._prune()

    def _open(self) -> None:
        self._file = self._path.open("ab", buffering=0)
        self._size = self._file.tell()

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record).encode(errors="backslashreplace") + b"\n"
        try:
            if self._size and self._size + len(line) > self._max_bytes:
                self._rotate(record)
            self._size += self._file.write(line)
            self._failed = False
        except (OSError, ValueError) as error:  # a full disk; or closed, when a rotation failed
            if not self._failed:
                self._failed = True
                sys.stderr.write(f"runnel: log lines are lost, {self._path}: {error}\n")

    def _rotate(self, record: logging.LogRecord) -> None:
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(record.created))
        aside = self._path.with_name(f"{self._path.name}.{stamp}.{int(record.msecs):03d}")
        if aside.exists():  # twice within a millisecond: the file grows a little more
            return
        with contextlib.suppress(FileNotFoundError):  # somebody else has put it aside
            self._path.rename(aside)
        old = self._file
        self._open()
        old.close()
        self._prune()

    def _prune(self) -> None:
        """Names sort by time, so the oldest come first."""
        aside = sorted(
            path
            for path in self._path.parent.iterdir()
            if path.name.startswith(self._path.name)
            and _ASIDE.fullmatch(path.name.removeprefix(self._path.name))
        )
        too_many = set(aside[: max(0, len(aside) - KEPT_MAX)])
        oldest_s = time.time() - self._retention_s
        for path in aside:
            with contextlib.suppress(OSError):
                if path in too_many or path.stat().st_mtime < oldest_s:
                    path.unlink()

    def close(self) -> None:
        self._file.close()
        super().close()
