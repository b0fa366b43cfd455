"""From a coordinator's answer to a reply that may leave: only what is committed is told (R38)."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from runnel.broker.journal import PartitionJournal, partition_of
from runnel.broker.waiting import Parked, Waiting
from runnel.coordinator.runtime import Deferred, Shard
from runnel.errors import ErrorCode

R = TypeVar("R")
COMMIT_TIMEOUT_MS: Final = 5_000  # the default of offsets.commit.timeout.ms
DEFERRED_TIMEOUT_MS: Final = 2**31 - 1  # the machine has its own timers


def settle(
    shards: Sequence[Shard[Any]],
    result: "R | Deferred[R]",
    failed: Callable[[ErrorCode], R],
    *,
    timeout_ms: int = COMMIT_TIMEOUT_MS,
) -> R | Parked[R]:
    """The answer, if all that was written before it is committed already; else it is parked.

    `failed` makes the answer for a shard that was closed meanwhile or whose log went offline, or
    that did not commit in time.
    """
    if isinstance(result, Deferred):
        return _settle_later(shards[0], result, failed)
    for shard in shards:
        if not is_settled(shard):
            break
    else:
        return result
    ends = [(shard, shard.journal.end_offset) for shard in shards]
    response: R = result

    def attempt(final: bool) -> R | None:
        if any(_is_lost(shard, end) for shard, end in ends):
            return failed(ErrorCode.NOT_COORDINATOR)
        if all(shard.is_settled(end) for shard, end in ends):
            return response
        return failed(ErrorCode.COORDINATOR_NOT_AVAILABLE) if final else None

    now = attempt(False)
    if now is not None:
        return now
    return Parked([partition_of(shard) for shard in shards], timeout_ms, attempt)


def is_settled(shard: Shard[Any]) -> bool:
    """Whether all that was ever written is committed. Asked for every answer."""
    journal = shard.journal
    assert isinstance(journal, PartitionJournal)
    return journal.committed_offset >= journal.end_offset


def is_decided(shard: Shard[Any], offset: int) -> bool:
    """Whether what was written before that offset is committed, or never will be here."""
    return _is_lost(shard, offset) or shard.is_settled(offset)


def _is_lost(shard: Shard[Any], offset: int) -> bool:
    if not shard.is_open:
        return True
    return partition_of(shard).log.offline is not None and not shard.is_settled(offset)


def _settle_later(
    shard: Shard[Any], deferred: Deferred[R], failed: Callable[[ErrorCode], R]
) -> R | Parked[R]:
    def attempt(final: bool) -> R | None:
        if _is_lost(shard, deferred.after_offset):
            return failed(ErrorCode.NOT_COORDINATOR)
        if deferred.response is not None and shard.is_settled(deferred.after_offset):
            return deferred.response
        return failed(ErrorCode.COORDINATOR_NOT_AVAILABLE) if final else None

    now = attempt(False)
    if now is not None:
        return now
    answered = deferred.response is not None
    return Parked([partition_of(shard) if answered else deferred], DEFERRED_TIMEOUT_MS, attempt)


async def until(
    waiting: Waiting, on: Iterable[Any], timeout_ms: int, is_so: Callable[[], bool]
) -> bool:
    """Wait for what a movement of these may bring about; False if it took too long."""
    if is_so():
        return True
    moved: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def attempt(final: bool) -> bool | None:
        return final or is_so() or None

    def wake(is_over: bool) -> None:
        if not moved.done():  # cancelled, and not yet gone from the list of those who wait
            moved.set_result(is_over)

    cancel = waiting.park(Parked(list(dict.fromkeys(on)), timeout_ms, attempt), wake)
    try:
        await moved
    finally:
        cancel()
    return is_so()


async def settled(waiting: Waiting, shard: Shard[Any], timeout_ms: int) -> bool:
    """Wait until all that was written before is committed; False if it is not, or is lost."""
    end_offset = shard.journal.end_offset
    await until(
        waiting,
        [partition_of(shard)],
        timeout_ms,
        lambda: not shard.is_open or shard.is_settled(end_offset),
    )
    return shard.is_open and shard.is_settled(end_offset)
