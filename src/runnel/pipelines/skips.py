"""Ranges that were skipped because their records had expired, out of what the source has logged.

With `on_data_loss: skip` the source warns on standard error of its own process, which ends in the
pipeline's `spark.log`. From there it is told to whoever watches, and kept in the status. The log is
emptied when it has become large: a transform that prints would fill the disk in time.
"""

import os
import re
from pathlib import Path
from typing import Final

from runnel.pipelines.failures import missing

READ_BYTES_MAX: Final = 1 << 20
LOG_BYTES_MAX: Final = 16 << 20
_WARNING: Final = re.compile(
    r"failOnDataLoss is false: (.*?); (?:they are skipped|the read goes on)"
)


class Skips:
    def __init__(self, log: Path) -> None:
        self._log = log
        self._position = 0
        self._seen: set[str] = set()

    def new(self) -> list[str]:
        """Each once: a range is planned several times per batch."""
        try:
            size = self._log.stat().st_size
            if size == self._position:
                return []
            self._position = min(self._position, size)
            with self._log.open("rb") as file:
                file.seek(max(self._position, size - READ_BYTES_MAX))
                content = file.read(READ_BYTES_MAX)
        except FileNotFoundError:
            return []
        whole, _, rest = content.rpartition(b"\n")
        self._position = size - len(rest)
        if size > LOG_BYTES_MAX:
            os.truncate(self._log, 0)  # its writers append, so they go on at the beginning
            self._position = 0
        said = [missing(found[1]) for found in _WARNING.finditer(whole.decode(errors="replace"))]
        fresh = [text for text in dict.fromkeys(said) if text not in self._seen]
        self._seen.update(fresh)
        return fresh
