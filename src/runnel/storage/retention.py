"""Which segments have had their time, and when not to trust the clock that says so.

Rules (R33): whole segments, oldest first, nothing at or above the high watermark; the largest
timestamp of a segment decides, its modification time if it has none. A future timestamp keeps its
segment, as in Kafka: `message.timestamp.after.max.ms` is what keeps such records out.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol, TypeVar

from runnel.config.topic import LogConfig
from runnel.ports import Clock

DRIFT_MAX_MS = 3_600_000

Reason = Literal["age", "size", "start"]


class Ageing(Protocol):
    """What is asked of a segment, here or in a folder that nobody has opened."""

    @property
    def size(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def is_active(self) -> bool: ...
    @property
    def max_timestamp(self) -> int: ...


S = TypeVar("S", bound=Ageing)


class Deleted(NamedTuple):
    """A segment that retention took, and why: age, size, or because the log starts after it."""

    base_offset: int
    next_offset: int
    size_bytes: int
    reason: Reason


class ClockGuard:
    """Compares the two clocks since the start of the process.

    When the wall clock has moved an hour against the monotonic one, someone has set it: age tells
    nothing then, and deleting by it cannot be undone. So deletion by age rests until the clock is
    back or the process is started anew, which an operator does who knows that the time is right.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._difference_ms = clock.wall_ms() - clock.monotonic_ms()

    def drift_ms(self) -> int:
        return self._clock.wall_ms() - self._clock.monotonic_ms() - self._difference_ms

    def trusts_clock(self) -> bool:
        return abs(self.drift_ms()) <= DRIFT_MAX_MS


def expired(
    segments: Sequence[S],
    config: LogConfig,
    *,
    now_ms: int | None,
    high_watermark: int,
    log_start_offset: int,
    modified_ms: Callable[[S], int],
) -> list[tuple[S, Reason]]:
    """The oldest segments that may go. `now_ms` None: age is not asked."""
    by_policy = "delete" in config.cleanup_policy
    excess_bytes = -1
    if by_policy and config.retention_bytes >= 0:
        excess_bytes = sum(segment.size for segment in segments) - config.retention_bytes
    going: list[tuple[S, Reason]] = []
    for segment in segments:
        if segment.next_offset > high_watermark or (segment.is_active and not segment.size):
            break
        if segment.next_offset <= log_start_offset and not segment.is_active:
            going.append((segment, "start"))
        elif by_policy and excess_bytes - segment.size >= 0:
            going.append((segment, "size"))
        elif by_policy and now_ms is not None and config.retention_ms >= 0:
            newest_ms = segment.max_timestamp
            if newest_ms < 0:
                newest_ms = modified_ms(segment)
            if now_ms - newest_ms <= config.retention_ms:
                break
            going.append((segment, "age"))
        else:
            break
        excess_bytes -= segment.size
    return going
