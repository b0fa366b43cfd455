"""The metadata store of one host: SQLite behind etcd's contract.

One process owns the file, under the lock of its data folder. One thread owns the connection; the
loop hands it whole operations and never waits for the disk. WAL with synchronous=FULL: what was
answered OK survives a power loss. The history for watchers and the leases live in memory, for they
mean nothing to another process: opening deletes every key that an earlier process held a lease
for, and a watch from before the opening is Compacted.

An outcome is UNKNOWN only once the store is closing or its disk has failed. After a failed
write (a full disk is not one) nothing more is written: what a later fsync would promise is not
known any more.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

from runnel.cluster.reserve import Reserve
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import (
    MAX_TXN_OPERATIONS,
    Change,
    Changes,
    Clock,
    Compacted,
    Compare,
    Delete,
    Entry,
    Outcome,
    Put,
    Snapshot,
    TxnResult,
)

FILE_NAME: Final = "metadata.db"
RESERVE_NAME: Final = "metadata.reserve"
HISTORY_CHANGES: Final = 2_000  # half a kilobyte each; who follows is a transaction behind
MAX_LEASES: Final = 10_000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, create_revision INTEGER NOT NULL,
    mod_revision INTEGER NOT NULL, version INTEGER NOT NULL, lease INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS revision (only INTEGER PRIMARY KEY CHECK (only = 0), number INTEGER);
INSERT OR IGNORE INTO revision VALUES (0, 0);
"""
_SELECT = "SELECT key, value, create_revision, mod_revision, version, lease FROM entries "

# Nothing was written, and that is certain; any other error leaves the file in doubt.
_PASSING = ("SQLITE_FULL", "SQLITE_BUSY")

T = TypeVar("T")


class SqliteStore:
    """Owned by the server. `open` and `close` frame its life; everything else is the contract."""

    def __init__(self, path: Path, clock: Clock, history_changes: int = HISTORY_CHANGES) -> None:
        self._path = path
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="metadata")
        self._closing = False
        self._feed = _Feed(history_changes)

    @classmethod
    async def open(
        cls, folder: Path, clock: Clock, history_changes: int = HISTORY_CHANGES
    ) -> "SqliteStore":
        """Raises RunnelError(KAFKA_STORAGE_ERROR) if the file cannot be opened."""
        store = cls(folder / FILE_NAME, clock, history_changes)
        loop = asyncio.get_running_loop()
        try:
            store._table = await loop.run_in_executor(store._thread, _Table, store._path)
        except sqlite3.Error as error:
            store._thread.shutdown(wait=False)
            raise RunnelError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"metadata store {store._path}: {error}"
            ) from None
        store._feed.compact_revision = store._table.revision
        return store

    _table: "_Table"

    async def txn(self, compares: Sequence[Compare], writes: Sequence[Put | Delete]) -> TxnResult:
        assert len(compares) + len(writes) <= MAX_TXN_OPERATIONS
        assert len({write.key for write in writes}) == len(writes), "a key is written twice"
        if self._closing:
            return TxnResult(Outcome.UNKNOWN, 0)
        return await self._run(lambda: self._table.txn(compares, writes))

    async def read(self, prefix: str) -> Snapshot:
        return await self._ask(lambda: self._table.read(prefix))

    async def watch(
        self, prefix: str, from_revision: int
    ) -> AsyncGenerator[Changes | Compacted, None]:
        async for event in self._feed.follow(prefix, from_revision):
            yield event

    async def grant_lease(self, ttl_ms: int) -> int:
        now_ms = self._clock.monotonic_ms()
        return await self._ask(lambda: self._table.grant(ttl_ms, now_ms))

    async def keep_alive(self, lease: int) -> bool:
        now_ms = self._clock.monotonic_ms()
        return await self._ask(lambda: self._table.keep_alive(lease, now_ms))

    async def revoke_lease(self, lease: int) -> None:
        await self._ask(lambda: self._table.revoke(lease))

    async def close(self) -> None:
        """Ends the watches. Transactions that were handed over are carried out first."""
        if self._closing:
            return
        self._closing = True
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._table.close)
        self._thread.shutdown(wait=False)
        self._feed.close()

    async def _ask(self, operation: Callable[[], T]) -> T:
        if self._closing:
            raise RunnelError(ErrorCode.REQUEST_TIMED_OUT, "the metadata store is closed")
        try:
            return await self._run(operation)
        except sqlite3.Error as error:
            raise RunnelError(
                ErrorCode.REQUEST_TIMED_OUT, f"the metadata store does not answer: {error}"
            ) from None

    async def _run(self, operation: Callable[[], T]) -> T:
        """In the thread, after the leases that have run out by now.

        Changes are published from the thread's side, so that a caller who was cancelled meanwhile
        takes nothing away from the watchers; and before the result, so that they come first.
        """
        loop = asyncio.get_running_loop()
        now_ms = self._clock.monotonic_ms()

        def work() -> T:
            try:
                self._table.expire(now_ms)
                return operation()
            finally:
                for changes in self._table.take_changes():
                    loop.call_soon_threadsafe(self._feed.publish, changes)

        return await loop.run_in_executor(self._thread, work)


