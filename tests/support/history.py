"""What clients saw, written down while it happens and judged afterwards (`tests.support.checker`).

A history belongs to no kind of test: the simulator fills one on virtual time, a test with real
processes fills one from threads of real clients. Every event has a place in one order: `began` and
`ended` are drawn from one counter, so two operations are concurrent exactly if their spans overlap.

Every value is sent by one `Send` only, however often its client repeats the request. An outcome is
`UNKNOWN` when the request may have taken effect, or may yet: no reply came.
"""

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from runnel.types import TopicPartition

Record = tuple[int, str]  # offset and value


class Outcome(Enum):
    OK = "ok"
    FAIL = "fail"  # it did not happen and never will
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Send:
    """One batch for one partition. `producer` is the sequence that keeps its order, if one does."""

    client: str
    partition: TopicPartition
    values: tuple[str, ...]
    began: int
    producer: str | None = None
    idempotent: bool = False
    acks_all: bool = True
    attempts: int = 1
    repeated: int = -1  # when the last attempt began
    ended: int = -1
    ended_ms: int = -1
    outcome: Outcome = Outcome.UNKNOWN
    base_offset: int = -1
    why: str = ""


@dataclass(frozen=True, slots=True)
class Poll:
    """What a consumer was given from `position` on; `seeked`: it did not go on from before."""

    client: str
    partition: TopicPartition
    position: int
    records: tuple[Record, ...]
    high_watermark: int
    log_start_offset: int
    began: int
    ended: int
    seeked: bool = False


@dataclass(frozen=True, slots=True)
class Latest:
    """What ListOffsets said of the end of a partition."""

    client: str
    partition: TopicPartition
    offset: int
    began: int
    ended: int


@dataclass(frozen=True, slots=True)
class FinalRead:
    """All of a partition, after everything else."""

    partition: TopicPartition
    log_start_offset: int
    end_offset: int
    records: tuple[Record, ...]
    began: int
    ended: int


@dataclass(frozen=True, slots=True)
class LossyCrash:
    """From here on, what stood at these offsets or behind them may be gone, acknowledged or not."""

    at: int
    may_lose_from: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Trim:
    """Somebody asked to delete the records before this offset; it may happen from now on."""

    partition: TopicPartition
    before_offset: int
    at: int


Event = Send | Poll | Latest | FinalRead | LossyCrash | Trim


@dataclass
class History:
    """Filled by many clients; safe to share between threads, as appending is atomic."""

    now_ms: Callable[[], int] = lambda: 0
    events: list[Event] = field(default_factory=list)
    _counter: "itertools.count[int]" = field(default_factory=itertools.count)

    def tick(self) -> int:
        return next(self._counter)

    def send(
        self,
        client: str,
        partition: TopicPartition,
        values: Sequence[str],
        *,
        producer: str | None = None,
        idempotent: bool = False,
        acks_all: bool = True,
    ) -> Send:
        """A send begins; until `ok` or `failed` says otherwise its outcome is unknown."""
        send = Send(
            client, partition, tuple(values), self.tick(), producer, idempotent, acks_all
        )  # fmt: skip
        self.events.append(send)
        return send

    def ok(self, send: Send, base_offset: int) -> None:
        send.base_offset = base_offset
        self._end(send, Outcome.OK, "")

    def failed(self, send: Send, why: str) -> None:
        self._end(send, Outcome.FAIL, why)

    def unknown(self, send: Send, why: str) -> None:
        self._end(send, Outcome.UNKNOWN, why)

    def _end(self, send: Send, outcome: Outcome, why: str) -> None:
        assert send.ended < 0, f"{send} ended already"
        send.outcome, send.why = outcome, why
        send.ended, send.ended_ms = self.tick(), self.now_ms()

    def polled(
        self,
        client: str,
        partition: TopicPartition,
        position: int,
        records: Sequence[Record],
        *,
        high_watermark: int,
        log_start_offset: int,
        began: int,
        seeked: bool = False,
    ) -> None:
        self.events.append(
            Poll(
                client, partition, position, tuple(records), high_watermark, log_start_offset,
                began, self.tick(), seeked,
            )
        )  # fmt: skip

    def latest(self, client: str, partition: TopicPartition, offset: int, *, began: int) -> None:
        self.events.append(Latest(client, partition, offset, began, self.tick()))

    def final_read(
        self,
        partition: TopicPartition,
        records: Sequence[Record],
        *,
        log_start_offset: int,
        end_offset: int,
        began: int,
    ) -> None:
        self.events.append(
            FinalRead(
                partition, log_start_offset, end_offset, tuple(records), began, self.tick()
            )
        )  # fmt: skip

    def lossy_crash(self, may_lose_from: Mapping[TopicPartition, int]) -> None:
        self.events.append(LossyCrash(self.tick(), dict(may_lose_from)))

    def trim(self, partition: TopicPartition, before_offset: int) -> None:
        self.events.append(Trim(partition, before_offset, self.tick()))

    def digest(self) -> str:
        """Equal for two runs exactly if their clients saw the same."""
        whole = hashlib.sha256()
        for event in self.events:
            whole.update(repr(event).encode())
        return whole.hexdigest()[:16]
