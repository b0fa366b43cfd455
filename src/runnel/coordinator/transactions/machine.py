"""All transactional ids of one shard: who owns each, which partitions it writes to, how it ends.

A request is decided by `transitions.py`, written, and answered once that is committed. A
transaction that is decided is carried out here whatever happens to the request that decided it:
its markers are asked for right after its Prepare record, and again by whoever replays that record
and finds no Complete after it.
"""

from collections.abc import Callable, Iterator, Set
from types import MappingProxyType

from runnel.config.coordination import TransactionSettings
from runnel.coordinator.records import JournalRecord, Kinds, encode_record
from runnel.coordinator.runtime import NO_PRODUCER_ID, Shard, Straight
from runnel.coordinator.transactions import transitions
from runnel.coordinator.transactions.expiry import Expiry
from runnel.coordinator.transactions.markers import Ending, MarkerWriter
from runnel.coordinator.transactions.transaction import (
    KINDS,
    State,
    Transaction,
    record_of,
    some_to_end,
    transaction_of,
)
from runnel.coordinator.transactions.transitions import (
    EPOCH_BUMPS_SINCE,
    Identity,
    TakeProducerId,
)
from runnel.errors import ErrorCode, RunnelError
from runnel.types import TopicPartition

TAGGED_SINCE = 1  # transaction.version; records have tagged fields from then on
RETRY_MS = 100
FINISH_PAUSE_MS = 5


