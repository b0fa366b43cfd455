"""What reading has touched, counted where it happens and told to whoever asked for it."""

from threading import Lock
from typing import NamedTuple


class Figures(NamedTuple):
    file_bytes: int  # of segment files, as far as they were looked at
    fetched_bytes: int  # of answers of brokers
    records: int  # decoded
    counted_records: int  # that only headers of batches told of
    files: int

    @property
    def bytes_read(self) -> int:
        return self.file_bytes + self.fetched_bytes


class Tally:
    """Readers in several threads add to one; they do so once per some thousand records."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._figures = Figures(0, 0, 0, 0, 0)

    def add(
        self,
        *,
        file_bytes: int = 0,
        fetched_bytes: int = 0,
        records: int = 0,
        counted_records: int = 0,
        files: int = 0,
    ) -> None:
        added = (file_bytes, fetched_bytes, records, counted_records, files)
        with self._lock:
            pairs = zip(self._figures, added, strict=True)
            self._figures = Figures(*(before + more for before, more in pairs))

    @property
    def figures(self) -> Figures:
        return self._figures
