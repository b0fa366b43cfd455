"""Answers to what coordinators have gathered: they leave at the end of the loop's turn.

By then every connection that had something to say has been heard, and what they said for one shard
is written as one batch (`coordinator/gathering.py`). A turn is short, and a single request ends its
own: it waits for nobody. Where commits come one by one, as those of consumers at leisure do, to
gather them would only make each of them dearer: after a few turns with one commit each the next
ones are written as they come, and then one is gathered again to see if it has company (ADR 52).
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from runnel.broker.connection import Connection, Pending
from runnel.broker.settling import is_settled, settle
from runnel.broker.waiting import Parked
from runnel.coordinator.gathering import Gathered
from runnel.coordinator.runtime import Shard
from runnel.errors import ErrorCode

_log = logging.getLogger(__name__)
R = TypeVar("R")
NONE: Final = ErrorCode.NONE  # found once: to look it up takes a microsecond
TURN_MAX: Final = 2_000  # answers of one turn; what comes then is written by itself
LONE_TURNS: Final = 8  # in a row, each with a single commit: the next are expected to be alone
LEFT_ALONE: Final = 16  # so many of the next


class Promised(Generic[R]):
    """What a handler returns: the answer, if what was gathered with it is written.

    `failed` makes of it the answer for the case that it is not.
    """

    __slots__ = (
        "began_ns",
        "correlation_id",
        "failed",
        "gathered",
        "pending",
        "response",
        "route",
        "shard",
        "timeout_ms",
    )

    # Set by dispatch: whom the answer goes to, and how it is encoded.
    pending: Pending
    route: Any
    correlation_id: int
    began_ns: int

    def __init__(
        self,
        shard: Shard[Any],
        gathered: Gathered,
        response: R,
        failed: Callable[[R, ErrorCode], R],
        timeout_ms: int,
    ) -> None:
        self.shard = shard
        self.gathered = gathered
        self.response = response
        self.failed = failed
        self.timeout_ms = timeout_ms

    def answer(self) -> R | Parked[R]:
        """When the turn is over. What is written may have to be committed yet (R38)."""
        response, code = self.response, self.gathered.code
        if code is not NONE:
            return self.failed(response, code)
        if is_settled(self.shard):
            return response
        return settle(
            [self.shard],
            response,
            lambda code: self.failed(response, code),
            timeout_ms=self.timeout_ms,
        )


class Gathering:
    """Owned by the broker; one per event loop."""

    __slots__ = ("_alone_left", "_answer", "_count", "_due", "_handle", "_lone_turns", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: dict[Gathered, Shard[Any]] = {}
        self._count = 0
        self._lone_turns = 0
        self._alone_left = 0
        self._handle: asyncio.Handle | None = None
        self._answer: Callable[[Promised[Any]], None] = _not_ours

    def is_worth_it(self) -> bool:
        """Whether a commit that comes now is to be gathered with others."""
        if self._count or not self._alone_left:
            return self._count < TURN_MAX
        self._alone_left -= 1
        return False

    def answer_by(self, answer: Callable[[Promised[Any]], None]) -> None:
        self._answer = answer

    def expect(self, promised: Promised[Any]) -> None:
        gathered = promised.gathered
        gathered.promises.append(promised)
        self._due[gathered] = promised.shard
        self._count += 1
        if self._handle is None:
            self._handle = self._loop.call_soon(self.end_turn)

    def end_turn(self) -> None:
        """Write what is not written yet, then answer all of it, each connection with one call."""
        due, self._due = self._due, {}
        self._lone_turns = self._lone_turns + 1 if self._count == 1 else 0
        if self._lone_turns >= LONE_TURNS:
            self._alone_left = LEFT_ALONE
        self._count = 0
        self._handle = None
        for gathered, shard in due.items():
            if not gathered.is_over:
                shard.write_gathered()
        answered: dict[Connection, None] = {}
        for gathered in due:
            if gathered.bug is not None:
                _log.error("%d commits failed", len(gathered.promises), exc_info=gathered.bug)
            # Taken from it, or each would keep the other until the collector comes.
            promises, gathered.promises = gathered.promises, []
            for promised in promises:
                self._answer(promised)
                answered[promised.pending.connection] = None
        for connection in answered:
            connection.reply_due()

    def stop(self) -> None:
        """As a crash would: what was not written will not be."""
        for gathered in self._due:
            gathered.promises = []
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._due.clear()


def _not_ours(_promised: Promised[Any]) -> None:
    raise AssertionError("nobody answers")
