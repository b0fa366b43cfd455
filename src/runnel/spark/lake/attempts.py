"""What each attempt of a task is about to write, noted before it writes, so that nothing is left.

A task that fails or is killed leaves files that no commit names. Rather than search a folder of
any size for them, each attempt keeps a small ledger below `_runnel/` in the table's folder, and a
path stands in it before the file exists. A commit looks at the ledgers of its query: those of the
attempts that it commits are done with, the files of all others go.

Readers of Delta, Iceberg and Parquet alike skip names that begin with an underscore.
"""

import fcntl
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from runnel.spark.lake.lake_options import TableError

FOLDER: Final = "_runnel"
MAX_SWEPT: Final = 1_000  # ledgers by one commit; the next one goes on
_LOCK: Final = "lock"
_UPKEEP_LOCK: Final = "upkeep.lock"
_LOCK_WAIT_S: Final = 120.0
_LOCK_POLL_S: Final = 0.02


@dataclass(frozen=True)
class Attempt:
    """One ledger: `query@batch@id`."""

    query: str
    batch: int
    id: str

    @classmethod
    def new(cls, query: str, batch: int) -> "Attempt":
        return cls(query, batch, uuid.uuid4().hex)

    @property
    def name(self) -> str:
        return f"{quote(self.query, safe='')}@{self.batch}@{self.id}"

    @classmethod
    def parse(cls, name: str) -> "Attempt | None":
        parts = name.split("@")
        if len(parts) != 3 or not parts[1].isdecimal():
            return None
        return cls(unquote(parts[0]), int(parts[1]), parts[2])


class Ledger:
    """The paths of one attempt, written by the task itself."""

    def __init__(self, folder: Path, attempt: Attempt) -> None:
        self._path = folder / attempt.name

    def note(self, path: str) -> None:
        """Before the file is made. Opened anew each time: a sweeper may have taken the ledger."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as ledger:
            ledger.write(path + "\n")

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """One driver at a time looks, commits and sweeps; a dead one's lock is let go by the kernel.

    A driver that only seemed dead would else commit files that its successor has just swept.
    """
    why = (
        f"{folder / _LOCK} has been held for {_LOCK_WAIT_S:.0f} s: another driver commits to this"
        " table and does not end; find and stop it"
    )
    with _locked(folder / _LOCK, _LOCK_WAIT_S, why):
        yield


@contextmanager
def only_upkeep(folder: Path) -> Iterator[None]:
    """One upkeep at a time, or the second would sweep what the first is about to commit."""
    why = f"{folder.parent} is being compacted by another process; start again when it has ended"
    with _locked(folder / _UPKEEP_LOCK, 0, why):
        yield


@contextmanager
def _locked(path: Path, wait_s: float, why: str) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise TableError(why) from error
                time.sleep(_LOCK_POLL_S)
        yield


@dataclass(frozen=True)
class Sweeper:
    """The ledgers of a table, as the driver sees them at a commit."""

    folder: Path  # of ledgers
    remove: Callable[[str], None]  # a path as ledgers have it
    referenced: Callable[[set[str]], set[str]]  # those of them that the table has

    def sweep(
        self,
        query: str,
        last_batch: int | None,
        keep: Iterable[str],
        orphan_age_ms: int,
        lost: Iterable[str] = (),
    ) -> int:
        """Remove what attempts of this query left, but for those in `keep`; how many files went.

        A ledger of a batch after `last_batch` cannot have been committed. One of an earlier batch
        can, if its driver died before it put the ledger away: then the table is asked. So it is
        for other queries, whose ledgers must be old enough to be nobody's work, and for all where
        the last batch is not known (None).

        A batch that the table has, though not one file of it, was rewritten since, or late tasks
        wrote these: they stay, as a file too many does no harm. Attempts in `lost` are known to
        have come too late.
        """
        kept, late = set(keep), set(lost)
        doubtful: list[Attempt] = []
        removed = 0
        for attempt in self._attempts():
            if attempt.id in kept:
                continue
            if attempt.query != query and self._age_ms(attempt) < orphan_age_ms:
                continue
            if attempt.query == query and last_batch is not None and attempt.batch > last_batch:
                removed += self._drop(attempt, referenced=set())
            else:
                doubtful.append(attempt)
        if doubtful:
            paths = {path for attempt in doubtful for path in self._paths(attempt)}
            referenced = self.referenced(paths)
            seen = {a.batch for a in doubtful if referenced.intersection(self._paths(a))}
            for attempt in doubtful:
                sure = attempt.query != query or last_batch is None
                if sure or attempt.batch in seen or attempt.id in late:
                    removed += self._drop(attempt, referenced)
                else:
                    (self.folder / attempt.name).unlink(missing_ok=True)
        return removed

    def _attempts(self) -> list[Attempt]:
        if not self.folder.is_dir():
            return []
        found = (Attempt.parse(entry.name) for entry in self.folder.iterdir())
        return [attempt for attempt in found if attempt is not None][:MAX_SWEPT]

    def _age_ms(self, attempt: Attempt) -> float:
        try:
            return (time.time() - (self.folder / attempt.name).stat().st_mtime) * 1000
        except FileNotFoundError:
            return 0.0

    def _paths(self, attempt: Attempt) -> Iterator[str]:
        try:
            text = (self.folder / attempt.name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        # The last line may be cut short by the kill that made it an orphan.
        yield from (line for line in text.split("\n")[:-1] if line)

    def _drop(self, attempt: Attempt, referenced: set[str]) -> int:
        paths = [path for path in self._paths(attempt) if path not in referenced]
        for path in paths:
            self.remove(path)
        (self.folder / attempt.name).unlink(missing_ok=True)
        return len(paths)
