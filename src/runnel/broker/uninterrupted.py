"""Work that, once begun, is brought to its end even if the task that waits for it is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`; a cancellation is passed on only when the work is done.

    For a step whose halves must not be torn apart: an fsync in a thread, and the offsets that are
    advanced on the loop when it comes back.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
