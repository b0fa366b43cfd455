"""Where received bytes live: one buffer for the whole loop, and pooled ones for unfinished frames.

Whole frames are handled inside the shared buffer, so an idle connection holds no memory at all.
A frame that arrives in pieces moves to a held buffer, which grows as bytes arrive and never to
the size that a peer merely declared. Held bytes are counted against one budget:

  - Who needs more than is left waits, unread, with what it has. While nothing is left only a
    small piece of the shared buffer is lent, so that newcomers have next to nothing to keep.
  - One connection may always exceed the budget, the one that waited longest: its frame gets
    finished, or it is closed for making no progress, so somebody always goes on.
  - Memory that is given back goes to whoever misses least.
"""

from typing import Final, Protocol

SHARED_BYTES: Final = 128 * 1024  # what of a large frame comes this way is copied once
LENT_WHEN_EXHAUSTED_BYTES: Final = 4 * 1024
SMALLEST_HELD_BYTES: Final = 64 * 1024
POOLED_BYTES_MAX: Final = 16 * 1024 * 1024
POOLED_BUFFER_BYTES_MAX: Final = 4 * 1024 * 1024


class Holder(Protocol):
    """A connection, as far as its memory goes."""

    @property
    def missing_bytes(self) -> int:
        """What its unfinished frame still lacks."""

    def memory_left(self) -> None:
        """Ask again in a later turn of the loop."""


class ReceiveBuffers:
    """Owned by the loop. `shared` is valid only until the handler of its last frame returns."""

    __slots__ = (
        "_free",
        "_little",
        "_whole",
        "budget_bytes",
        "exempt",
        "held_bytes",
        "pooled_bytes",
        "shared",
        "waiting",
    )

    def __init__(self, budget_bytes: int) -> None:
        self._whole = memoryview(bytearray(SHARED_BYTES))
        self._little = self._whole[:LENT_WHEN_EXHAUSTED_BYTES]
        self.shared = self._whole
        self.budget_bytes = budget_bytes
        self.held_bytes = 0
        self.pooled_bytes = 0
        self.exempt: Holder | None = None
        self.waiting: dict[Holder, None] = {}  # the oldest first
        self._free: dict[int, list[memoryview]] = {}

    @property
    def exhausted(self) -> bool:
        return self.held_bytes >= self.budget_bytes

    @property
    def pressed(self) -> bool:
        """Somebody needs more than the budget has."""
        return self.exempt is not None or bool(self.waiting)

    def take(self, size: int, holder: Holder, instead_of_bytes: int = 0) -> memoryview | None:
        """A buffer of at least `size` bytes. None: wait for `memory_left` and ask again."""
        capacity = _capacity(size)
        if (
            self.held_bytes + capacity - instead_of_bytes > self.budget_bytes
            and self.exempt is not holder
            and not self._becomes_exempt(holder)
        ):
            return None
        if self.waiting:
            self.waiting.pop(holder, None)
            self._wake_next()
        return self._lend(capacity)

    def keep(self, size: int) -> memoryview:
        """A buffer for bytes that came and must stay; no larger than they if nothing is left."""
        return self._lend(size if self.exhausted else _capacity(size))

    def give_back(self, buffer: memoryview) -> None:
        capacity = len(buffer)
        self.held_bytes -= capacity
        if self.held_bytes < self.budget_bytes:
            self.shared = self._whole
        if (
            SMALLEST_HELD_BYTES <= capacity <= POOLED_BUFFER_BYTES_MAX
            and not capacity & (capacity - 1)
            and self.pooled_bytes + capacity <= POOLED_BYTES_MAX
        ):
            self._free.setdefault(capacity, []).append(buffer)
            self.pooled_bytes += capacity
        if self.waiting:
            self._wake_next()

    def finished(self, holder: Holder) -> None:
        """It needs no more for now: its frame is complete, or it cannot go on for other reasons."""
        self.waiting.pop(holder, None)
        if self.exempt is holder:
            self.exempt = None
        self._wake_next()

    def _lend(self, capacity: int) -> memoryview:
        free = self._free.get(capacity)
        if free:
            buffer = free.pop()
            self.pooled_bytes -= capacity
        else:
            buffer = memoryview(bytearray(capacity))
        self.held_bytes += capacity
        if self.held_bytes >= self.budget_bytes:
            self.shared = self._little
        return buffer

    def _becomes_exempt(self, holder: Holder) -> bool:
        if self.exempt is None:
            if next(iter(self.waiting), holder) is holder:
                self.exempt = holder
                return True
            self._wake_next()
        self.waiting[holder] = None
        return False

    def _wake_next(self) -> None:
        """One at a time: who gets what it needs wakes the next."""
        if self.waiting:
            if self.exempt is None:
                next(iter(self.waiting)).memory_left()
            elif not self.exhausted:
                min(self.waiting, key=lambda holder: holder.missing_bytes).memory_left()


def _capacity(size: int) -> int:
    return max(SMALLEST_HELD_BYTES, 1 << (size - 1).bit_length())
