"""What time does to transactional ids: it aborts what takes too long, and forgets what is unused.

Both are looked for at intervals, as Kafka does, and in small steps where there are many.
"""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from runnel.coordinator.transactions.transaction import (
    State,
    Transaction,
    some_to_end,
    tombstone,
)
from runnel.errors import RunnelError

if TYPE_CHECKING:  # the machine makes its expiry
    from runnel.coordinator.transactions.machine import TransactionMachine

STEP_IDS: Final = 2_000  # looked at before others have a turn
STEP_MS: Final = 10
BATCH_BYTES_MAX: Final = 256 * 1024  # of tombstones
DRIFT_MAX_MS: Final = 3_600_000
CALM_MS: Final = 3_600_000  # after the clock was set, so that a mistake can be put right
TOMBSTONE_BYTES: Final = 80  # beside the id itself, at most
_MAY_EXPIRE: Final = (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


class Expiry:
    """Owned by the machine of one shard."""

    def __init__(self, machine: "TransactionMachine") -> None:
        self._machine = machine
        self._shard = machine.shard
        self._overdue = machine.shard.timer(self._abort_overdue)
        self._unused = machine.shard.timer(self._look_for_unused)
        self._ids: Iterator[str] = iter(())
        self._difference_ms = self._clock_difference_ms()
        self._trusts_clock_from_ms = 0  # on the monotonic clock

    def begin(self) -> None:
        if self._machine.ongoing:
            self.watch()
        self._start_looking()

    def watch(self) -> None:
        """There is a transaction going on."""
        if not self._overdue.is_running:
            interval_ms = (
                self._machine.settings().transaction_abort_timed_out_transaction_cleanup_interval_ms
            )
            self._overdue.start(self._shard.clock.monotonic_ms() + interval_ms)

    def _abort_overdue(self) -> None:
        machine = self._machine
        now_ms = self._shard.clock.monotonic_ms()
        overdue = (each for each in machine.ongoing.values() if each.deadline_ms < now_ms)
        some = some_to_end(overdue)
        refused = 0
        for transaction in some:
            try:
                machine.fence(transaction)
            except RunnelError:  # the journal refuses, or there is no producer id: the next time
                refused += 1
        if some and not refused:
            self._overdue.start(now_ms + STEP_MS)
        elif machine.ongoing:
            self.watch()

    def _start_looking(self) -> None:
        interval_ms = (
            self._machine.settings().transaction_remove_expired_transaction_cleanup_interval_ms
        )
        self._unused.start(self._shard.clock.monotonic_ms() + interval_ms)

    def _clock_difference_ms(self) -> int:
        return self._shard.clock.wall_ms() - self._shard.clock.monotonic_ms()

    def _trusts_clock(self) -> bool:
        """Not while it may be a mistake: somebody has just set it, or the machine woke up."""
        now_ms, difference_ms = self._shard.clock.monotonic_ms(), self._clock_difference_ms()
        if abs(difference_ms - self._difference_ms) > DRIFT_MAX_MS:
            self._difference_ms = difference_ms
            self._trusts_clock_from_ms = now_ms + CALM_MS
        return now_ms >= self._trusts_clock_from_ms

    def _look_for_unused(self) -> None:
        machine = self._machine
        if not self._trusts_clock():
            self._ids = iter(())
            self._start_looking()
            return
        ids = list(islice(self._ids, STEP_IDS))
        if not ids:
            self._ids = iter(list(machine.transactions))
            ids = list(islice(self._ids, STEP_IDS))
        before_ms = self._shard.clock.wall_ms() - machine.settings().transactional_id_expiration_ms
        try:
            self._forget([each for each in ids if self._is_unused(each, before_ms)])
        except RunnelError:  # the journal refuses: the next time
            ids = []
        if len(ids) == STEP_IDS:
            self._unused.start(self._shard.clock.monotonic_ms() + STEP_MS)
        else:
            self._ids = iter(())
            self._start_looking()

    def _is_unused(self, transactional_id: str, before_ms: int) -> bool:
        transaction: Transaction | None = self._machine.transactions.get(transactional_id)
        return (
            transaction is not None
            and transaction.state in _MAY_EXPIRE
            and transaction.updated_ms <= before_ms
        )

    def _forget(self, transactional_ids: list[str]) -> None:
        batch: list[str] = []
        size = 0
        for transactional_id in transactional_ids:
            size += len(transactional_id) * 3 + TOMBSTONE_BYTES
            if batch and size > BATCH_BYTES_MAX:
                self._shard.write([tombstone(each) for each in batch])
                batch, size = [], len(transactional_id) * 3 + TOMBSTONE_BYTES
            batch.append(transactional_id)
        self._shard.write([tombstone(each) for each in batch])
