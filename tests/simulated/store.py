"""The metadata store of the simulator: etcd's contract in memory, with the faults etcd has.

Deterministic on a loop with virtual time, given a seeded generator. It outlives the brokers that
use it, as etcd does. A transaction whose outcome is UNKNOWN was applied, or was not, or is applied
later; which one it was is counted, so that a run can show that each of them happened.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextvars import Context
from dataclasses import dataclass

from runnel.errors import ErrorCode, RunnelError
from runnel.ports import (
    MAX_TXN_OPERATIONS,
    Change,
    Changes,
    Compacted,
    Compare,
    Delete,
    Entry,
    Outcome,
    Put,
    Snapshot,
    TxnResult,
)


@dataclass
class StoreFaults:
    """Chances per operation, and times in milliseconds of the loop's clock."""

    unknown: float = 0.0
    late_ms: int = 500  # an unknown transaction is applied at most this much later
    delay_ms: int = 0
    compact: float = 0.0  # per committed transaction: all history is dropped
    lose_leases: float = 0.0  # per committed transaction: every lease ends at once


class FakeStore:
    def __init__(self, chance: random.Random, faults: StoreFaults | None = None) -> None:
        self.faults = faults or StoreFaults()
        self.happened: Counter[str] = Counter()
        self.down = False  # nothing answers, nothing is applied
        self._chance = chance
        self._entries: dict[str, Entry] = {}
        self._revision = 0
        self._compact_revision = 0
        self._history: list[Changes] = []
        self._leases: dict[int, tuple[int, float]] = {}
        self._last_lease = 0
        self._wake = asyncio.Event()
        self._closed = False

    async def txn(self, compares: Sequence[Compare], writes: Sequence[Put | Delete]) -> TxnResult:
        assert len(compares) + len(writes) <= MAX_TXN_OPERATIONS
        assert len({write.key for write in writes}) == len(writes)
        await self._delay()
        if self.down or self._closed:
            return self._unknown("lost")
        if self._chance.random() < self.faults.unknown:
            match self._chance.choice(("applied", "lost", "late")):
                case "applied":
                    self._commit(compares, writes)
                    return self._unknown("applied")
                case "late":
                    loop = asyncio.get_running_loop()
                    after_s = self._chance.uniform(0, self.faults.late_ms) / 1000
                    # In a context of no process: it happens even if the caller dies meanwhile.
                    loop.call_later(after_s, self._commit, compares, writes, context=Context())
                    return self._unknown("late")
                case _:
                    return self._unknown("lost")
        return self._commit(compares, writes)

    async def read(self, prefix: str) -> Snapshot:
        await self._delay()
        self._ensure_answers()
        self._expire()
        keys = sorted(key for key in self._entries if key.startswith(prefix))
        return Snapshot(self._revision, [self._entries[key] for key in keys])

    async def watch(
        self, prefix: str, from_revision: int
    ) -> AsyncGenerator[Changes | Compacted, None]:
        revision = from_revision
        while True:
            if revision <= self._compact_revision:
                yield Compacted(self._compact_revision)
                return
            wake = self._wake
            for changes in [c for c in self._history if c.revision >= revision]:
                await self._delay()
                revision = changes.revision + 1
                mine = [change for change in changes.changes if change.key.startswith(prefix)]
                if mine:
                    yield Changes(changes.revision, mine)
            if self._closed:
                return
            await wake.wait()

    async def grant_lease(self, ttl_ms: int) -> int:
        await self._delay()
        self._ensure_answers()
        self._last_lease += 1
        self._leases[self._last_lease] = (ttl_ms, self._now() + ttl_ms / 1000)
        self._expire_later(ttl_ms)
        return self._last_lease

    async def keep_alive(self, lease: int) -> bool:
        await self._delay()
        self._ensure_answers()
        self._expire()
        if lease not in self._leases:
            return False
        ttl_ms, _ = self._leases[lease]
        self._leases[lease] = (ttl_ms, self._now() + ttl_ms / 1000)
        self._expire_later(ttl_ms)
        return True

    async def revoke_lease(self, lease: int) -> None:
        await self._delay()
        self._ensure_answers()
        self._end_lease(lease)

    async def close(self) -> None:
        self._closed = True
        self._wake_all()

    def compact(self) -> None:
        """Drop all history, so that a watcher who is behind must read everything again."""
        self.happened["compacted"] += 1
        self._compact_revision = self._revision
        self._history.clear()
        self._wake_all()

    def lose_all_leases(self) -> None:
        self.happened["leases lost"] += len(self._leases)
        for lease in list(self._leases):
            self._end_lease(lease)

    def _commit(self, compares: Sequence[Compare], writes: Sequence[Put | Delete]) -> TxnResult:
        self._expire()
        leases = [write.lease for write in writes if isinstance(write, Put) and write.lease]
        if not all(map(self._holds, compares)) or not all(n in self._leases for n in leases):
            return TxnResult(Outcome.REFUSED, self._revision)
        self._apply(writes)
        result = TxnResult(Outcome.OK, self._revision)
        if self._chance.random() < self.faults.compact:
            self.compact()
        if self._chance.random() < self.faults.lose_leases:
            self.lose_all_leases()
        return result

    def _apply(self, writes: Sequence[Put | Delete]) -> None:
        revision = self._revision + 1
        changes: list[Change] = []
        for write in writes:
            old = self._entries.get(write.key)
            if isinstance(write, Put):
                created, version = (old.create_revision, old.version) if old else (revision, 0)
                entry = Entry(write.key, write.value, created, revision, version + 1, write.lease)
                self._entries[write.key] = entry
                changes.append(Change(write.key, entry, revision))
            elif old is not None:
                del self._entries[write.key]
                changes.append(Change(write.key, None, revision))
        if changes:
            self._revision = revision
            self._history.append(Changes(revision, changes))
            self._wake_all()

    def _holds(self, compare: Compare) -> bool:
        entry = self._entries.get(compare.key)
        if entry is None:
            return compare.target != "value" and compare.expected == 0
        return bool(getattr(entry, compare.target) == compare.expected)

    def _expire(self) -> None:
        now = self._now()
        for lease in [n for n, (_, deadline) in self._leases.items() if deadline <= now]:
            self._end_lease(lease)

    def _expire_later(self, ttl_ms: int) -> None:
        # A hair after the deadline, since the loop may call a little early.
        asyncio.get_running_loop().call_later(
            ttl_ms / 1000 + 0.001, self._expire, context=Context()
        )

    def _end_lease(self, lease: int) -> None:
        self._leases.pop(lease, None)
        held = sorted(key for key, entry in self._entries.items() if entry.lease == lease)
        self._apply([Delete(key) for key in held])

    def _unknown(self, what: str) -> TxnResult:
        self.happened[f"unknown, {what}"] += 1
        return TxnResult(Outcome.UNKNOWN, 0)

    def _ensure_answers(self) -> None:
        if self.down or self._closed:
            raise RunnelError(ErrorCode.REQUEST_TIMED_OUT, "the metadata store does not answer")

    def _wake_all(self) -> None:
        self._wake.set()
        self._wake = asyncio.Event()

    async def _delay(self) -> None:
        await asyncio.sleep(self._chance.uniform(0, self.faults.delay_ms) / 1000)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
