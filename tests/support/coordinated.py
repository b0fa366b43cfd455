"""What members of groups and transactional producers saw, judged by `coordinated_checker`.

It shares the counter of a `History`, so that all events of a run stand in one order. As there, an
outcome is `UNKNOWN` when a request may have taken effect, or may yet.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from runnel.types import TopicPartition
from tests.support.history import History, Outcome, Record

NO_OFFSET = -1


@dataclass(slots=True)
class Transaction:
    """From its first record to its end. `end_began`: when a commit was first asked for, or -1."""

    client: str
    transactional_id: str
    began: int
    values: dict[TopicPartition, list[str]] = field(default_factory=dict)
    group: str = ""
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    end_began: int = -1
    ended: int = -1
    outcome: Outcome = Outcome.UNKNOWN
    why: str = ""


@dataclass(frozen=True, slots=True)
class CommittedRead:
    """What a read_committed consumer took from `position` up to `next_position`."""

    client: str
    partition: TopicPartition
    position: int
    next_position: int
    records: tuple[Record, ...]
    last_stable_offset: int
    high_watermark: int
    began: int
    ended: int
    is_final: bool = False  # all there is, after everything else


@dataclass(frozen=True, slots=True)
class Grant:
    """The coordinator told a member what it owns in an epoch (or generation)."""

    group: str
    member: str
    epoch: int
    partitions: frozenset[TopicPartition]
    joined: bool  # with this it entered the group, or came back
    began: int
    ended: int


@dataclass(slots=True)
class Commit:
    """A member's offset; members never commit a lower one than they were given."""

    group: str
    member: str
    partition: TopicPartition
    offset: int
    began: int
    ended: int = -1
    outcome: Outcome = Outcome.UNKNOWN


@dataclass(frozen=True, slots=True)
class Fetched:
    """The committed offset as somebody was told it; NO_OFFSET if there was none."""

    group: str
    partition: TopicPartition
    offset: int
    began: int
    ended: int


Event = Transaction | CommittedRead | Grant | Commit | Fetched


@dataclass
class Coordinated:
    """Filled by many clients."""

    history: History
    events: list[Event] = field(default_factory=list)

    def tick(self) -> int:
        return self.history.tick()

    def transaction(self, client: str, transactional_id: str) -> Transaction:
        found = Transaction(client, transactional_id, self.tick())
        self.events.append(found)
        return found

    def end(self, transaction: Transaction, outcome: Outcome, why: str = "") -> None:
        """What was never asked to be committed must never be seen."""
        assert transaction.ended < 0, transaction
        if outcome is Outcome.UNKNOWN and transaction.end_began < 0:
            outcome = Outcome.FAIL
        transaction.outcome, transaction.why, transaction.ended = outcome, why, self.tick()

    def read(
        self,
        client: str,
        partition: TopicPartition,
        span: tuple[int, int],
        records: Sequence[Record],
        *,
        last_stable_offset: int,
        high_watermark: int,
        began: int,
        is_final: bool = False,
    ) -> None:
        self.events.append(
            CommittedRead(
                client, partition, *span, tuple(records), last_stable_offset, high_watermark,
                began, self.tick(), is_final,
            )
        )  # fmt: skip

    def grant(
        self,
        group: str,
        member: str,
        epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        joined: bool,
        began: int,
    ) -> None:
        self.events.append(
            Grant(group, member, epoch, frozenset(partitions), joined, began, self.tick())
        )

    def commits(
        self, group: str, member: str, offsets: Mapping[TopicPartition, int]
    ) -> list[Commit]:
        began = self.tick()
        made = [
            Commit(group, member, partition, offset, began) for partition, offset in offsets.items()
        ]
        self.events += made
        return made

    def settle(self, commit: Commit, outcome: Outcome) -> None:
        commit.outcome, commit.ended = outcome, self.tick()

    def fetched(self, group: str, offsets: Mapping[TopicPartition, int], *, began: int) -> None:
        ended = self.tick()
        for partition, offset in offsets.items():
            self.events.append(Fetched(group, partition, offset, began, ended))
