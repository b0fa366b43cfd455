"""Long work of one request, done in turns: other requests are served between them.

Most such work is short, and is done at once without a task.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, TypeAlias, TypeVar

from runnel.broker.waiting import Parked
from runnel.ports import Clock

R = TypeVar("R")
Taken: TypeAlias = R | Parked[R] | Coroutine[Any, Any, R | Parked[R]]  # what a handler may return

TURN_MS: Final = 5
TURN_STEPS: Final = 20  # likewise, where time stands still
ITEMS_PER_STEP: Final = 100  # of a list that is looked through


def take_turns(
    steps: Iterator[None], answer: Callable[[], R | Parked[R]], clock: Clock
) -> Taken[R]:
    """All steps, some milliseconds of them at a time; then the answer is asked for."""
    return answer() if _take_one(steps, clock) else _take_rest(steps, answer, clock)


def _take_one(steps: Iterator[None], clock: Clock) -> bool:
    """Whether no step is left."""
    until_ms = clock.monotonic_ms() + TURN_MS
    for count, _ in enumerate(steps, 1):
        if count >= TURN_STEPS or clock.monotonic_ms() >= until_ms:
            return False
    return True


async def _take_rest(
    steps: Iterator[None], answer: Callable[[], R | Parked[R]], clock: Clock
) -> R | Parked[R]:
    while True:
        await asyncio.sleep(0)
        if _take_one(steps, clock):
            return answer()
