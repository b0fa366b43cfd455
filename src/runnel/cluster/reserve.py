"""Room on the disk that is kept for the metadata.

On a full disk nobody could delete a topic or shorten a retention any more, for that is written
first: the way out would be shut by what it is to mend. So a file beside the store keeps some room.
Each write that finds the disk full takes a slice of it; producers may be quicker than the next one,
so it is not given up as a whole. The next start fills it again.
"""

import logging
import os
from pathlib import Path
from typing import Final

RESERVE_BYTES: Final = 1 << 20
SLICE_BYTES: Final = 64 << 10

_log = logging.getLogger(__name__)


class Reserve:
    """A file of `RESERVE_BYTES`, or of less where there is no room for it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._bytes = 0
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            _log.warning("no room can be kept for metadata: %s", error)
            return
        try:
            os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
        except OSError as error:
            _log.warning("less room than wanted is kept for metadata: %s", error)
        finally:
            self._bytes = os.fstat(descriptor).st_size
            os.close(descriptor)

    def give_some(self) -> bool:
        """Make room for one write on a full disk; False if nothing is left to give."""
        if self._bytes <= 0:
            return False
        self._bytes = max(self._bytes - SLICE_BYTES, 0)
        try:
            os.truncate(self._path, self._bytes)
        except OSError:
            return False
        _log.error(
            "the disk of %s is full: %d KiB are left for changes of metadata; shorten retentions "
            "or delete topics, then restart",
            self._path.parent,
            self._bytes >> 10,
        )
        return True
