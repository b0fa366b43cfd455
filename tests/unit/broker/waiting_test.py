"""Goal: who waits is woken before the replies of those who moved something, if they are few.

Method: a Waiting on a loop that only keeps what is to be called; requests that note when they are
tried.
"""

from collections.abc import Callable
from typing import Any

import pytest

from runnel.broker.waiting import FEW, FRESH_BYTES_MAX, Parked, Waiting
from runnel.storage.files import MemoryDisk
from runnel.types import FileSlice, Waitable


class Loop:
    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.due_ms: list[int] = []
        self.now_s = 1.0

    def time(self) -> float:
        return self.now_s

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def call_at(self, when_s: float, callback: Callable[..., None], *args: object) -> None:
        """No deadline comes in these tests."""
        self.due_ms.append(round(when_s * 1000))

    def turn(self) -> None:
        due, self.soon = self.soon, []
        for callback in due:
            callback()


class Room:
    def __init__(self) -> None:
        self.loop = Loop()
        loop: Any = self.loop
        self.waiting = Waiting(loop)
        self.answered: list[str] = []

    def park(self, name: str, on: Waitable, *, answer: str | None = "yes") -> None:
        self.waiting.park(
            Parked([on], 1000, lambda final: answer), lambda _: self.answered.append(name)
        )


def test_few_are_woken_before_the_replies_leave() -> None:
    room, partition = Room(), Waitable()
    for number in range(FEW):
        room.park(str(number), partition)
    room.waiting.moved(partition)
    assert room.answered == [], "fifty appends make them plan once"
    room.waiting.wake_few()
    assert room.answered == ["0", "1"]
    room.loop.turn()
    assert room.answered == ["0", "1"]


@pytest.mark.parametrize("in_partitions", [1, 3])
def test_many_are_woken_after_them(in_partitions: int) -> None:
    """A producer does not wait until all of its consumers are served."""
    room, partitions = Room(), [Waitable() for _ in range(in_partitions)]
    for number in range(FEW + 1):
        room.park(str(number), partitions[number % in_partitions])
    for partition in partitions:
        room.waiting.moved(partition)
    room.waiting.wake_few()
    assert room.answered == []
    room.loop.turn()
    assert sorted(room.answered) == ["0", "1", "2"]


def test_what_a_waking_moves_wakes_others_in_the_next_round() -> None:
    """However long the chain, it is not as deep as it is long."""
    room, partitions = Room(), [Waitable() for _ in range(5)]

    def answer_and_move(number: int) -> Callable[[object], None]:
        def answered(_: object) -> None:
            room.answered.append(str(number))
            if number + 1 < len(partitions):
                room.waiting.moved(partitions[number + 1])
                room.waiting.wake_few()

        return answered

    for number, partition in enumerate(partitions):
        parked = Parked[str]([partition], 1000, lambda final: "yes")
        room.waiting.park(parked, answer_and_move(number))
    room.waiting.moved(partitions[0])
    room.waiting.wake_few()
    for turns in range(1, 5):
        assert len(room.answered) == turns
        room.loop.turn()
    assert room.answered == ["0", "1", "2", "3", "4"]


def test_who_asks_soon_needs_no_round_of_the_loop() -> None:
    room, partition = Room(), Waitable()
    room.park("0", partition)
    room.waiting.is_asked_soon = True
    room.waiting.moved(partition)
    assert not room.loop.soon
    room.waiting.wake_few()
    assert room.answered == ["0"]
    assert not room.loop.soon
    assert not room.waiting.is_asked_soon, "it is asked for each time"
    room.park("1", partition)
    room.waiting.moved(partition)
    room.loop.turn()
    assert room.answered == ["0", "1"]


def test_many_are_woken_in_the_next_round_by_who_asks_soon() -> None:
    room, partition = Room(), Waitable()
    for number in range(FEW + 1):
        room.park(str(number), partition)
    room.waiting.is_asked_soon = True
    room.waiting.moved(partition)
    room.waiting.wake_few()
    assert room.answered == []
    room.loop.turn()
    assert room.answered == ["0", "1", "2"]


def test_what_was_just_written_is_kept_until_it_was_told() -> None:
    room, partition = Room(), Waitable()
    disk = MemoryDisk()
    file, other = disk.open("a", create=True), disk.open("b", create=True)
    fresh = room.waiting.fresh
    assert fresh.of(FileSlice(file, 0, 0)) is None
    buffer = bytearray(b"..records")
    fresh.keep(file, 100, memoryview(buffer)[2:])
    buffer[:] = b"something"  # the receive buffer is used again
    assert fresh.of(FileSlice(file, 93, 7)) == b"records"
    for found in (FileSlice(other, 93, 7), FileSlice(file, 92, 7), FileSlice(file, 93, 6)):
        assert fresh.of(found) is None
    told: list[bytes | None] = []
    parked = Parked[str]([partition], 1000, lambda final: "yes")
    room.waiting.park(parked, lambda _: told.append(fresh.of(FileSlice(file, 93, 7))))
    room.waiting.moved(partition)
    room.waiting.wake_few()
    assert told == [b"records"]
    assert fresh.of(FileSlice(file, 93, 7)) is None, "a file may be cut and written to again"
    fresh.keep(file, FRESH_BYTES_MAX + 1, memoryview(bytes(FRESH_BYTES_MAX + 1)))
    assert fresh.of(FileSlice(file, 0, FRESH_BYTES_MAX + 1)) is None, "memory has its limits"


def test_who_is_not_satisfied_waits_on() -> None:
    room, partition = Room(), Waitable()
    room.park("more", partition, answer=None)
    room.waiting.moved(partition)
    room.waiting.wake_few()
    assert room.answered == []
    assert room.waiting.parked_count() == 1


@pytest.mark.parametrize("timeout_ms", [1, 2, 5, 7, 100, 500, 5000, 30_000])
def test_deadlines_come_a_sixth_later_at_most(timeout_ms: int) -> None:
    room = Room()
    for now_ms in range(1_000_000, 1_000_000 + 2 * timeout_ms, max(1, timeout_ms // 20)):
        room.loop.now_s = now_ms / 1000
        room.loop.due_ms.clear()
        room.waiting._deadlines.clear()
        room.waiting.park(Parked([], timeout_ms, lambda _: ""), lambda _: None)
        (due_ms,) = room.loop.due_ms
        assert timeout_ms <= due_ms - now_ms <= timeout_ms * 7 / 6 + 2


@pytest.mark.parametrize("timeout_ms", [7, 100, 500, 700, 5000, 30_000])
def test_a_second_is_made_of_whole_ticks(timeout_ms: int) -> None:
    """Whoever waits until just before a second comes back with what is due every second."""
    room = Room()
    room.loop.now_s = (1_000_000 - timeout_ms - 2) / 1000
    room.waiting.park(Parked([], timeout_ms, lambda _: ""), lambda _: None)
    assert room.loop.due_ms == [1_000_000]


def test_requests_that_wait_as_long_come_back_together() -> None:
    """A hundred of them, spread over half a second."""
    room = Room()
    for number in range(100):
        room.loop.now_s = 1000 + number * 0.005
        room.waiting.park(Parked([], 500, lambda _: ""), lambda _: None)
    assert len(room.loop.due_ms) <= 9
