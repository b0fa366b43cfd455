"""Waiting longer from try to try, and calling again what may succeed later."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from runnel.client.failures import ClientError, ConfigurationError

T = TypeVar("T")


@dataclass(frozen=True)
class Backoff:
    """Waits of `first_ms`, then `factor` times as long each, up to `max_ms`.

    `jitter` is the part by which each wait is made shorter or longer at random, so that those who
    failed together do not come back together.
    """

    first_ms: float = 100.0
    factor: float = 2.0
    max_ms: float = 10_000.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        if self.first_ms < 0 or self.factor < 1 or self.max_ms < 0 or not 0 <= self.jitter <= 1:
            raise ConfigurationError(
                "a back-off has waits of 0 ms or more, a factor of 1 or more, a jitter of 0 to 1"
            )

    def waits_s(self) -> Iterator[float]:
        """Without an end, in seconds."""
        wait_ms = min(self.first_ms, self.max_ms)
        while True:
            spread = 1 + self.jitter * (2 * random.random() - 1)
            yield wait_ms * spread / 1000
            wait_ms = min(wait_ms * self.factor, self.max_ms)


def may_succeed_later(error: Exception) -> bool:
    """Errors of this library know it; of others, those of the network and time-outs."""
    if isinstance(error, ClientError):
        return error.retriable or isinstance(error, TimeoutError)
    return isinstance(error, ConnectionError | TimeoutError)


def retry(
    call: Callable[[], T],
    *,
    tries: int = 5,
    backoff: Backoff | None = None,
    when: Callable[[Exception], bool] = may_succeed_later,
) -> T:
    """The result of `call`, called again after errors for which `when` holds.

    The last error is raised as it is:

        price = retry(lambda: ask_for_price(order), tries=3)
    """
    waits = (backoff or Backoff()).waits_s()
    for left in range(_checked(tries) - 1, -1, -1):
        try:
            return call()
        except Exception as error:
            if left == 0 or not when(error):
                raise
            time.sleep(next(waits))
    raise AssertionError("every try returns or raises")


async def retry_async(
    call: Callable[[], Awaitable[T]],
    *,
    tries: int = 5,
    backoff: Backoff | None = None,
    when: Callable[[Exception], bool] = may_succeed_later,
) -> T:
    """`retry` for coroutines."""
    waits = (backoff or Backoff()).waits_s()
    for left in range(_checked(tries) - 1, -1, -1):
        try:
            return await call()
        except Exception as error:
            if left == 0 or not when(error):
                raise
            await asyncio.sleep(next(waits))
    raise AssertionError("every try returns or raises")


def _checked(tries: int) -> int:
    if tries < 1:
        raise ConfigurationError(f"tries is {tries}: there has to be at least one")
    return tries