class TransactionMachine:
    """`runtime.Machine` of one partition of `__transaction_state`."""

    kinds: Kinds = KINDS
    straight: Straight = MappingProxyType({})

    def __init__(
        self,
        shard: "Shard[TransactionMachine]",
        settings: Callable[[], TransactionSettings],
        version: Callable[[], int],
        take_producer_id: TakeProducerId,
        markers: MarkerWriter,
    ) -> None:
        self.shard = shard
        self.settings = settings  # as they are at that moment, as is the next one
        self.version = version  # the finalized transaction.version
        self._take_producer_id = take_producer_id
        self._markers = markers
        self.transactions: dict[str, Transaction] = {}
        self.ongoing: dict[str, Transaction] = {}
        self._expiry = Expiry(self)

    # The journal

    def replay(self, record: JournalRecord, producer_id: int = NO_PRODUCER_ID) -> None:
        transactional_id = record.key.transactional_id
        before = self.ongoing.pop(transactional_id, None)
        if record.value is None:
            self.transactions.pop(transactional_id, None)
            return
        found = transaction_of(transactional_id, record.value)
        found.settles_at = self.shard.journal.end_offset
        self._put(found, before)

    def _put(self, transaction: Transaction, before: Transaction | None) -> None:
        """It is in the journal. `before`: what was going on until then."""
        self.transactions[transaction.transactional_id] = transaction
        if transaction.state is State.ONGOING:
            self.ongoing[transaction.transactional_id] = transaction
            if before is None:
                clock = self.shard.clock
                left_ms = transaction.start_ms + transaction.timeout_ms - clock.wall_ms()
                left_ms = min(max(left_ms, 0), transaction.timeout_ms)
                transaction.deadline_ms = clock.monotonic_ms() + left_ms
            else:
                transaction.deadline_ms = before.deadline_ms
            if self.shard.is_loaded:
                self._expiry.watch()

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Nobody writes to this journal in a transaction."""

    def loaded(self) -> None:
        """What is decided is carried out now, by this coordinator and in its epoch."""
        self._finish(iter([each for each in self.transactions.values() if each.state.is_prepared]))
        self._expiry.begin()

    def _finish(self, prepared: Iterator[Transaction]) -> None:
        """Some at a time. Nobody else touches them: a request for one is told to come again."""
        some = some_to_end(prepared)
        for transaction in some:
            self._carry_out(transaction)
        if some:
            self.shard.after(FINISH_PAUSE_MS, lambda: self._finish(prepared))

    def _write(self, transaction: Transaction) -> Transaction:
        """What its record would be replayed to is the transaction itself, so that is taken."""
        version = 1 if self.version() >= TAGGED_SINCE else 0
        if not version:  # that one has no place for these
            transaction.previous_producer_id = transaction.next_producer_id = NO_PRODUCER_ID
            transaction.client_version = 0
        self.shard.append([encode_record(record_of(transaction, version))])
        transaction.settles_at = self.shard.journal.end_offset
        self._put(transaction, self.ongoing.pop(transaction.transactional_id, None))
        return transaction

    # Requests. Each raises RunnelError, and has changed nothing then, or done what it says.

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: Identity | None
    ) -> Identity:
        """Who asks owns the id from now on. If there is a transaction, it must be over first."""
        now_ms = self.shard.clock.wall_ms()
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            next_ = transitions.created(
                transactional_id, self._take_producer_id(), timeout_ms, now_ms
            )
        else:
            transitions.ensure_may_init(transaction, expected)
            if transaction.state is State.ONGOING:
                self.fence(transaction)
                raise transitions.concurrent(transaction)
            next_ = transitions.initialised(
                transaction, expected, timeout_ms, now_ms, self._take_producer_id
            )
        written = self._write(next_)
        return Identity(written.producer_id, written.epoch)

    def add_partitions(
        self,
        transactional_id: str,
        who: Identity,
        partitions: Set[TopicPartition],
        client_version: int,
    ) -> None:
        transaction = self._owned(transactional_id, who)
        now_ms = self.shard.clock.wall_ms()
        next_ = transitions.extended(transaction, partitions, client_version, now_ms)
        if next_ is not None:
            self._write(next_)

    def missing(
        self, transactional_id: str, who: Identity, partitions: Set[TopicPartition]
    ) -> Set[TopicPartition]:
        """Which of them are not in the transaction that is going on (KIP-890, verify only)."""
        transaction = self._owned(transactional_id, who)
        return partitions - transaction.partitions

    def end(
        self, transactional_id: str, who: Identity, client_version: int, *, is_commit: bool
    ) -> Identity:
        """As whom the producer goes on: in the next epoch, if its client knows KIP-890."""
        transaction = self._find(transactional_id)
        next_ = transitions.ended(
            transaction,
            who,
            min(client_version, self.version()),
            self.shard.clock.wall_ms(),
            self._take_producer_id,
            is_commit=is_commit,
        )
        if next_ is None:
            return Identity(transaction.producer_id, transaction.epoch)
        self._carry_out(self._write(next_))
        if next_.next_producer_id >= 0:
            return Identity(next_.next_producer_id, 0)
        return Identity(next_.producer_id, next_.epoch)

    def fence(self, transaction: Transaction) -> None:
        """Abort what is going on, in an epoch that its producer does not have."""
        now_ms = self.shard.clock.wall_ms()
        next_ = transitions.fenced_off(transaction, self.version(), now_ms, self._take_producer_id)
        self._carry_out(self._write(next_))

    def is_settled(self, transactional_id: str) -> bool:
        """Whether what is known of it is committed, however much others write meanwhile."""
        transaction = self.transactions.get(transactional_id)
        return transaction is None or self.shard.is_settled(transaction.settles_at)

    def _find(self, transactional_id: str) -> Transaction:
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise transitions.unmapped(transactional_id)
        return transaction

    def _owned(self, transactional_id: str, who: Identity) -> Transaction:
        transaction = self._find(transactional_id)
        transitions.ensure_not_ending(transaction)
        transitions.ensure_owned(transaction, who)
        return transaction

    # From the decision to its end

    def _carry_out(self, transaction: Transaction) -> None:
        ending = Ending(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.epoch,
            transaction.state is State.PREPARE_COMMIT,
            transaction.partitions,
            self.shard.epoch,
            transaction.client_version >= EPOCH_BUMPS_SINCE,
        )
        self._markers.write(self.shard, ending, lambda: self._complete(transaction))

    def _complete(self, transaction: Transaction) -> None:
        """No request moves it out of its Prepare state; only this does."""
        assert self.transactions.get(transaction.transactional_id) is transaction, transaction
        try:
            self._write(transitions.completed(transaction, self.shard.clock.wall_ms()))
        except RunnelError:  # the journal takes nothing at the moment
            self.shard.after(RETRY_MS, lambda: self._complete(transaction))


def ensure_transactional_id(transactional_id: str | None) -> str:
    if not transactional_id:
        raise RunnelError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
    return transactional_id


def ensure_timeout(timeout_ms: int, settings: TransactionSettings) -> None:
    if not 0 < timeout_ms <= settings.transaction_max_timeout_ms:
        raise RunnelError(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"{timeout_ms} ms, transaction.max.timeout.ms is {settings.transaction_max_timeout_ms}",
        )
