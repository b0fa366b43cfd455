"""A shard of the group coordinator without a broker: a list as its journal, and a virtual clock.

`stage.machine` is asked directly; `stage.advance_ms` lets time pass and runs what is due;
`stage.restart` throws the machine away and replays the journal into another one.
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from runnel.config.coordination import GroupSettings
from runnel.coordinator.groups.machine import GroupMachine
from runnel.coordinator.runtime import Deferred, Shard
from runnel.coordinator.timers import Timers
from runnel.errors import ErrorCode, RunnelError

WALL_MS = 1_700_000_000_000


class VirtualClock:
    """`ports.Clock`."""

    def __init__(self) -> None:
        self.now_ms = 1_000

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return WALL_MS + self.now_ms


class ListJournal:
    """`ports.Journal`. With `refusal` it takes nothing more and raises that."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None, int]] = []  # key, value, producer id
        self.batches: list[int] = []  # how many records each append brought
        self.refusal: ErrorCode | None = None
        self.uncommitted = 0
        self.batch_bytes_max = 1_048_588

    @property
    def end_offset(self) -> int:
        return len(self.records)

    @property
    def committed_offset(self) -> int:
        return len(self.records) - self.uncommitted

    def append(
        self, records: Sequence[tuple[bytes, bytes | None]], producer_id: int, producer_epoch: int
    ) -> None:
        if self.refusal is not None:
            raise RunnelError(self.refusal, "the test says so")
        self.records += [(key, value, producer_id) for key, value in records]
        self.batches.append(len(records))


class FakeTopics:
    """`TopicsView`: change `counts` with `set`."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.revision = 0

    def set(self, **counts: int) -> None:
        """The topics from now on, with their number of partitions."""
        self.counts = counts
        self.revision += 1

    def names(self) -> Iterable[str]:
        return self.counts

    def partition_count(self, topic: str) -> int:
        return self.counts.get(topic, 0)

    def id_of(self, topic: str) -> bytes | None:
        return topic.encode().rjust(16, b"-") if topic in self.counts else None

    def name_of(self, topic_id: bytes) -> str | None:
        name = topic_id.lstrip(b"-").decode()
        return name if name in self.counts else None

    def racks_of(self, topic: str, index: int) -> frozenset[str]:
        return frozenset()


class GroupStage:
    """The machine that a test asks, and what it stands on."""

    def __init__(
        self, settings: GroupSettings | None = None, clock: VirtualClock | None = None
    ) -> None:
        self.settings = settings or GroupSettings()
        self.clock = clock or VirtualClock()
        self.journal = ListJournal()
        self.topics = FakeTopics()
        self._random = Random(1)
        self.answered: list[Deferred[Any]] = []
        self._open()

    def _open(self) -> None:
        self.timers = Timers()
        self.shard: Shard[GroupMachine] = Shard(
            0, 0, self.journal, self.clock, self.timers, lambda _, each: self.answered.append(each)
        )
        self.machine = self.shard.machine = GroupMachine(
            self.shard, lambda: self.settings, self.topics, self._random
        )
        for key, value, producer_id in self.journal.records:
            self.shard.replay(key, value, producer_id)
        self.machine.loaded()
        self.shard.is_loaded = True

    def restart(self) -> None:
        self.shard.close()
        self._open()

    def advance_ms(self, milliseconds: int) -> None:
        """Whatever is due on the way is done at its own time."""
        until_ms = self.clock.now_ms + milliseconds
        while (next_ms := self.timers.next_ms()) <= until_ms:
            self.clock.now_ms = max(self.clock.now_ms, next_ms)
            self.timers.run_due(self.clock.now_ms)
        self.clock.now_ms = until_ms


def now(answer: Any) -> Any:  # noqa: ANN401  # whatever the machine answers
    """The answer, which must be there by now."""
    if isinstance(answer, Deferred):
        assert answer.response is not None, "it still waits"
        return answer.response
    return answer


def waits(answer: object) -> bool:
    return isinstance(answer, Deferred) and answer.response is None
