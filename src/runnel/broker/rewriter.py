"""Where logs are rewritten for the cleaner: a process of its own, or a worker of the broker's."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Final, Protocol

from runnel.ports import Disk, Workers
from runnel.storage.cleaning_plan import CleaningPlan

if TYPE_CHECKING:  # a start without compaction need not pay for it
    from runnel.storage.rewriting import Cleaned

LOOKED_AFTER_S: Final = 0.5  # whether a log that is being rewritten is still there


class Rewriter(Protocol):
    """Where the work is done. Ending the generator early ends the work."""

    def rewrite(self, plan: CleaningPlan) -> "AsyncGenerator[Cleaned, None]":
        """Raises OSError, or RunnelError for a log that is damaged."""

    def rest(self) -> None:
        """There is nothing to do for a while."""


class InlineRewriter:
    """In a worker of the broker's own: for logs that no other process can reach."""

    def __init__(self, workers: Workers, disk: Disk) -> None:
        self._workers = workers
        self._disk = disk

    async def rewrite(self, plan: CleaningPlan) -> "AsyncGenerator[Cleaned, None]":
        from runnel.storage.rewriting import rewrite  # see above

        work = rewrite(self._disk, plan)
        while (cleaned := await self._workers.run(lambda: next(work, None))) is not None:
            moved_bytes = cleaned.read_bytes + cleaned.size_bytes
            await asyncio.sleep(moved_bytes / plan.limits.bytes_per_second)
            yield cleaned

    def rest(self) -> None:
        pass


async def next_of(
    results: "AsyncGenerator[Cleaned, None]", is_wanted: Callable[[], bool]
) -> "Cleaned | None":
    """The next result; None at the end, or soon after nobody wants it any more."""
    coming = asyncio.ensure_future(anext(results, None))
    try:
        while not coming.done() and is_wanted():
            await asyncio.wait((coming,), timeout=LOOKED_AFTER_S)
    except asyncio.CancelledError:
        coming.cancel()
        await asyncio.wait((coming,))
        raise
    if not coming.done():
        coming.cancel()
        await asyncio.wait((coming,))
    return None if coming.cancelled() else coming.result()