class _Table:
    """The connection and the leases. Lives in the thread, but for its construction's result."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reserve = Reserve(path.with_name(RESERVE_NAME))
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.executescript(_SCHEMA)
        self.revision: int = self._db.execute("SELECT number FROM revision").fetchone()[0]
        self._leases: dict[int, tuple[int, int]] = {}  # ttl and deadline
        self._last_lease = 0
        self._failed: sqlite3.Error | None = None
        self._changes: list[Changes] = []
        self._write([Delete(entry.key) for entry in self._select("WHERE lease != 0")])
        self._changes.clear()  # nobody could watch yet

    def txn(self, compares: Sequence[Compare], writes: Sequence[Put | Delete]) -> TxnResult:
        if self._failed:
            return TxnResult(Outcome.UNKNOWN, 0)
        try:
            leased = [w.lease for w in writes if isinstance(w, Put) and w.lease]
            if all(map(self._holds, compares)) and all(n in self._leases for n in leased):
                self._write(writes)
                return TxnResult(Outcome.OK, self.revision)
        except sqlite3.Error as error:
            if _is_full(error):  # rolled back, and that is sure
                raise RunnelError(
                    ErrorCode.KAFKA_STORAGE_ERROR, f"metadata store {self._path}: {error}"
                ) from None
            return TxnResult(Outcome.UNKNOWN, 0)
        return TxnResult(Outcome.REFUSED, self.revision)

    def read(self, prefix: str) -> Snapshot:
        # Keys are ASCII, so the prefix followed by the largest character ends the range.
        entries = self._select(
            "WHERE key >= ? AND key < ? ORDER BY key", prefix, f"{prefix}\U0010ffff"
        )
        return Snapshot(self.revision, entries)

    def grant(self, ttl_ms: int, now_ms: int) -> int:
        if len(self._leases) >= MAX_LEASES:
            raise RunnelError(ErrorCode.REQUEST_TIMED_OUT, f"{MAX_LEASES} leases are in use")
        self._last_lease += 1
        self._leases[self._last_lease] = (ttl_ms, now_ms + ttl_ms)
        return self._last_lease

    def keep_alive(self, lease: int, now_ms: int) -> bool:
        if lease not in self._leases:
            return False
        ttl_ms, _ = self._leases[lease]
        self._leases[lease] = (ttl_ms, now_ms + ttl_ms)
        return True

    def revoke(self, lease: int) -> None:
        self._write([Delete(entry.key) for entry in self._select("WHERE lease = ?", lease)])
        self._leases.pop(lease, None)

    def expire(self, now_ms: int) -> None:
        due = [n for n, (_, deadline_ms) in self._leases.items() if deadline_ms <= now_ms]
        for lease in due:
            try:
                self.revoke(lease)
            except sqlite3.Error:
                return  # the lease stays with its keys; the next operation tries again

    def take_changes(self) -> list[Changes]:
        taken, self._changes = self._changes, []
        return taken

    def close(self) -> None:
        self._db.close()

    def _holds(self, compare: Compare) -> bool:
        entry = self._entry(compare.key)
        if entry is None:
            return compare.target != "value" and compare.expected == 0
        actual: int | bytes = getattr(entry, compare.target)
        return actual == compare.expected

    def _entry(self, key: str) -> Entry | None:
        found = self._select("WHERE key = ?", key)
        return found[0] if found else None

    def _select(self, where: str, *arguments: str | int) -> list[Entry]:
        return [Entry(*row) for row in self._db.execute(_SELECT + where, arguments)]

    def _write(self, writes: Sequence[Put | Delete]) -> None:
        """One transaction, one revision. Raises sqlite3.Error, after which nothing is written."""
        if self._failed:
            raise self._failed
        while True:
            try:
                return self._write_once(writes)
            except sqlite3.Error as error:
                if not _is_full(error) or not self._reserve.give_some():
                    raise

    def _write_once(self, writes: Sequence[Put | Delete]) -> None:
        revision = self.revision + 1
        changes: list[Change] = []
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for write in writes:
                old = self._entry(write.key)
                if isinstance(write, Put):
                    entry = _successor(old, write, revision)
                    self._db.execute("REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?)", entry)
                    changes.append(Change(write.key, entry, revision))
                elif old is not None:
                    self._db.execute("DELETE FROM entries WHERE key = ?", (write.key,))
                    changes.append(Change(write.key, None, revision))
            if changes:
                self._db.execute("UPDATE revision SET number = ?", (revision,))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if error.sqlite_errorname not in _PASSING:
                self._failed = error
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        if changes:
            self.revision = revision
            self._changes.append(Changes(revision, changes))


def _is_full(error: sqlite3.Error) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL


def _successor(old: Entry | None, put: Put, revision: int) -> Entry:
    create_revision, version = (old.create_revision, old.version) if old else (revision, 0)
    return Entry(put.key, put.value, create_revision, revision, version + 1, put.lease)


class _Feed:
    """What has changed lately, and the wake-up of those who follow. Lives on the loop."""

    def __init__(self, limit_changes: int) -> None:
        self.compact_revision = 0
        self._limit_changes = limit_changes
        self._held_changes = 0
        self._history: deque[Changes] = deque()
        self._wake = asyncio.Event()
        self._closed = False

    def publish(self, changes: Changes) -> None:
        self._history.append(changes)
        self._held_changes += len(changes.changes)
        while self._held_changes > self._limit_changes and len(self._history) > 1:
            oldest = self._history.popleft()
            self._held_changes -= len(oldest.changes)
            self.compact_revision = oldest.revision
        self._wake_all()

    def close(self) -> None:
        self._closed = True
        self._wake_all()

    def _wake_all(self) -> None:
        self._wake.set()
        self._wake = asyncio.Event()

    async def follow(self, prefix: str, revision: int) -> AsyncGenerator[Changes | Compacted, None]:
        while True:
            if revision <= self.compact_revision:
                yield Compacted(self.compact_revision)
                return
            wake = self._wake
            # Every revision is here exactly once, so its place follows from its number.
            seen = revision - self._history[0].revision if self._history else 0
            for changes in list(islice(self._history, max(seen, 0), None)):
                revision = changes.revision + 1
                mine = [change for change in changes.changes if change.key.startswith(prefix)]
                if mine:
                    yield Changes(changes.revision, mine)
            if self._closed:
                return
            await wake.wait()
