"""What lies under every coordinator: a journal, the state replayed from it, and time.

A shard is one partition of an internal topic, led by this broker in one epoch. Its machine holds
the state of all groups (or transactional ids) that hash to it. The rules:

  - What must survive is changed by `replay` alone, of records that `write` has put in the journal.
    So a machine first decides and may refuse, then writes; if the journal refuses, nothing has
    changed. What a start reads back is by construction what was there before.
  - A reply leaves only when everything written before it is below the high watermark in the
    shard's own epoch (R38). That holds for replies that only read, too: nobody is told what could
    still be lost. Handlers see to it (`broker/settling.py`); a machine just gives its answer.
  - What may be written together with others waits for the end of the loop's turn (`gathering.py`).
    Whoever comes to the shard for anything else has it written first, by `write_gathered`.
  - An answer that is due later is a `Deferred`: the machine keeps it and calls `answer` once.
  - When leadership ends, the shard is closed: its timers do nothing more, all who wait hear
    NOT_COORDINATOR, and the machine is thrown away.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from runnel.coordinator.gathering import Gathered, Pair
from runnel.coordinator.records import JournalRecord, Kinds, decode_record, encode_record
from runnel.coordinator.timers import Timer, Timers
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Clock, Journal
from runnel.types import Waitable

R = TypeVar("R")
M = TypeVar("M", bound="Machine")
NO_PRODUCER_ID = -1


# By the first two bytes of a key: what replays such a record from its bytes. Raises WireError.
Straight = Mapping[bytes, Callable[[bytes, bytes | None, int], None]]


class Machine(Protocol):
    """The state of one shard and what may be done with it."""

    kinds: Kinds
    # Of several of these with one key, none of them in a transaction, the last says it all, so that
    # loading may pass over the others if nothing else stands between, and none is a tombstone.
    straight: Straight

    def replay(self, record: JournalRecord, producer_id: int = NO_PRODUCER_ID) -> None:
        """The record is in the journal. With a producer id it counts when that one commits."""

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """A marker is in the journal: what that producer wrote since the last one is decided."""

    def loaded(self) -> None:
        """All of the journal is replayed: start timers. Requests come from now on."""


class Deferred(Waitable, Generic[R]):
    """An answer that is due later."""

    __slots__ = ("_on_answer", "after_offset", "response")

    def __init__(self, on_answer: "Callable[[Deferred[Any]], None]") -> None:
        super().__init__()
        self._on_answer = on_answer
        self.response: R | None = None
        self.after_offset = 0  # of the journal; the answer may leave when that is committed

    def answer(self, response: R) -> None:
        """Only the first answer counts: a member that is told to go is told nothing more."""
        if self.response is None:
            self.response = response
            self._on_answer(self)


class Shard(Generic[M]):
    """Owned by the broker's coordinators; its machine keeps it to write, to wait and for time."""

    __slots__ = (
        "_on_answer",
        "_timers",
        "clock",
        "deferred",
        "epoch",
        "gathered",
        "index",
        "is_loaded",
        "is_open",
        "journal",
        "machine",
    )

    machine: M  # set right after the construction, because a machine is given its shard

    def __init__(
        self,
        index: int,
        epoch: int,
        journal: Journal,
        clock: Clock,
        timers: Timers,
        on_answer: "Callable[[Shard[Any], Deferred[Any]], None]",
    ) -> None:
        self.index = index
        self.epoch = epoch
        self.journal = journal
        self.clock = clock
        self.is_open = True
        self.is_loaded = False
        self._timers = timers
        self._on_answer = on_answer
        self.deferred: dict[Deferred[Any], None] = {}  # not answered yet
        self.gathered: Gathered | None = None

    def write(
        self,
        records: Sequence[JournalRecord],
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
    ) -> None:
        """All of them in one batch, or none. Raises RunnelError, in words for clients.

        With a producer id they are part of its transaction.
        """
        if not records:
            return
        self.append([encode_record(record) for record in records], producer_id, producer_epoch)
        for record in records:
            self.machine.replay(record, producer_id)

    def append(
        self,
        encoded: Sequence[Pair],
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
    ) -> None:
        """For a machine that encodes by itself; it replays the same right after."""
        assert self.gathered is None, "decided without what was gathered before"
        try:
            self.journal.append(encoded, producer_id, producer_epoch)
        except RunnelError as error:
            raise RunnelError(_FOR_CLIENTS.get(error.code, error.code), str(error)) from error

    def write_gathered(self) -> None:
        """Before anything else is decided here. Who gathered is told of a refusal, nobody else."""
        gathered = self.gathered
        if gathered is not None:
            self.gathered = None
            gathered.write()

    def replay(self, key: bytes, value: bytes | None, producer_id: int) -> None:
        """One record as the journal has it. Raises WireError."""
        straight = self.machine.straight.get(key[:2])
        if straight is not None:
            straight(key, value, producer_id)
            return
        record = decode_record(self.machine.kinds, key, value)
        if record is not None:
            self.machine.replay(record, producer_id)

    def defer(self) -> Deferred[Any]:
        deferred: Deferred[Any] = Deferred(self._answered)
        self.deferred[deferred] = None
        return deferred

    def _answered(self, deferred: Deferred[Any]) -> None:
        self.deferred.pop(deferred, None)
        deferred.after_offset = self.journal.end_offset
        self._on_answer(self, deferred)

    def timer(self, work: Callable[[], None]) -> Timer:
        """Does nothing once the shard is closed. If its journal refuses, `work` must cope."""

        def guarded() -> None:
            if self.is_open:
                self.write_gathered()
                work()

        return Timer(self._timers, guarded)

    def after(self, delay_ms: int, work: Callable[[], None]) -> Timer:
        timer = self.timer(work)
        timer.start(self.clock.monotonic_ms() + delay_ms)
        return timer

    def is_settled(self, offset: int) -> bool:
        """Whether all before that offset is committed: nobody is told what might be lost."""
        return self.journal.committed_offset >= offset

    def close(self) -> None:
        self.is_open = False
        gathered, self.gathered = self.gathered, None
        if gathered is not None:
            gathered.refuse(ErrorCode.NOT_COORDINATOR)


_FOR_CLIENTS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
