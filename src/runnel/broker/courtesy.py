"""Readers of much give way to producers.

Sending a megabyte of file takes the loop, and the processor under it, for as long as dozens of
small requests. While anybody produces, what was cold leaves in small pieces, and is brought from
the disk no faster than a reader needs who wants to catch up with the producers. Readers of what was
just written are as fast as ever: they are few bytes behind, and it was produced for them. While
nobody produces, what is in memory leaves in larger turns than else.
"""

from typing import Final

from runnel.metrics import PRODUCED_BYTES, Metrics
from runnel.ports import Clock

TURN_BYTES_MAX: Final = 1024 * 1024
QUIET_TURN_BYTES_MAX: Final = 4 * 1024 * 1024
GENTLE_TURN_BYTES_MAX: Final = 32 * 1024
COLD_BYTES_MAX: Final = 1024 * 1024
COLD_BYTES_MIN: Final = 128 * 1024
PIECE_EVERY_MS: Final = 1
GENTLE_PIECE_EVERY_MS: Final = 2  # with those: p99 of a small produce 1.0x of at rest (0.6 to 1.5)
CATCHING_UP: Final = 2  # times as fast as producers write, so that even the last reader gets there
LOOK_EVERY_MS: Final = 100
LATELY_MS: Final = 1000


class Courtesy:
    """Owned by the broker, one for all connections."""

    __slots__ = (
        "_bytes_per_ms",
        "_clock",
        "_looked_ms",
        "_metrics",
        "_produced_bytes",
        "_until_ms",
    )

    def __init__(self, clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._metrics = metrics
        self._looked_ms = clock.monotonic_ms()
        self._until_ms = 0
        self._produced_bytes = 0
        self._bytes_per_ms = 0

    def warm_turn_bytes(self) -> int:
        """How much of what is in memory one connection may send before everybody else has a turn.

        More of it at once fills the socket, so that segments leave when its reader acknowledges
        others, and not each by itself (ADR 59).
        """
        return TURN_BYTES_MAX if self.is_due() else QUIET_TURN_BYTES_MAX

    def cold_turn_bytes(self) -> int:
        """How much of what was cold one connection may send before everybody else has a turn."""
        return GENTLE_TURN_BYTES_MAX if self.is_due() else TURN_BYTES_MAX

    def cold_bytes(self) -> int:
        """How much one connection may bring from the disk at a time: a piece every so often."""
        if not self.is_due():
            return COLD_BYTES_MAX
        wanted_bytes = CATCHING_UP * self._bytes_per_ms * GENTLE_PIECE_EVERY_MS
        return min(max(COLD_BYTES_MIN, wanted_bytes), COLD_BYTES_MAX)

    def piece_every_ms(self) -> int:
        return GENTLE_PIECE_EVERY_MS if self.is_due() else PIECE_EVERY_MS

    def is_due(self) -> bool:
        """Whether anybody produced lately."""
        now_ms = self._clock.monotonic_ms()
        since_ms = now_ms - self._looked_ms
        if since_ms >= LOOK_EVERY_MS:
            produced_bytes = self._metrics.slots[PRODUCED_BYTES]
            added_bytes = produced_bytes - self._produced_bytes
            self._produced_bytes = produced_bytes
            self._looked_ms = now_ms
            self._bytes_per_ms = added_bytes // since_ms
            if added_bytes:
                # Who was not asked for long cannot tell when it was: the next look will.
                is_recent = since_ms <= LATELY_MS
                self._until_ms = now_ms + (LATELY_MS if is_recent else LOOK_EVERY_MS)
        return now_ms < self._until_ms
