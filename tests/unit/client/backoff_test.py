"""Waits that grow, and calls that are made again only when that makes sense."""

import asyncio
from itertools import islice

import pytest

from runnel.client import Backoff, ClientError, ConfigurationError, retry, retry_async

AT_ONCE = Backoff(first_ms=0, max_ms=0)


def test_waits_grow_up_to_a_limit() -> None:
    backoff = Backoff(first_ms=100, factor=2, max_ms=500, jitter=0)
    assert list(islice(backoff.waits_s(), 5)) == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_jitter_stays_within_its_part() -> None:
    waits = list(islice(Backoff(first_ms=100, factor=1, jitter=0.5).waits_s(), 200))
    assert all(0.05 <= wait <= 0.15 for wait in waits)
    assert len(set(waits)) > 100


def test_refused() -> None:
    with pytest.raises(ConfigurationError):
        Backoff(factor=0.5)
    with pytest.raises(ConfigurationError):
        retry(int, tries=0)


class Flaky:
    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def __call__(self) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    async def later(self) -> str:
        return self()


def test_called_again_until_it_works() -> None:
    assert retry(Flaky(ConnectionError(), TimeoutError()), backoff=AT_ONCE) == "done"
    again = Flaky(ClientError("busy", retriable=True))
    assert asyncio.run(retry_async(again.later, backoff=AT_ONCE)) == "done"


def test_the_last_error_is_raised() -> None:
    flaky = Flaky(*[ConnectionError(str(number)) for number in range(5)])
    with pytest.raises(ConnectionError, match="2"):
        retry(flaky, tries=3, backoff=AT_ONCE)


def test_what_will_not_get_better_is_not_tried_again() -> None:
    flaky = Flaky(ClientError("never"), ClientError("never"))
    with pytest.raises(ClientError):
        retry(flaky, backoff=AT_ONCE)
    assert len(flaky.errors) == 1
    assert retry(Flaky(KeyError()), backoff=AT_ONCE, when=lambda _: True) == "done"
