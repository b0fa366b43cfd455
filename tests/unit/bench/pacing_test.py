"""When chunks are due: for a time, or at a rate, whatever the clock does in between."""

import itertools
from collections.abc import Iterator

import pytest

from runnel.bench.pipeline import Chunk, paced, until

CHUNK = Chunk(memoryview(b"four requests"), 4)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr("runnel.bench.pipeline.time.perf_counter", fake)
    return fake


def test_chunks_end_when_the_time_is_over(clock: Clock) -> None:
    chunks = until(2.0, itertools.repeat(CHUNK))
    for second in range(2):
        clock.now = 100.0 + second
        assert next(chunks) is CHUNK
    clock.now = 102.0
    assert list(chunks) == []


def test_the_time_of_chunks_begins_with_the_first(clock: Clock) -> None:
    chunks = until(2.0, itertools.repeat(CHUNK))
    clock.now = 1000.0
    assert next(chunks) is CHUNK


def due(chunks: Iterator[Chunk | None]) -> int:
    """How many requests may be sent now."""
    return sum(chunk.request_count for chunk in iter(lambda: next(chunks, None), None))


def test_chunks_come_at_their_rate(clock: Clock) -> None:
    chunks = paced(itertools.repeat(CHUNK), 100.0, lambda: False)
    sent = due(chunks)
    for tick in range(1, 1001):
        clock.now = 100.0 + tick / 100
        sent += due(chunks)
        assert 0 <= sent - tick <= CHUNK.request_count


def test_what_a_stall_held_back_is_sent_at_once(clock: Clock) -> None:
    chunks = paced(itertools.repeat(CHUNK), 100.0, lambda: False)
    due(chunks)
    clock.now = 110.0
    assert due(chunks) == 1000


def test_paced_chunks_end_when_they_are_told(clock: Clock) -> None:
    is_over = False
    chunks = paced(itertools.repeat(CHUNK), 100.0, lambda: is_over)
    assert next(chunks) is CHUNK
    assert next(chunks) is None
    is_over = True
    assert list(chunks) == []
